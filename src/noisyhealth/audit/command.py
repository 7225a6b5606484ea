"""The commands of an audit: verify, bundle, diff."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from noisyhealth import manifest, paths, settings, study
from noisyhealth.analysis.completeness import FINISHED
from noisyhealth.audit import bundle, diff, report
from noisyhealth.audit.archived import Archived
from noisyhealth.audit.dataset import built
from noisyhealth.audit.finding import Checked, Finding, Verdict, gravest
from noisyhealth.audit.kept import KeptRun, Logged
from noisyhealth.audit.verify import Verifier
from noisyhealth.errors import DataError, StoreError
from noisyhealth.progress import steps
from noisyhealth.records import Reply
from noisyhealth.report.beside import beside
from noisyhealth.tracking.journal import Journal
from noisyhealth.tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import Run

_RUN_ID = re.compile(r"[0-9a-f]{32}")
_SHOWN = 5  # differences of one run
_REPORT = "report"
_MANY = 20  # runs that take longer than a second process takes to start


@dataclass(frozen=True)
class Place:
    """Where runs are looked for: MLflow's store, the cache and the folder of the study's report."""

    store: Store
    cache: Path
    report: Path

    @classmethod
    def of(cls, cfg: DictConfig) -> Place:
        """Return the place that a configuration names."""
        return cls(settings.store(cfg), Path(str(cfg.cache)), Path("reports", str(cfg.study)))


def verify(target: str, place: Place, *, trust: bool = False) -> Verdict:
    """Check a run, a study or an archive again, print what was found, and return the gravest of it."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    path = Path(target)
    if not is_archive(target):
        with tempfile.TemporaryDirectory() as scratch:
            return _verify_stored(target, place, Path(scratch))
    if path.is_dir():
        return verify_archive(bundle.Bundle(path), trust=trust)
    with tempfile.TemporaryDirectory() as scratch:
        return verify_archive(bundle.unpack(path, Path(scratch)), trust=trust)


def is_archive(target: str) -> bool:
    """Return whether a target is a file, or the folder of an archive that was unpacked; else it is a run or a study."""
    path = Path(target)
    return path.is_file() or ((path / bundle.RUNS).is_dir() and (path / manifest.NAME).exists())


def is_study(target: str) -> bool:
    """Return whether a target is neither an archive nor a run's id."""
    return not is_archive(target) and not _RUN_ID.fullmatch(target)


def _verify_stored(target: str, place: Place, scratch: Path) -> Verdict:
    journal = Journal(place.cache / "journal.sqlite")
    verifier = Verifier(journal.get if journal.path.exists() else _nothing, builds=built(place.cache / "datasets"))
    runs = list(_stored(target, place.store, scratch / "runs"))
    if _RUN_ID.fullmatch(target) or not (place.report / manifest.NAME).exists():
        return _tell(_checked(verifier, runs))
    again = scratch / _REPORT
    again.mkdir()
    with beside(len(runs), _MANY) as submit:
        tables = submit(report.tables, place.report, replace(place.store), again)
        checked = _checked(verifier, runs)
        different, computed = tables()
    findings = [*report.files(place.report, runs), *different]
    own = Checked("", str(place.report), tuple(findings), {"tables computed again": computed})
    return _tell([*checked, own])


def verify_archive(packed: bundle.Bundle, *, trust: bool = False) -> Verdict:
    """Check an archive that was unpacked, print what was found, and return the gravest of it."""
    findings = [Finding(Verdict.DIFFERENT, what) for what in packed.differences()]
    if not (runs := list(packed.runs())):
        findings.append(Finding(Verdict.UNKNOWN, "it holds no run: there is nothing to check"))
    builds = built(packed.folder / bundle.DATASETS)
    checked = _checked(Verifier(packed.replies, trusted=trust, builds=builds), runs)
    own = packed.folder / bundle.REPORT
    if not own.is_dir():
        return _tell([Checked("", "the archive", tuple(findings), {}), *checked])
    findings += report.files(own, runs)
    with tempfile.TemporaryDirectory() as again:
        different, computed = report.tables(own, Archived.of(packed, runs), Path(again))
    counts = {"tables computed again": computed}
    return _tell([*checked, Checked("", "the archive", (*findings, *different), counts)])


def _nothing(keys: Sequence[str]) -> dict[str, Reply]:
    """Stand for a journal that is not there."""
    return {}


def _checked(verifier: Verifier, runs: Sequence[KeptRun]) -> list[Checked]:
    return [verifier.check(run) for run in steps(runs, "checking runs", unit="run")]


