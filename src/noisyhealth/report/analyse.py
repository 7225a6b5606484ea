"""From a study's runs to its tables: categories of change, and Friedman's test over each dimension."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from omegaconf import DictConfig

from noisyhealth import settings
from noisyhealth.analysis import completeness, impact
from noisyhealth.analysis.association import Association, association
from noisyhealth.analysis.completeness import CellRun, Problem
from noisyhealth.analysis.inference import FACTORS, FriedmanResult, Pair, friedman
from noisyhealth.errors import DataError, NoisyHealthError

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Run

    from noisyhealth.tracking.store import Store

_ORDER = ("none", "low", "mid", "high")


def main(conf: Path) -> int:
    """Analyse what the command line names and return the exit code: 0, or 2 where nothing can be analysed."""
    try:
        hydra.main(version_base="1.3", config_path=str(conf.resolve()), config_name="analyze")(_analyse)()
    except _Stopped as stopped:
        print(f"{type(stopped.args[0]).__name__}: {stopped.args[0]}", file=sys.stderr)
        return 2
    return 0


class _Stopped(BaseException):
    """Carries an error past Hydra, which would print its traceback."""


def _analyse(cfg: DictConfig) -> None:
    try:
        grid = {name: list(map(str, given)) for name, given in cfg.grid.items() if given}
        write(settings.store(cfg), Path(str(cfg.out)), grid, allow_incomplete=bool(cfg.allow_incomplete))
    except NoisyHealthError as error:
        raise _Stopped(error) from None


def write(store: Store, out: Path, grid: Mapping[str, Sequence[str]], *, allow_incomplete: bool = False) -> None:
    """Print the tables of a study and write them, with the scores and run ids they rest on, to a folder.

    `grid` is what `completeness.problems` expects. Raises DataError when the study has no finished cell, and when it is
    not whole, unless that is allowed: then every table says so.
    """
    if not store.exists():
        raise DataError(
            f"there is no study {store.study!r} at {store.uri}: run `python run.py study={store.study}` first"
        )
    whole = store.runs("tags.kind = 'cell'")
    warning = ""
    if listed := completeness.problems([_cell_run(run) for run in whole], grid):
        told = _told(store.study, listed)
        if not allow_incomplete:
            raise DataError(f"{told}\nRun what is missing, or give allow_incomplete=true")
        print(told)
        warning = f"INCOMPLETE: {completeness.summary(listed)} (problems.csv)"
    runs = same_examples(_latest([run for run in whole if run.info.status == completeness.FINISHED]))
    scores = frame(runs)
    if scores.empty:
        found = f", only {len(runs)} on clean texts (perturb=none)" if runs else ""
        raise DataError(
            f"study {store.study!r} has no finished cell with a disturbed text{found}: run `python run.py` with "
            "perturb=typo,homophone,redact first"
        )
    out.mkdir(parents=True, exist_ok=True)
    scores.to_csv(out / "scores.csv", index=False)
    _listed(listed).to_csv(out / "problems.csv", index=False)
    _tables(scores, out, partial(_show, warning))
    print(f"\n{len(runs)} runs, {len(scores)} scenarios. Tables, scores and run ids: {out.resolve()}")


def _tables(scores: pd.DataFrame, out: Path, show: Callable[[str, pd.DataFrame], None]) -> None:
    """Show every table, and write it."""
    show("Scenarios by category, model and task", _categories(scores, out, ["weights", "model", "task"]))
    show("Scenarios by category, perturbation and level", _categories(scores, out, ["weights", "perturb", "level"]))
    for weights, part in scores.groupby("weights"):
        categories = _associations([association(part, factor) for factor in FACTORS])
        categories.to_csv(out / f"chi_squared_{weights}.csv", index=False)
        show(f"Categories against each dimension, Pearson's chi-squared test (weights: {weights})", categories)
        tests = [friedman(part, factor) for factor in FACTORS]
        rows, pairs = _tests(tests), _pairs(tests)
        rows.to_csv(out / f"friedman_{weights}.csv", index=False)
        pairs.to_csv(out / f"conover_{weights}.csv", index=False)
        show(f"Friedman's test of the relative change over each dimension (weights: {weights})", rows)
        if not pairs.empty:
            show("Pairs after Conover, p with Bonferroni's correction", pairs)


def frame(runs: list[Run]) -> pd.DataFrame:
    """Return one row a scenario: a score of a cell on disturbed texts beside the same on clean ones."""
    import pandas as pd

    rows = [row for run in runs for row in _rows(run)]
    columns = [*impact.KEY, "n", "value", "baseline", "change", "category", "run_id", "data_hash", "rate"]
    table = pd.DataFrame(rows, columns=columns)
    table["level"] = pd.Categorical(table["level"], [*_ORDER, *sorted(set(table["level"]) - set(_ORDER))])
    return table.sort_values(["weights", "task", "model", "perturb", "level"]).astype({"level": str})


def _cell_run(run: Run) -> CellRun:
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
    )


def _told(study: str, listed: Sequence[Problem]) -> str:
    lines = [f"- {one.kind}: {one.what}{_ids(one)}" for one in listed]
    return "\n".join([f"study {study!r} is not whole: {completeness.summary(listed)}", *lines])


def _ids(one: Problem) -> str:
    return f" ({', '.join(one.runs)})" if one.runs else ""


def _listed(listed: Sequence[Problem]) -> pd.DataFrame:
    import pandas as pd

    rows = [(one.kind, one.what, " ".join(one.runs)) for one in listed]
    return pd.DataFrame(rows, columns=["problem", "what", "run_ids"])


def _rows(run: Run) -> list[dict[str, Any]]:
    tags, metrics = run.data.tags, run.data.metrics
    if tags["perturb"] == "none":
        return []
    shared: dict[str, Any] = {key: tags[key] for key in ("task", "weights", "perturb", "level", "data_hash")}
    # Two models may play one part ("gpt"): a row is of one of them.
    shared |= {
        "model": tags["answered_by"],
        "n": int(metrics["n"]),
        "run_id": run.info.run_id,
        "rate": float(run.data.params["rate"]),
    }
    rows = []
    for name in tags["scenarios"].split(","):
        value, baseline = metrics[name], metrics[f"clean/{name}"]
        found = {"change": impact.change(value, baseline), "category": str(impact.category(value, baseline))}
        rows.append({**shared, "score_name": name, "value": value, "baseline": baseline, **found})
    return rows


def _latest(runs: list[Run]) -> list[Run]:
    """Return one run a cell of the grid: the one that started last, and say how many others are left out."""
    in_time = sorted(runs, key=lambda r: r.info.start_time)
    newest = {_cell_run(run).place: run for run in in_time}
    if older := len(runs) - len(newest):
        print(f"{older} runs are older than another of the same cell and left out")
    return [run for run in in_time if newest[_cell_run(run).place] is run]


def same_examples(runs: list[Run]) -> list[Run]:
    """Return, for each weights and task, the runs on the examples that most of them have, and say which others are not.

    Cells on other examples cannot be compared; where two sets have as many runs, the later one counts.
    """
    counts = Counter((run.data.tags["weights"], run.data.tags["task"], run.data.tags["data_hash"]) for run in runs)
    chosen: dict[tuple[str, str], str] = {}
    for weights, task, data in counts:
        held = chosen.get((weights, task))
        if held is None or counts[weights, task, data] >= counts[weights, task, held]:
            chosen[weights, task] = data
    kept = []
    for run in runs:
        tags = run.data.tags
        if tags["data_hash"] == chosen[tags["weights"], tags["task"]]:
            kept.append(run)
        else:
            print(f"{run.info.run_name} ({run.info.run_id}) is on other examples than most cells of its task: left out")
    return kept


def _categories(scores: pd.DataFrame, out: Path, by: list[str]) -> pd.DataFrame:
    table = impact.category_table(scores, by)
    table.to_csv(out / f"categories_by_{'_'.join(by[1:])}.csv", index=False)
    return table


def _associations(found: list[Association]) -> pd.DataFrame:
    import pandas as pd

    columns = ("factor", "n", "undefined", "chi2", "df", "p", "method", "v")
    return pd.DataFrame(
        [
            {
                **{name: getattr(one, name) for name in columns},
                "least_expected": min((number for row in one.expected for number in row), default=None),
                "note": "; ".join([*(f"no {name}" for name in one.dropped), *([one.note] if one.note else [])]),
            }
            for one in found
        ]
    )


def _tests(tests: list[FriedmanResult]) -> pd.DataFrame:
    import pandas as pd

    columns = ("factor", "blocks", "incomplete", "q", "df", "p", "w", "note")
    return pd.DataFrame([{name: getattr(test, name) for name in columns} for test in tests])


def _pairs(tests: list[FriedmanResult]) -> pd.DataFrame:
    import pandas as pd

    rows = [{"factor": test.factor, **asdict(pair)} for test in tests for pair in test.pairs]
    return pd.DataFrame(rows, columns=["factor", *(field.name for field in fields(Pair))])


def _show(warning: str, title: str, table: pd.DataFrame) -> None:
    """Print a table under what is wrong with the study; shares as per cent, p values with three digits."""
    import pandas as pd

    shown = table.copy()
    for name in shown.columns:
        if name.endswith("_share"):
            shown[name] = shown[name].map("{:.1%}".format)
        elif name == "p":
            shown[name] = ["" if pd.isna(p) else "<.001" if p < 0.001 else f"{p:.3f}" for p in shown[name]]
    print(f"\n{warning}\n{title}" if warning else f"\n{title}")
    print(f"{shown.to_string(index=False, float_format='{:.3f}'.format, na_rep='')}")
