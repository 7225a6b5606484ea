"""Every reply, kept the moment it arrives: what was answered once is never asked again.

A row's key is the hash of all that decides the reply (model, weights or endpoint, conversation, decoding),
so another model, another prompt or another temperature never meets it. The row has all that in `request`: what was
put to the model for the text, and under "signature" the rest. Errors and empty replies are not
answers and are not kept.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from noisyhealth.errors import JournalError
from noisyhealth.records import Reply

_TABLE = """
create table if not exists replies (
    key text primary key, label text not null, request text not null, reply text not null, at real not null
) without rowid
"""
_MANY = 500  # keys a query; SQLite bounds the number of its parameters


@dataclass(frozen=True)
class Journal:
    """The file that holds the replies; several processes may share it."""

    path: Path

    def get(self, keys: Iterable[str]) -> dict[str, Reply]:
        """Return the kept replies among the keys; each keeps the id of the query it first answered."""
        wanted, found = list(keys), dict[str, Reply]()
        with self._open() as db:
            for at in range(0, len(wanted), _MANY):
                part = wanted[at : at + _MANY]
                marks = ",".join("?" * len(part))
                for key, reply in db.execute(f"select key, reply from replies where key in ({marks})", part):
                    found[key] = Reply(**json.loads(reply))
        return found

    def rows(self, keys: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows under the keys as plain values, in the order of the keys."""
        with self._open() as db:
            for key in sorted(set(keys)):
                found = db.execute(
                    "select key, label, request, reply, at from replies where key = ?", (key,)
                ).fetchone()
                if found:
                    whole = dict(zip(("key", "label", "request", "reply", "at"), found, strict=True))
                    yield {**whole, "request": json.loads(whole["request"]), "reply": json.loads(whole["reply"])}

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Yield a writer that commits every reply at once."""
        with self._open() as db:
            yield Writer(db)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self._make()
            with closing(self._connect()) as db:
                db.execute("pragma synchronous = normal")
                yield db
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _make(self) -> None:
        """Make the file and its table where they are not there."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Two processes that turn a new file into a write-ahead log at once lock each other out.
            with FileLock(f"{self.path}.lock"), closing(self._connect()) as db:
                db.execute("pragma journal_mode = wal")
                db.execute(_TABLE)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> JournalError:
        return JournalError(
            f"the journal {self.path} cannot be used: {error}; see that the disk has room and the file may be "
            "written, then run the same command again: what was kept is not asked again"
        )

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=60, isolation_level=None)


@dataclass(frozen=True)
class Writer:
    """An open journal."""

    db: sqlite3.Connection

    def put(self, key: str, label: str, request: Mapping[str, object], reply: Reply) -> None:
        """Keep a reply, unless it is an error or empty; the first one under a key stays."""
        if not is_answer(reply):
            return
        row = (key, label, json.dumps(request, ensure_ascii=False), json.dumps(asdict(reply), ensure_ascii=False))
        self.db.execute("insert or ignore into replies values (?, ?, ?, ?, ?)", (*row, time.time()))


def is_answer(reply: Reply) -> bool:
    """Return whether a reply is kept: it is neither an error nor empty."""
    return reply.finish != "error" and bool(reply.text.strip())


def for_query(reply: Reply, query: str) -> Reply:
    """Return a kept reply as the reply to another query that asks the same."""
    return replace(reply, id=query)