def _stored(target: str, store: Store, scratch: Path) -> Iterator[KeptRun]:
    """Return the run of an id, or the finished runs of a study, each fetched when it is asked for.

    Raises DataError, at once, where there is none.
    """
    if _RUN_ID.fullmatch(target):
        found = [store.run(target)]
        if (kind := found[0].data.tags.get("kind")) != "cell":
            raise DataError(
                f"run {target} is a {kind or 'run of something else'}, no cell: give a cell's run, or a study"
            )
    else:
        found = list(_finished(store))
    return (KeptRun(str(run.info.run_id), _folder(store, run, scratch), Logged.of(run)) for run in found)


def _folder(store: Store, run: Run, scratch: Path) -> Path:
    """Return where a run's files are; for lost ones a folder that is not there, which its check will tell."""
    try:
        return store.folder(run, scratch)
    except StoreError:
        return scratch / str(run.info.run_id)


def _finished(store: Store) -> list[Run]:
    if not store.exists():
        raise DataError(f"{store.study!r} is no file and no run's id; {study.unknown(store)}")
    cells = store.runs("tags.kind = 'cell'")
    others = Counter(run.info.status for run in cells if run.info.status != FINISHED)
    if others:
        told = ", ".join(f"{count} {status}" for status, count in sorted(others.items()))
        print(f"Not checked, since they count nowhere: {told}.")
    if not (found := [run for run in cells if run.info.status == FINISHED]):
        raise DataError(f"study {store.study!r} has no finished run: there is nothing to check")
    return found


def _others(store: Store) -> list[Run]:
    """Return the runs that a report knows of beside the finished cells: sweeps, and cells that did not finish."""
    unfinished = [run for run in store.runs("tags.kind = 'cell'") if run.info.status != FINISHED]
    return [*unfinished, *store.runs("tags.kind = 'sweep'")]


def _tell(checked: Sequence[Checked]) -> Verdict:
    """Print every difference, a sum of what was looked at, and return the gravest verdict."""
    notes: Counter[str] = Counter()
    for one in checked:
        notes.update(finding.what for finding in one.findings if finding.verdict is Verdict.SAME)
        wrong = [finding for finding in one.findings if finding.verdict is not Verdict.SAME]
        for finding in wrong[:_SHOWN]:
            word = "DIFFERENT" if finding.verdict is Verdict.DIFFERENT else "CANNOT BE CHECKED"
            print(f"{word}: {one.name}{f' ({one.run})' if one.run else ''}: {finding.what}")
        if (more := len(wrong) - _SHOWN) > 0:
            print(f"  and {more} more of {one.name}")
    for what, number in notes.items():
        print(f"Of {number} {'run' if number == 1 else 'runs'}: {what}.")
    runs = Counter(one.verdict for one in checked if one.run)
    totals: Counter[str] = Counter()
    for one in checked:
        totals.update(one.counts)
    told = {Verdict.SAME: "the same", Verdict.DIFFERENT: "different", Verdict.UNKNOWN: "cannot be checked"}
    words = ", ".join(f"{runs[verdict]} {word}" for verdict, word in told.items() if runs[verdict])
    number, looked = sum(runs.values()), ", ".join(f"{n:,} {what}" for what, n in totals.items())
    print(f"{number} {'run' if number == 1 else 'runs'}: {words}. Checked: {looked}.")
    return gravest(one.verdict for one in checked)


def pack(place: Place, to: Path) -> Path:
    """Write the archive of a study's finished runs, and return its path."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        runs = _stored(place.store.study, place.store, folder / "fetched")
        paths.made_folder("--to", to)  # before the work whose result it is to hold
        others = {str(run.info.run_id): Logged.of(run) for run in _others(place.store)}
        made = bundle.pack(place.store.study, runs, others, place.cache, place.report, folder)
        return Path(shutil.move(made, to / made.name))


def compare(one: str, other: str, place: Place) -> None:
    """Print what differs between two runs."""
    with _both(one, other, place.store) as (first, second):
        print(f"{first.logged.name} ({first.id})\n{second.logged.name} ({second.id})")
        for aspect, lines in diff.differences(first, second):
            print(f"\n{aspect}: {'the same' if not lines else ''}")
            for line in lines:
                print(f"  {line}")


@contextmanager
def _both(one: str, other: str, store: Store) -> Iterator[tuple[KeptRun, KeptRun]]:
    for run in (one, other):
        if not _RUN_ID.fullmatch(run):
            raise DataError(f"{run!r} is no run's id: give the 32 letters and digits that MLflow shows")
    with tempfile.TemporaryDirectory() as scratch:
        [first], [second] = (list(_stored(run, store, Path(scratch))) for run in (one, other))
        yield first, second
