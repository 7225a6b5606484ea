"""What every model answered to every text, read from the runs' own files, one cell after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from noisyhealth.errors import DataError, StoreError
from noisyhealth.report.runs import in_order

if TYPE_CHECKING:
    from mlflow.entities import Run

    from noisyhealth.report.source import Source

Column = NDArray[Any]
_SAME = 1e-9  # a score and the same score computed again
PLACE = ("weights", "task", "model", "perturb", "level")


@dataclass(frozen=True)
class Given:
    """The answers to one version of a cell's texts, a row an example."""

    values: Column
    outcomes: Column
    right: NDArray[np.float64]
    replies: Column


@dataclass(frozen=True)
class Texts:
    """The texts of a cell and what was done to each; `digest` is of the file they come from.

    `field` says whether the text or the question on it was disturbed; both stand here as they were before.
    """

    digest: str
    field: str
    ids: Column
    groups: Column
    targets: Column
    texts: Column
    questions: Column
    disturbed: Column
    edits: Column
    edited: NDArray[np.int64]
    medical: NDArray[np.float64]


@dataclass(frozen=True)
class CellAnswers:
    """One disturbed cell: `place` is weights, task, model, perturbation and level."""

    run: Run
    place: tuple[str, str, str, str, str]
    texts: Texts
    clean: Given
    disturbed: Given


@dataclass
class Reader:
    """Reads cells; texts that several models were asked about are read once. `scratch` holds what a server sends."""

    store: Source
    scratch: Path
    _texts: dict[tuple[str, str, str], Texts] = field(default_factory=dict)

    def cells(self, runs: Sequence[Run]) -> Iterator[CellAnswers]:
        """Yield the answers of every disturbed cell, in the order of tables.

        Raises StoreError for a run whose files are gone, or whose two files are not on the same texts.
        """
        for run in in_order(runs):
            if run.data.tags["perturb"] != "none":
                yield self._cell(run)
                rmtree(self.scratch / str(run.info.run_id), ignore_errors=True)

    def _cell(self, run: Run) -> CellAnswers:
        tags = run.data.tags
        place = (tags["weights"], tags["task"], tags["answered_by"], tags["perturb"], tags["level"])
        path = self.store.artifact(run, "predictions.parquet", self.scratch)
        rows = _table(path, ["id", "version", "value", "outcome", "right", "reply"], run)
        texts = self._read(run, path)
        for version in ("clean", "disturbed"):
            _same(run, rows["id"][rows["version"] == version], texts.ids)
        clean, disturbed = (_given(rows, rows["version"] == version) for version in ("clean", "disturbed"))
        return CellAnswers(run, place, texts, clean, disturbed)

    def _read(self, run: Run, predictions: Path) -> Texts:
        path = self.store.artifact(run, "variants.parquet", self.scratch)
        digest = sha256(path.read_bytes()).hexdigest()
        key = (run.data.tags["task"], run.data.tags["data_hash"], digest)
        if key not in self._texts:
            self._texts[key] = _texts(path, digest, run, predictions)
        return self._texts[key]


def logged(run: Run, name: str, score: float, again: float | None) -> None:
    """Raise DataError where a run logged another score than its answers give; None: they do not give it."""
    if again is not None and abs(score - again) > _SAME:
        raise DataError(
            f"run {run.info.run_id} ({run.info.run_name}) logged {name} {score}, its answers give "
            f"{again}: metrics or predictions.parquet were changed; run the cell again in a new study"
        )


def _same(run: Run, ids: Column, others: Column) -> None:
    if list(ids) != list(others):
        raise StoreError(
            f"run {run.info.run_id}: predictions.parquet and variants.parquet are not on the same texts; its files "
            "were changed, run the cell again in a new study"
        )


def _given(rows: Mapping[str, Column], of: Column) -> Given:
    return Given(*(rows[name][of] for name in ("value", "outcome", "right", "reply")))


def _texts(path: Path, digest: str, run: Run, predictions: Path) -> Texts:
    found = _table(path, ["id", "disturbed", "edits", "edited_words", "dose_medical"], run)
    asked = _table(predictions, ["version", "id", "group", "text", "question", "target"], run)
    ids, groups, texts, questions, targets = (
        asked[name][asked["version"] == "clean"] for name in ("id", "group", "text", "question", "target")
    )
    _same(run, ids, found["id"])
    return Texts(
        digest=digest,
        field=run.data.tags["field"],
        ids=ids,
        groups=np.where(groups == "", ids, groups),
        targets=targets,
        texts=texts,
        questions=questions,
        disturbed=found["disturbed"],
        edits=found["edits"],
        edited=found["edited_words"].astype(np.int64),
        medical=found["dose_medical"].astype(np.float64),
    )


def _table(path: Path, columns: Sequence[str], run: Run) -> dict[str, Column]:
    try:
        table = pq.read_table(path, columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"run {run.info.run_id}: {path.name} cannot be read: {error}") from None
    if lacking := [name for name in columns if name not in table.column_names]:
        raise StoreError(
            f"run {run.info.run_id}: {path.name} has no column {', '.join(lacking)}: it was made by another version "
            "of noisyhealth; run the cell again"
        )
    return {name: table[name].to_numpy(zero_copy_only=False) for name in columns}
