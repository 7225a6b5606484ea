"""What a sweep may spend, over all its processes: calls and money, reserved before they are spent.

A file that the processes share holds what is reserved. What is reserved is the most a call is estimated to cost; when
its reply is there, the true cost takes its place. So no process can overdraw by more than the estimate is off.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from noisyhealth.errors import JournalError

_TABLE = "create table if not exists spent (calls integer not null, usd real not null)"


@dataclass(frozen=True)
class Budget:
    """The limits of a sweep; None for no limit. `usd`: US dollars. `path`: the file its processes share."""

    path: Path
    calls: int | None = None
    usd: float | None = None

    def reserve(self, costs: Sequence[float]) -> int:
        """Reserve calls of at most these costs (US dollars), in order, and return how many there is room for."""
        if self.calls is None and self.usd is None:
            return len(costs)
        with self._open() as db:
            db.execute("begin immediate")
            calls, usd = db.execute("select calls, usd from spent").fetchone()
            room = len(costs) if self.calls is None else max(0, min(len(costs), self.calls - calls))
            granted = 0
            while granted < room and (self.usd is None or usd + costs[granted] <= self.usd + 1e-12):
                usd += costs[granted]
                granted += 1
            db.execute("update spent set calls = ?, usd = ?", (calls + granted, usd))
            db.execute("commit")
        return granted

    def settle(self, calls: int, usd: float) -> None:
        """Put right what was reserved: add calls and US dollars, which are negative where less was spent."""
        if self.calls is None and self.usd is None:
            return
        with self._open() as db:
            db.execute("update spent set calls = calls + ?, usd = usd + ?", (calls, usd))

    def spent(self) -> tuple[int, float]:
        """Return the calls and the US dollars that are spent or reserved."""
        with self._open() as db:
            calls, usd = db.execute("select calls, usd from spent").fetchone()
        return int(calls), float(usd)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=60, isolation_level=None)) as db:
                db.execute("begin immediate")
                db.execute(_TABLE)
                db.execute("insert into spent select 0, 0.0 where not exists (select 1 from spent)")
                db.execute("commit")
                yield db
        except (sqlite3.Error, OSError) as error:
            raise JournalError(
                f"the budget's file {self.path} cannot be used: {error}; see that the disk has room and the file may "
                "be written, then run the same command again"
            ) from error


UNLIMITED = Budget(Path())
