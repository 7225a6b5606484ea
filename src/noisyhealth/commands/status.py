"""What has become of the cells of a study: of every cell that was begun, or that a sweep set out to run."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from noisyhealth.errors import DataError, StoreError
from noisyhealth.study import DONE, FAILED, KILLED, MISSING, PLANNED, unknown
from noisyhealth.tracking import heartbeat
from noisyhealth.tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import Run

RUNNING = "running"
_ORDER = (DONE, RUNNING, FAILED, KILLED, MISSING)


@dataclass(frozen=True)
class Found:
    """One cell: what became of its last try, or that one try is done; `why` it is not."""

    cell: str
    status: str
    why: str = ""


def of(store: Store) -> list[Found]:
    """Return every cell of a study with its status, in the order in which they were begun; missing ones last.

    Cells are told apart by name. Raises DataError where there is no such study.
    """
    if not store.exists():
        raise DataError(unknown(store))
    tries: dict[str, list[Run]] = {}
    for run in sorted(store.runs("tags.kind = 'cell'"), key=lambda run: run.info.start_time):
        tries.setdefault(str(run.info.run_name), []).append(run)
    found = [_found(name, runs) for name, runs in tries.items()]
    return [*found, *(Found(name, MISSING) for name in dict.fromkeys(_planned(store)) if name not in tries)]


def _found(name: str, runs: Sequence[Run]) -> Found:
    last = next((run for run in runs if run.info.status == "FINISHED"), runs[-1])
    why = last.data.tags.get("error", "")
    match last.info.status:
        case "FINISHED":
            return Found(name, DONE)
        case "RUNNING" if heartbeat.vanished(last.data.tags):
            return Found(name, KILLED, "its process vanished: it was killed outright, or the machine stopped")
        case "RUNNING" | "SCHEDULED":
            return Found(name, RUNNING, heartbeat.told(last.data.tags))
        case "KILLED":
            return Found(name, KILLED, why)
    return Found(name, FAILED, why)


def _planned(store: Store) -> Iterator[str]:
    """Yield the names of the cells that the study's sweeps set out to run, where a sweep could list them."""
    with tempfile.TemporaryDirectory() as scratch:
        for sweep in store.runs("tags.kind = 'sweep'"):
            try:
                listed = store.artifact(sweep, PLANNED, Path(scratch))
            except StoreError:
                continue  # one whose sweeper chose cells as it went, or of an earlier version
            yield from json.loads(listed.read_text(encoding="utf-8"))


def show(study: str, found: Sequence[Found]) -> bool:
    """Print how many cells have each status, and all that are not done; return whether all are."""
    from rich.console import Console
    from rich.table import Table

    counts = Counter(one.status for one in found)
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    told = ", ".join(f"{counts[status]} {status}" for status in _ORDER if counts[status])
    console.print(f"Study {study}: {told or 'no cell was begun'}.", markup=False)
    if left := [one for one in found if one.status != DONE]:
        table = Table("cell", "status", "why")
        for one in left:
            table.add_row(one.cell, one.status, one.why)
        console.print(table, markup=False)
    return bool(found) and not left
