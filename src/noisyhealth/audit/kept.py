"""A run as it was kept: its files, and what MLflow says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import yaml
from omegaconf import OmegaConf

from noisyhealth import settings
from noisyhealth.dataset.table import Build
from noisyhealth.errors import DataError
from noisyhealth.evidence import CONFIG, CURVES, FIT, METRICS, MODEL, PREDICTIONS, VARIANTS
from noisyhealth.models.model import key_of
from noisyhealth.records import Answer, Dose, Edit, Example, Fit, Outcome, Reply, Variant
from noisyhealth.scoring import Read, Result, scores
from noisyhealth.settings import Cell
from noisyhealth.study import Asked
from noisyhealth.tracking.seal import MARK

if TYPE_CHECKING:
    from mlflow.entities import Run

Row = Mapping[str, Any]
_DOSE = "dose_"


@dataclass(frozen=True)
class Logged:
    """What MLflow says of a run. `started`: milliseconds since 1970."""

    name: str
    status: str
    started: int
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    params: Mapping[str, str]

    @classmethod
    def of(cls, run: Run) -> Logged:
        """Return it of a run as MLflow's client gives it."""
        info, data = run.info, run.data
        own = {name: value for name, value in data.tags.items() if not name.startswith("mlflow.")}
        return cls(
            str(info.run_name), str(info.status), int(info.start_time), dict(data.metrics), own, dict(data.params)
        )

    def plain(self) -> dict[str, Any]:
        """Return it as plain JSON values, which `Logged(**...)` takes."""
        return asdict(self)


@dataclass(frozen=True)
class KeptRun:
    """A run: its id, the folder with its files, and what MLflow said of it."""

    id: str
    folder: Path
    logged: Logged

    @cached_property
    def config(self) -> dict[str, Any]:
        """The settings it ran by.

        Raises DataError where they are no settings.
        """
        found = _safe_load((self.folder / CONFIG).read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise DataError(f"run {self.id}: {CONFIG} holds no settings")
        return found

    def cell(self) -> Cell:
        """Return the cell that its settings describe, which makes the objects they name."""
        factors = json.loads(self.numbers["tags"].get("factors", "{}"))
        return settings.cell(OmegaConf.create(self.config), factors=factors)

    @cached_property
    def model(self) -> Row:
        """What decided the model's replies beside the queries (`signature`), and the ids of its `shots`."""
        return self._json(MODEL)

    @cached_property
    def numbers(self) -> Row:
        """The run's own account of its `metrics` and `tags`."""
        return self._json(METRICS)

    @cached_property
    def fit(self) -> Fit | None:
        """How its model was fine-tuned, None where it was not."""
        if not (self.folder / FIT).exists():
            return None
        curves = (self.folder / CURVES).read_text(encoding="utf-8")
        return Fit(str(self.numbers["tags"]["fit"]), self._json(FIT), curves)

    @cached_property
    def predictions(self) -> list[Row]:
        """A row for each text that was asked about, the clean ones first."""
        return list(pq.read_table(self.folder / PREDICTIONS).to_pylist())

    @cached_property
    def variants(self) -> list[Row]:
        """A row for each text that was disturbed."""
        return list(pq.read_table(self.folder / VARIANTS).to_pylist())

    def asked(self, cell: Cell) -> Asked:
        """Return what it asked, from the rows it kept; keys are computed again.

        Raises DataError where the rows do not fit together.
        """
        clean = [row for row in self.predictions if row["version"] == "clean"]
        others = [row for row in self.predictions if row["version"] == "disturbed"] if cell.rate else clean
        for rows in (clean, others):
            if [row["id"] for row in rows] != [row["id"] for row in self.variants]:
                raise DataError(f"{PREDICTIONS} and {VARIANTS} are not on the same texts in the same order")
        examples = tuple(
            _example(row, cell.field, variant["original"]) for row, variant in zip(clean, self.variants, strict=True)
        )
        variants = tuple(map(_variant, self.variants))
        queries = tuple(map(cell.task.query, examples))
        disturbed = tuple(
            cell.task.query(replace(example, **{cell.field: variant.text}))
            for example, variant in zip(examples, variants, strict=True)
        )
        keys, other_keys = (tuple(self._key(row, cell.repeat) for row in rows) for rows in (clean, others))
        return Asked(examples, variants, queries, disturbed, keys, other_keys, Build(self.folder))

    def _key(self, row: Row, repeat: int) -> str:
        if row["request"].startswith(MARK):
            return str(row["reply_key"])
        return key_of(self.model["signature"], json.loads(row["request"]), repeat)

    def _json(self, name: str) -> Row:
        return MappingProxyType(json.loads((self.folder / name).read_text(encoding="utf-8")))


def _safe_load(text: str) -> object:
    """Return what `yaml.safe_load` does, ten times as fast where libyaml is there."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        found: object = loader.get_single_data()
    finally:
        loader.dispose()
    return found


def _example(row: Row, field: str, original: str) -> Example:
    found = {"text": row["text"], "question": row["question"], field: original}
    return Example(row["id"], found["text"], row["target"], found["question"], row["group"])


def _variant(row: Row) -> Variant:
    edits = tuple(Edit(**{**edit, "flags": tuple(edit["flags"])}) for edit in json.loads(row["edits"]))
    dose = {name.removeprefix(_DOSE): value for name, value in row.items() if name.startswith(_DOSE)}
    return Variant(row["id"], row["disturbed"], edits, Dose(**dose))


def from_values(run: KeptRun, cell: Cell, asked: Asked) -> Result:
    """Return what a run found from the answers it kept, where it kept no replies to read again."""
    answers = [Answer(row["id"], "", row["value"], Outcome(row["outcome"])) for row in run.predictions]
    given = tuple(replies(run.predictions))
    clean, others = (
        _read(cell, asked, given[at : at + len(asked.clean)], answers[at : at + len(asked.clean)])
        for at in (0, len(asked.clean) if cell.rate else 0)
    )
    return Result(clean, others)


def _read(cell: Cell, asked: Asked, given: Sequence[Reply], answers: Sequence[Answer]) -> Read:
    right = tuple(cell.task.right(example, answer) for example, answer in zip(asked.examples, answers, strict=True))
    return Read(tuple(given), tuple(answers), right, scores(cell, asked.examples, answers))


def replies(rows: list[Row]) -> Iterator[Reply]:
    """Yield the replies as they were given."""
    for row in rows:
        yield Reply(
            id=row["id"],
            text=row["reply"],
            finish=row["finish"],
            prompt_tokens=row["prompt_tokens"],
            reply_tokens=row["reply_tokens"],
            seconds=row["seconds"],
            detail=json.loads(row["detail"]),
        )
