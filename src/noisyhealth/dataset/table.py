"""The built dataset as one Parquet table: a row a kept text, with every variant, its edits and its dose."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from noisyhealth.dataset.attrition import Attrition
from noisyhealth.dataset.split import PROMPT, TEST, TRAIN, VALIDATION, Splits
from noisyhealth.errors import DataError
from noisyhealth.records import Dose, Edit, Example, Training, Variant

TABLE, FACTS = "dataset.parquet", "build.json"
_EXAMPLE = ("id", "text", "target", "question", "group")
_SPLITS = ("split", "encoder_split")
_EDIT = {
    "start": pa.int32(),
    "before": pa.string(),
    "after": pa.string(),
    "op": pa.string(),
    "pos": pa.string(),
    "medical": pa.bool_(),
    "word": pa.int32(),
    "flags": pa.list_(pa.string()),
}
_DOSE = {
    "words": pa.float64(),
    "valid_words": pa.float64(),
    "characters": pa.float64(),
    "edit_distance": pa.int32(),
    "medical": pa.float64(),
    "total_words": pa.int32(),
    "total_valid_words": pa.int32(),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A kept example, how many words and valid words its text has, and its variants by column name."""

    example: Example
    words: int
    valid_words: int
    variants: Mapping[str, Variant]


@dataclass(frozen=True)
class Build:
    """A built dataset in its folder.

    `hash` is that of examples and splits: cells that share it are tested on the same texts. `content` is that of
    every text, variant and edit. `facts` holds the attrition, the realised rates and the settings.
    """

    folder: Path

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """What is known of the build beside its texts."""
        found: Mapping[str, Any] = json.loads((self.folder / FACTS).read_text(encoding="utf-8"))
        return found

    def check(self) -> None:
        """Raise DataError where the folder is not as it was built."""
        try:
            whole = sha256_of(self.folder / TABLE) == self.facts["table"]
        except (OSError, ValueError, KeyError):
            whole = False
        if not whole:
            raise DataError(
                f"{self.folder} was changed or cut since it was built: delete that folder, and it is built again"
            )

    @property
    def hash(self) -> str:
        """The hash of examples and splits."""
        return str(self.facts["hash"])

    @cached_property
    def attrition(self) -> Attrition:
        """How many texts were read, usable, within reach and kept."""
        return Attrition.of(self.facts["attrition"])

    @property
    def test(self) -> tuple[Example, ...]:
        """The examples every model is tested on."""
        return self._of("split", TEST)

    @property
    def training(self) -> Training:
        """The examples models may learn from."""
        return Training(
            prompt=self._of("split", PROMPT),
            train=self._of("encoder_split", TRAIN),
            validation=self._of("encoder_split", VALIDATION),
        )

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Every kept example, in the order of the source."""
        return tuple(Example(**{name: row[name] for name in _EXAMPLE}) for row in self._examples)

    def variants(self, perturb: str, level: str) -> dict[str, Variant]:
        """Return the variants of the test examples at one level, by the example's id."""
        name = column(perturb, level)
        columns = ["id", name, f"{name}_edits", f"{name}_dose"]
        rows = pq.read_table(self.folder / TABLE, columns=columns, filters=[("split", "==", TEST)]).to_pylist()
        return {
            row["id"]: Variant(row["id"], row[name], _edits(row[f"{name}_edits"]), Dose(**row[f"{name}_dose"]))
            for row in rows
        }

    @cached_property
    def _examples(self) -> list[dict[str, str]]:
        rows: list[dict[str, str]] = pq.read_table(self.folder / TABLE, columns=[*_EXAMPLE, *_SPLITS]).to_pylist()
        return rows

    def _of(self, split: str, name: str) -> tuple[Example, ...]:
        return tuple(e for e, row in zip(self.examples, self._examples, strict=True) if row[split] == name)


def sha256_of(path: Path) -> str:
    """Return the hash of a file's bytes."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def column(perturb: str, level: str) -> str:
    """Return the name of the column that holds a variant's text."""
    return f"{perturb}_{level}"


def _edits(rows: Iterable[dict[str, Any]]) -> tuple[Edit, ...]:
    return tuple(Edit(**{**row, "flags": tuple(row["flags"])}) for row in rows)


def batch(rows: Sequence[Row], names: Sequence[str]) -> pa.RecordBatch:
    """Return rows as Arrow holds them, without the splits, which are known only when all texts are."""
    columns: dict[str, pa.Array] = {
        name: pa.array([getattr(row.example, name) for row in rows], pa.string()) for name in _EXAMPLE
    }
    columns["words"] = pa.array([row.words for row in rows], pa.int32())
    columns["valid_words"] = pa.array([row.valid_words for row in rows], pa.int32())
    for name in names:
        variants = [row.variants[name] for row in rows]
        columns[name] = pa.array([v.text for v in variants], pa.string())
        columns[f"{name}_edits"] = _lists(
            [len(v.edits) for v in variants], _structs([e for v in variants for e in v.edits], _EDIT)
        )
        columns[f"{name}_dose"] = _structs([v.dose for v in variants], _DOSE)
    return pa.RecordBatch.from_pydict(columns)


def _structs(items: Sequence[Any], fields: Mapping[str, pa.DataType]) -> pa.StructArray:
    arrays = [pa.array([getattr(item, name) for item in items], kind) for name, kind in fields.items()]
    return pa.StructArray.from_arrays(arrays, fields=[pa.field(name, kind) for name, kind in fields.items()])


def _lists(sizes: Sequence[int], values: pa.Array) -> pa.ListArray:
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


def with_splits(part: pa.RecordBatch, found: Splits) -> pa.RecordBatch:
    """Return the rows with their splits after the example's own columns."""
    ids = part.column("id").to_pylist()
    splits = [pa.array([split[i] for i in ids], pa.string()) for split in (found.generative, found.encoder)]
    at = len(_EXAMPLE)
    names = [*part.schema.names[:at], *_SPLITS, *part.schema.names[at:]]
    return pa.RecordBatch.from_arrays([*part.columns[:at], *splits, *part.columns[at:]], names=names)


def write(path: Path, parts: Iterator[pa.RecordBatch], facts: Mapping[str, object] | None = None) -> None:
    """Write batches as row groups of a Parquet file, `facts` as its metadata, one batch in memory at a time."""
    writer: pq.ParquetWriter | None = None
    try:
        for part in parts:
            if writer is None:
                known = {b"noisyhealth": json.dumps(facts or {}).encode()}
                writer = pq.ParquetWriter(path, part.schema.with_metadata(known), compression="zstd")
            writer.write_batch(part)
    finally:
        if writer is not None:
            writer.close()


def example_lines(part: pa.RecordBatch) -> Iterator[bytes]:
    """Yield each example with its splits as one line for a hash."""
    for row in part.select([*_EXAMPLE, *_SPLITS]).to_pylist():
        yield json.dumps([row[name] for name in (*_EXAMPLE, *_SPLITS)]).encode() + b"\n"


def content_line(row: Row, names: Sequence[str]) -> bytes:
    """Return a row with every variant and edit as one line for a hash."""
    made = [
        [v.text, [(e.start, e.before, e.after, e.op, e.pos, e.medical, e.word, e.flags) for e in v.edits]]
        for v in (row.variants[name] for name in names)
    ]
    return json.dumps([row.example.id, row.example.text, row.example.question, *made]).encode() + b"\n"
