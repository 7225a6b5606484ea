"""Which runs of a study a report rests on, and the frame of their scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from noisyhealth.analysis import completeness, impact
from noisyhealth.analysis.completeness import CellRun
from noisyhealth.report import factors

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Run

_Group: TypeAlias = tuple[str, str, str]
_ORDER = {
    "task": ("sentiment", "condition", "qa"),
    "perturb": ("none", "typo", "homophone", "redact"),
}


@dataclass(frozen=True)
class Chosen:
    """The runs that count, and what is said of each that does not."""

    runs: tuple[Run, ...]
    left_out: tuple[str, ...]


def cell_run(run: Run) -> CellRun:
    """Return what completeness is judged by."""
    tags = run.data.tags
    return CellRun(
        run=run.info.run_id,
        task=tags["task"],
        part=tags["model"],
        model=tags["answered_by"],
        weights=tags["weights"],
        perturb=tags["perturb"],
        level=tags["level"],
        status=run.info.status,
        examples=tags["data_hash"],
        code=tags["code_hash"],
        begun=run.info.start_time,
        prompt=tags.get("prompt_hash", ""),
        rate=float(run.data.params["rate"]),
        factors=tuple(sorted(factors.of(run).items())),
    )


def choose(runs: Sequence[Run], grid: Mapping[str, Sequence[str]] = MappingProxyType({})) -> Chosen:
    """Return, of the finished runs in the grid, the newest of each cell on the examples that most of its task have.

    Cells on other examples cannot be compared; where two sets have as many cells, the later one counts.
    """
    finished = [run for run in runs if run.info.status == completeness.FINISHED]
    inside = [run for run in finished if completeness.within(cell_run(run), grid)]
    inside.sort(key=lambda run: run.info.start_time)
    examples = _examples(inside)
    comparable = [run for run in inside if run.data.tags["data_hash"] == examples[_group(run)]]
    newest = {cell_run(run).place: run for run in comparable}
    kept = [run for run in comparable if newest[cell_run(run).place] is run]
    older = len(comparable) - len(kept)
    outside = len(finished) - len(inside)
    told = [
        *([f"{outside} runs are outside the grid that was named and left out"] if outside else []),
        *([f"{older} runs are older than another of the same cell and left out"] if older else []),
        *(
            f"{run.info.run_name} ({run.info.run_id}) is on other examples than most cells of its task: left out"
            for run in inside
            if run.data.tags["data_hash"] != examples[_group(run)]
        ),
    ]
    return Chosen(tuple(kept), tuple(told))


def _examples(runs: Sequence[Run]) -> dict[_Group, str]:
    """Return the hash of the examples that most cells of each group have; `runs` in the order of time."""
    cells: dict[tuple[_Group, str], set[object]] = {}
    for run in runs:
        key = (_group(run), run.data.tags["data_hash"])
        places = cells.pop(key, set())  # a key that comes again goes to the end: the later set
        cells[key] = places | {cell_run(run).place}
    chosen: dict[_Group, str] = {}
    for (group, data), places in cells.items():
        held = chosen.get(group)
        if held is None or len(places) >= len(cells[group, held]):
            chosen[group] = data
    return chosen


def _group(run: Run) -> _Group:
    """Return what cells share that are compared with each other: weights, task, the values of an ablation's factors."""
    return run.data.tags["weights"], run.data.tags["task"], run.data.tags.get(factors.TAG, "")


def in_order(runs: Sequence[Run]) -> list[Run]:
    """Return runs in the order of tables: weights, task, model, perturbation, level, the study's own first."""
    return sorted(runs, key=_rank)


def _rank(run: Run) -> tuple[object, ...]:
    tags = run.data.tags
    task, perturb = ((_at(name, tags[name]), tags[name]) for name in ("task", "perturb"))
    # Levels by what they are, so that names of the user's own stand in the order of their dose.
    return tags["weights"], task, tags["answered_by"], perturb, float(run.data.params["rate"]), tags["level"]


def _at(name: str, value: str) -> int:
    order = _ORDER[name]
    return order.index(value) if value in order else len(order)


def scores(runs: Sequence[Run]) -> pd.DataFrame:
    """Return one row a scenario: a score of a cell on disturbed texts beside the same on clean ones."""
    import pandas as pd

    rows = [row for run in in_order(runs) for row in _rows(run)]
    columns = [*impact.KEY, "n", "value", "baseline", "change", "category", "unread", "unread_clean"]
    columns += ["run_id", "data_hash", "rate"]
    return pd.DataFrame(rows, columns=columns)


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    tags, metrics = run.data.tags, run.data.metrics
    if tags["perturb"] == "none":
        return
    shared: dict[str, Any] = {
        **{key: tags[key] for key in ("task", "weights", "perturb", "level", "data_hash")},
        # Two models may play one part ("gpt"): a row is of one of them.
        "model": tags["answered_by"],
        "n": int(metrics["n"]),
        "unread": int(metrics["n"] - metrics["outcome/scored"]),
        "unread_clean": int(metrics["n"] - metrics["clean_outcome/scored"]),
        "run_id": run.info.run_id,
        "rate": float(run.data.params["rate"]),
    }
    for name in tags["scenarios"].split(","):
        value, baseline = metrics[name], metrics[f"clean/{name}"]
        found = {"change": impact.change(value, baseline), "category": str(impact.category(value, baseline))}
        yield {**shared, "score_name": name, "value": value, "baseline": baseline, **found}


def doses(runs: Sequence[Run]) -> pd.DataFrame:
    """Return what each disturbance really was: means over the texts of its cells, a row a task, kind and level."""
    import pandas as pd

    names = ("dose/edits", "dose/words", "dose/valid_words", "dose/characters", "dose/medical")
    rows = [
        {
            **{key: run.data.tags[key] for key in ("weights", "task", "perturb", "level")},
            "rate": float(run.data.params["rate"]),
            "n": int(run.data.metrics["n"]),
            **{name.removeprefix("dose/"): run.data.metrics[name] for name in names},
        }
        for run in in_order(runs)
        if run.data.tags["perturb"] != "none"
    ]
    table = pd.DataFrame(rows).drop_duplicates()
    return table.rename(columns={one: f"{one}_share" for one in ("words", "valid_words", "characters", "medical")})


def listed(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the runs that a report rests on, with what tells them apart."""
    import pandas as pd

    swept = any(map(factors.of, runs))
    rows = [
        {
            "run_id": run.info.run_id,
            **{key: run.data.tags[key] for key in ("weights", "task")},
            "model": run.data.tags["answered_by"],
            **{key: run.data.tags[key] for key in ("perturb", "level")},
            **({factors.TAG: factors.words(run)} if swept else {}),
            "n": int(run.data.metrics["n"]),
            "started": pd.Timestamp(run.info.start_time, unit="ms").isoformat(timespec="seconds"),
            **{key: run.data.tags.get(key, "") for key in ("cell_key", "data_hash", "code_hash", "git_commit")},
        }
        for run in in_order(runs)
    ]
    return pd.DataFrame(rows)
