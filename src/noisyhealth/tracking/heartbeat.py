"""Signs of life: who runs a run, and when that process was last seen, so that one that vanished can be told.

A process that is killed outright, or whose machine loses power, cannot end its runs; MLflow shows them as running
for ever.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import psutil

PROCESS, HEARTBEAT = "process", "heartbeat"
EVERY = 20.0  # seconds between two beats
_MISSED = 300.0  # seconds without a beat after which a process of another machine counts as gone; clocks differ


def signs() -> dict[str, str]:
    """Return the tags of a run that this process begins."""
    return {PROCESS: _process(psutil.Process()), HEARTBEAT: _now()}


def told(tags: Mapping[str, str]) -> str:
    """Return in words who runs a run, "" where that is not known.

    >>> told({PROCESS: "vm 1a2b pid 30798 begun 1796100353", HEARTBEAT: "1796100400 2026-12-01T04:46:40Z"})
    'by process 30798, last seen 2026-12-01T04:46:40Z'
    """
    _, _, process = tags.get(PROCESS, "").rpartition(" pid ")
    seen = tags.get(HEARTBEAT, "").partition(" ")[2]
    return f"by process {process.partition(' ')[0]}, last seen {seen}" if process else ""


def vanished(tags: Mapping[str, str]) -> bool:
    """Return whether the process that ran a run is gone; False where nobody can know."""
    machine, _, process = tags.get(PROCESS, "").rpartition(" pid ")
    if not machine:
        return False
    if machine == _machine():
        number = int(process.partition(" ")[0])
        return not (psutil.pid_exists(number) and _process_of(number) == tags[PROCESS])
    return time.time() - float(tags[HEARTBEAT].partition(" ")[0]) > _MISSED


def _now() -> str:
    return f"{time.time():.0f} {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}"


def _process(process: psutil.Process) -> str:
    # A number is given again to another process: with its beginning it is unique.
    return f"{_machine()} pid {process.pid} begun {process.create_time():.0f}"


def _process_of(number: int) -> str:
    try:
        found = psutil.Process(number)
        return "" if found.status() == psutil.STATUS_ZOMBIE else _process(found)
    except psutil.Error:
        return ""


@cache
def _machine() -> str:
    """Return this machine since it was started, and where numbers of processes mean the same: containers differ."""
    boot, space = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    parts = [boot.read_text().strip()[:8]] if boot.exists() else []
    parts += [str(space.readlink())] if space.is_symlink() else []
    return " ".join([socket.gethostname(), *parts])


@dataclass
class Heartbeats:
    """Beats for the open runs of this process, by `beat`, which is given a run's id and the tag's new value."""

    beat: Callable[[str, str], object]
    _open: set[str] = field(default_factory=set)
    _thread: threading.Thread | None = None

    def begin(self, run: str) -> None:
        """Beat for a run from now on."""
        self._open.add(run)
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="heartbeats", daemon=True)
            self._thread.start()

    def end(self, run: str) -> None:
        """Beat for a run no more."""
        self._open.discard(run)

    def _beat(self) -> None:
        while True:
            time.sleep(EVERY)
            for run in list(self._open):
                # A store that cannot be reached is found and told by the run itself.
                with suppress(Exception):
                    self.beat(run, _now())
