"""A study's report checked again: its files, the runs it rests on, and every table computed anew."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from noisyhealth import manifest
from noisyhealth.audit.finding import Finding, Verdict
from noisyhealth.audit.kept import KeptRun
from noisyhealth.errors import NoisyHealthError
from noisyhealth.report import build
from noisyhealth.report.clock import Clock
from noisyhealth.report.source import Source

_TABLES = "*.csv"


def files(folder: Path, runs: Sequence[KeptRun]) -> Iterator[Finding]:
    """Compare a report's files with its manifest, and the runs it rests on with those at hand."""
    yield from (Finding(Verdict.DIFFERENT, what) for what in manifest.differences(folder, strange=False))
    try:
        rests_on: Mapping[str, str] = manifest.read(folder)["runs"]
    except (OSError, ValueError, KeyError):
        return  # the manifest's own difference was told
    known = {run.id: run.logged.tags.get("manifest", "") for run in runs}
    for run, digest in rests_on.items():
        if run not in known:
            yield Finding(Verdict.UNKNOWN, f"it rests on run {run}, which is not here")
        elif known[run] != digest:
            yield Finding(Verdict.DIFFERENT, f"run {run} is not as it was when the report was made")


def tables(folder: Path, store: Source, scratch: Path) -> tuple[list[Finding], int]:
    """Compute every table of a report anew from the runs of its study, into an empty folder, and compare.

    Returns what was found, and how many tables were computed.
    """
    try:
        made = manifest.read(folder)
        grid, allow_incomplete = (made["settings"][name] for name in ("grid", "allow_incomplete"))
    except (OSError, ValueError, KeyError):
        return [], 0  # `files` tells what is wrong with the manifest
    try:
        build.build(store, scratch, grid, allow_incomplete=allow_incomplete, clock=Clock())
    except NoisyHealthError as error:
        return [Finding(Verdict.UNKNOWN, f"its tables cannot be computed again: {error}")], 0
    again, kept = ({path.relative_to(of).as_posix(): path for path in of.rglob(_TABLES)} for of in (scratch, folder))
    return list(_compared(kept, again, made["files"])), len(again)


def _compared(kept: Mapping[str, Path], again: Mapping[str, Path], own: Collection[str]) -> Iterator[Finding]:
    for name in sorted(again.keys() | (kept.keys() & set(own))):
        if name not in again or name not in kept:
            yield Finding(Verdict.DIFFERENT, f"{name} is only in {'the report' if name in kept else 'the runs'}")
        elif line := _first_difference(kept[name], again[name]):
            yield Finding(Verdict.DIFFERENT, f"{name}, {line}")


def _first_difference(kept: Path, again: Path) -> str:
    """Return in words where two tables differ first, "" where they do not."""
    if kept.read_bytes() == again.read_bytes():
        return ""
    lines = zip(kept.read_text("utf-8").splitlines(), again.read_text("utf-8").splitlines(), strict=False)
    for number, (one, other) in enumerate(lines, 1):
        if one != other:
            return f"line {number}: the report has {one!r}, the runs give {other!r}"
    return "one of them has more lines"
