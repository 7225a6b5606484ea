"""A report from the runs of a study: what counts, what is wrong with it, its sections and their files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from noisyhealth.analysis import completeness
from noisyhealth.analysis.completeness import Problem
from noisyhealth.analysis.mixed import mixed
from noisyhealth.errors import DataError
from noisyhealth.report import ablation, examples, factors, files, runs
from noisyhealth.report.beside import Submit, beside
from noisyhealth.report.outline import Report, Section
from noisyhealth.report.sections import ablations, basis, coping, dimensions, medical, mitigations, robustness
from noisyhealth.report.summary import summary

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Run

    from noisyhealth.report.clock import Clock
    from noisyhealth.report.factors import Design
    from noisyhealth.report.kept import Writer
    from noisyhealth.report.source import Source

_TOLD = 6  # sentences of a section that the summary has
_SEED = 0  # of resamples and permutations: the same runs give the same report


@dataclass(frozen=True)
class Built:
    """A report, the runs and scenarios it rests on, and the examples for its page."""

    report: Report
    runs: tuple[Run, ...]
    scores: pd.DataFrame
    examples: Writer


def build(
    store: Source, folder: Path, grid: Mapping[str, Sequence[str]], *, allow_incomplete: bool, clock: Clock
) -> Built:
    """Return the report of a study, its tables, figures, scores, answers and texts written to an empty folder.

    Raises DataError when the study has no finished cell on disturbed texts, when a logged score is not that of its
    answers, and when the study is not whole, unless that is allowed: then every table says so.
    """
    cells, swept = store.runs("tags.kind = 'cell'"), store.runs("tags.kind = 'sweep'")
    clock.lap("MLflow's search")
    choices = _choices(swept)
    listed = completeness.problems([runs.cell_run(run) for run in cells], grid, choices)
    warning = _warning(store.study, listed, allowed=allow_incomplete)
    chosen = runs.choose(cells, grid)
    designs = factors.designs(chosen.runs, choices)
    own = factors.own(chosen.runs, designs)
    scores = _scores(store.study, own)
    with beside(len(own)) as submit:
        found = examples.read(store, own, folder, submit, seed=_SEED, warning=warning)
        clock.lap("reading answers and resampling them")
        if found.doubts:
            listed = [*listed, *(Problem("mixed within a column", doubt) for doubt in found.doubts)]
            warning = _warning(store.study, listed, allowed=allow_incomplete)
        swept_over = _ablations(store, designs)
        clock.lap("ablations")
        last = basis.section(runs.listed(chosen.runs), _problems(listed), [*chosen.left_out, *_rests_on(own, designs)])
        mitigated = [section for section in (mitigations.section(chosen.runs),) if section]
        sections = (*swept_over, *_sections(scores, found, own, submit), *mitigated, last)
    found_of = [sentence for section in sections[:-1] for sentence in section.sentences[:_TOLD]]
    told = (*summary(scores), *_rests_on(own, designs), *chosen.left_out[:_TOLD], *found_of)
    report = Report(store.study, warning, told, sections)
    files.marked(scores, warning).to_csv(folder / "scores.csv", index=False)
    files.write_tables(folder / "tables", report)
    clock.lap("tests and tables")
    files.write_figures(folder / "figures", report)
    for line in (*_lines(listed), *chosen.left_out):
        print(line)
    return Built(report, chosen.runs, scores, found.shown)


def _choices(swept: Sequence[Run]) -> list[dict[str, list[str]]]:
    """Return what each sweep set out to run, the earliest first; a search chose its cells one by one."""
    ordered = sorted(swept, key=lambda run: run.info.start_time)
    return [json.loads(run.data.tags["choices"]) for run in ordered if "choices" in run.data.tags]


def _ablations(store: Source, designs: Sequence[Design]) -> tuple[Section, ...]:
    """Return the section of the ablations, nothing for a study without one."""
    cells = [(design, ablation.read(store, design.runs)) for design in designs]
    disturbed = [(design, own) for design, own in cells if own]
    return (ablations.section(disturbed, _SEED),) if disturbed else ()


def _rests_on(own: Sequence[Run], designs: Sequence[Design]) -> list[str]:
    """Return which cells of a study with ablations its other tables rest on."""
    if not designs:
        return []
    kind = f"with {factors.words(own[0])}, the reference" if factors.of(own[0]) else "of no ablation"
    cells = "1 cell" if len(own) == 1 else f"{len(own)} cells"
    return [f"All tables but those of the ablations, and all files beside them, rest on {cells} {kind}."]


def _warning(study: str, listed: Sequence[Problem], *, allowed: bool) -> str:
    """Return what stands above every table, "" for a whole study; raise DataError where that is not allowed."""
    if not listed:
        return ""
    if not allowed:
        told = "\n".join([f"study {study!r} is not whole: {completeness.summary(listed)}", *_lines(listed)])
        raise DataError(
            f"{told}\nRun what is missing, or give allow_incomplete=true; what does not fit the rest needs a study= of "
            "its own"
        )
    return f"INCOMPLETE: {completeness.summary(listed)} (see problems)"


def _lines(listed: Sequence[Problem]) -> list[str]:
    return [f"- {one.kind}: {one.what}{f' ({_ids(one)})' if one.runs else ''}" for one in listed]


def _ids(one: Problem) -> str:
    return ", ".join(one.runs)


def _scores(study: str, chosen: Sequence[Run]) -> pd.DataFrame:
    scores = runs.scores(chosen)
    if scores.empty:
        found = f", only {len(chosen)} on clean texts (perturb=none)" if chosen else ""
        raise DataError(
            f"study {study!r} has no finished cell with a disturbed text{found}: run `python run.py` with "
            "perturb=typo,homophone,redact first"
        )
    return scores


def _sections(
    scores: pd.DataFrame, found: examples.Examples, rests_on: Sequence[Run], submit: Submit
) -> Iterator[Section]:
    headlines = {run.data.tags["task"]: run.data.tags["headline"] for run in rests_on}
    doses = runs.doses(rests_on)
    parts = {weights: found.of(weights) for weights in scores["weights"].unique()}
    trends = {weights: submit(dimensions.trends_of, part.items) for weights, part in parts.items()}
    scored = {weights: scores[scores["weights"] == weights] for weights in parts}
    low = {weights: robustness.near_the_floor(scored[weights], part, headlines) for weights, part in parts.items()}
    floored = {weights: set(zip(rows["task"], rows["model"], strict=True)) for weights, rows in low.items()}
    coped = {weights: submit(coping.frames, part.items, floored[weights]) for weights, part in parts.items()}
    models = {weights: submit(mixed, part.items) for weights, part in parts.items()}
    for weights, part in parts.items():
        own = scored[weights]
        yield robustness.section(weights, own, part, doses[doses["weights"] == weights], headlines, low[weights])
        yield coping.section(weights, coped[weights](), headlines)
        yield dimensions.section(weights, own, trends[weights](), headlines)
        yield medical.section(weights, part.items, models[weights]())


def _problems(listed: Sequence[Problem]) -> pd.DataFrame:
    import pandas as pd

    rows = [(one.kind, one.what, " ".join(one.runs)) for one in listed]
    return pd.DataFrame(rows, columns=["problem", "what", "run_ids"])
