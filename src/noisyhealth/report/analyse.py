"""`analyze.py`: the runs of a study become a report: a folder, a summary on the terminal, a run in MLflow."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hydra
from omegaconf import DictConfig

from noisyhealth import settings
from noisyhealth.analysis import completeness
from noisyhealth.analysis.completeness import Problem
from noisyhealth.errors import DataError, NoisyHealthError
from noisyhealth.report import examples, files, logged, page, runs, show
from noisyhealth.report.outline import Report, Section
from noisyhealth.report.sections import basis, dimensions, medical, robustness
from noisyhealth.report.summary import summary

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Run

    from noisyhealth.tracking.store import Store

_SEED = 0  # of resamples and permutations: the same runs give the same report


@dataclass(frozen=True)
class Options:
    """What may be chosen. `grid`: as `completeness.problems` expects it; `log`: also as a run in MLflow."""

    out: Path
    grid: Mapping[str, Sequence[str]]
    allow_incomplete: bool = False
    log: bool = True


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
        options = Options(Path(str(cfg.out)), grid, bool(cfg.allow_incomplete), bool(cfg.log))
        analyse(settings.store(cfg), options)
    except NoisyHealthError as error:
        raise _Stopped(error) from None


def analyse(store: Store, options: Options) -> None:
    """Write the report of a study to a folder, print its main tables, and log it.

    Raises DataError when the study has no finished cell on disturbed texts, when a logged score is not that of its
    answers, and when the study is not whole, unless that is allowed: then every table says so.
    """
    clock = _Clock()
    if not store.exists():
        raise DataError(
            f"there is no study {store.study!r} at {store.uri}: run `python run.py study={store.study}` first"
        )
    whole = store.runs("tags.kind = 'cell'")
    clock.lap("MLflow's search")
    listed = completeness.problems([runs.cell_run(run) for run in whole], options.grid)
    warning = _warning(store.study, listed, allowed=options.allow_incomplete)
    chosen = runs.choose(whole)
    for line in chosen.left_out:
        print(line)
    scores = _scores(store.study, chosen.runs)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        found = examples.read(store, chosen.runs, options.out, Path(scratch), seed=_SEED)
    clock.lap("reading answers and resampling them")
    sections = tuple(_sections(scores, found, chosen, listed))
    report = Report(store.study, warning, summary(scores), sections)
    scores.to_csv(options.out / "scores.csv", index=False)
    files.write_tables(options.out / "tables", report)
    clock.lap("tests and tables")
    files.write_figures(options.out / "figures", report)
    page.write(options.out / "index.html", report, found.shown)
    clock.lap("figures and page")
    show.report(report)
    print(f"\n{len(chosen.runs)} runs, {len(scores)} scenarios. Report: {(options.out / 'index.html').resolve()}")
    if options.log:
        print(f"MLflow: run {logged.log(store, report, chosen.runs, options.out)} of the study {store.study!r}")
        clock.lap("logging")
    print(f"Seconds: {clock}")


class _Clock:
    """What took how long."""

    def __init__(self) -> None:
        self._laps: list[tuple[str, float]] = []
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self._laps.append((name, now - self._last))
        self._last = now

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.1f}" for name, seconds in self._laps)


def _warning(study: str, listed: Sequence[Problem], *, allowed: bool) -> str:
    """Return what stands above every table, "" for a whole study; raise DataError where that is not allowed."""
    if not listed:
        return ""
    lines = [f"- {one.kind}: {one.what}{_ids(one)}" for one in listed]
    told = "\n".join([f"study {study!r} is not whole: {completeness.summary(listed)}", *lines])
    if not allowed:
        raise DataError(f"{told}\nRun what is missing, or give allow_incomplete=true")
    print(told)
    return f"INCOMPLETE: {completeness.summary(listed)} (see problems)"


def _ids(one: Problem) -> str:
    return f" ({', '.join(one.runs)})" if one.runs else ""


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
    scores: pd.DataFrame, found: examples.Examples, chosen: runs.Chosen, listed: Sequence[Problem]
) -> Iterator[Section]:
    headlines = {run.data.tags["task"]: run.data.tags["headline"] for run in chosen.runs}
    doses = runs.doses(chosen.runs)
    for weights in scores["weights"].unique():
        part = found.of(weights)
        own = scores[scores["weights"] == weights]
        yield robustness.section(weights, own, part, doses[doses["weights"] == weights], headlines)
        yield dimensions.section(weights, own, part.items)
        yield medical.section(weights, part.items)
    yield basis.section(runs.listed(chosen.runs), _problems(listed), (*chosen.left_out, *found.doubts))


def _problems(listed: Sequence[Problem]) -> pd.DataFrame:
    import pandas as pd

    rows = [(one.kind, one.what, " ".join(one.runs)) for one in listed]
    return pd.DataFrame(rows, columns=["problem", "what", "run_ids"])
