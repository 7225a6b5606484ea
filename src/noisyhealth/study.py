"""What makes cells a study: the key of a cell, what is done, what is missing, what became of each."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisyhealth import mitigated, own_code, version
from noisyhealth.cell import Cell
from noisyhealth.dataset.design import Design
from noisyhealth.mitigated import Mitigated
from noisyhealth.models.model import reply_key
from noisyhealth.overrides import nearest
from noisyhealth.records import Dose, Example, Query, Reply, Variant
from noisyhealth.tracking.entries import Headline
from noisyhealth.tracking.store import Store

if TYPE_CHECKING:
    from noisyhealth.dataset.table import Build

DONE, REUSED, FAILED, KILLED, MISSING = "done", "reused", "failed", "killed", "not run"
_LISTED = 10  # studies that a message names
PLANNED = "cells.json"  # of a sweep's run in MLflow: the names of the cells that it set out to run


@dataclass(frozen=True)
class Asked:
    """What a cell asks: for each test example its clean and its disturbed text, and the keys of the replies.

    With `mitigated`, copies of each text instead, as many as the mitigation makes.
    """

    examples: tuple[Example, ...]
    variants: tuple[Variant, ...]
    clean: tuple[Query, ...]
    disturbed: tuple[Query, ...]
    clean_keys: tuple[str, ...]
    disturbed_keys: tuple[str, ...]
    build: Build
    mitigated: Mitigated | None = None


@dataclass(frozen=True)
class Record:
    """What became of a cell in one sweep: `run` and `headline` where it is done, `error` where it is not."""

    cell: str
    key: str
    status: str
    run: str = ""
    headline: Headline | None = None
    error: str = ""


def unknown(store: Store) -> str:
    """Return the sentence on a study that a store does not have, with those that it has.

    Raises StoreError where the store cannot be asked.
    """
    there = store.studies()
    near = nearest(store.study, there)
    listed = f"{', '.join(there[:_LISTED])}{' and more' if len(there) > _LISTED else ''}"
    meant = f", did you mean {near}?" if near else ";"
    known = f"{meant} there are {listed}" if there else ", nor any other"
    return f"there is no study {store.study!r} at {store.uri}{known}. `python run.py study={store.study}` begins it"


def asked(cell: Cell) -> Asked:
    """Return what the cell asks; the model has its shots or training set afterwards, but no weights loaded.

    Raises DataError where the task's texts cannot be read or are too few.
    """
    build = _build(cell.design, cell.cache)
    cell.model.fit(cell.task.wording, build.training)
    examples = build.test
    variants = _variants(build, cell, examples)
    clean = tuple(cell.task.query(e) for e in examples)
    disturbed = mitigated.queries(cell, examples, variants)
    found = mitigated.of(cell, build, variants) if cell.mitigation else None
    if found:
        clean, disturbed = (mitigated.copied(cell, examples, copies) for copies in (found.clean, found.disturbed))
    own = own_code.hashes(cell.resolved["model"])
    return Asked(
        examples,
        variants,
        clean,
        disturbed,
        tuple(reply_key(cell.model, q, cell.repeat, own) for q in clean),
        tuple(reply_key(cell.model, q, cell.repeat, own) for q in disturbed),
        build,
        found,
    )


def _variants(build: Build, cell: Cell, examples: Sequence[Example]) -> tuple[Variant, ...]:
    """Return the cell's variant of each example; the baseline's is the text itself."""
    if not cell.rate:
        return tuple(Variant(example.id, example.text, (), Dose()) for example in examples)
    made = build.variants(cell.perturb, cell.level)
    return tuple(made[example.id] for example in examples)


def _build(design: Design, folder: str) -> Build:
    """Return the design's build, read once a process."""
    held = f"{folder} {design.task} {design.hash}"
    if held not in _builds:
        from noisyhealth.dataset import build

        _builds[held] = build.load(design, folder)
    return _builds[held]


_builds: dict[str, Build] = {}


def key(cell: Cell, asked: Asked, code: str = "", own: Mapping[str, str] | None = None) -> str:
    """Return the hash of all that can change the cell's result; `code`, `own`: hashes of other code than is here.

    Of the model: everything that decides its replies, through their keys. Of the rest: the task with its
    scoring, the targets, the perturbation and its level, the seed, and the code. And the factors of an ablation,
    though they change nothing by themselves: the same cell under two designs is a run in each, and asks nothing twice.
    """
    whole = {
        "answered_by": [cell.weights, cell.model.label],
        "replies": [asked.clean_keys, asked.disturbed_keys],
        "task": cell.resolved["task"],
        "build": asked.build.hash,
        "perturb": cell.perturb,
        "level": cell.level,
        "rate": cell.rate,
        "seed": cell.seed,
        "code": code or version.of(),
        **mitigated.key(cell, asked.mitigated),
        **({"factors": dict(cell.factors)} if cell.factors else {}),
    }
    if metric := cell.resolved.get("metric"):
        whole["metric"] = metric
    if own := own_code.hashes(cell.resolved) if own is None else own:
        whole["own_code"] = dict(own)
    return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Ledger:
    """What became of the cells of one sweep: a file that its processes append to."""

    path: Path

    def add(self, record: Record) -> None:
        """Append one record; of a line that the disk had no room for, the rest is passed over when it is read.

        Raises OSError where the line is not whole.
        """
        line = f"\n{json.dumps(asdict(record), ensure_ascii=False)}\n".encode()  # nor does it spoil the next one
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        finally:
            os.close(handle)

    def stop(self, reason: str) -> None:
        """Note that no further cell of the sweep should be run, and why."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stop.write_text(reason, encoding="utf-8")

    def stopped(self) -> str:
        """Return why no further cell should be run, "" while cells should."""
        return self._stop.read_text(encoding="utf-8") if self._stop.exists() else ""

    def give(self, replies: Mapping[str, Reply]) -> None:
        """Note replies that no journal keeps, by key, so that no cell of the sweep asks for them again."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._given.write_text(json.dumps({key: asdict(reply) for key, reply in replies.items()}), encoding="utf-8")

    def given(self) -> dict[str, Reply]:
        """Return these replies."""
        if not self._given.exists():
            return {}
        return {key: Reply(**row) for key, row in json.loads(self._given.read_text(encoding="utf-8")).items()}

    @property
    def _given(self) -> Path:
        return self.path.with_name("given.json")

    @property
    def _stop(self) -> Path:
        return self.path.with_name("stopped.txt")

    def read(self) -> list[Record]:
        """Return the records so far."""
        if not self.path.exists():
            return []
        rows = (_whole(line) for line in self.path.read_bytes().split(b"\n"))
        return [_record(row) for row in rows if row]


def _whole(line: bytes) -> dict[str, Any] | None:
    """Return what a line holds, None where it stops in the middle."""
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return row


def _record(row: dict[str, Any]) -> Record:
    found = row.pop("headline")
    return Record(**row, headline=Headline(**found) if found else None)


def exit_code(records: Sequence[Record]) -> int:
    """Return 0 when every cell is done or was before, else 1."""
    return 0 if all(r.status in (DONE, REUSED) for r in records) else 1
