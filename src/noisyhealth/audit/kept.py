"""A run as it was kept: its files, and what MLflow says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import yaml
from omegaconf import OmegaConf

from noisyhealth import mitigated, scoring, settings
from noisyhealth.cell import NONE, Cell
from noisyhealth.dataset.table import Build
from noisyhealth.errors import DataError
from noisyhealth.evidence import CALLS, CONFIG, CURVES, FIT, LEARNED, METRICS, MODEL, PREDICTIONS, VARIANTS
from noisyhealth.mitigated import Copies, Mitigated
from noisyhealth.models.model import key_of
from noisyhealth.records import Answer, Dose, Edit, Example, Fit, Outcome, Query, Reply, Variant
from noisyhealth.scoring import Result
from noisyhealth.study import Asked
from noisyhealth.tracking.seal import MARK

if TYPE_CHECKING:
    from mlflow.entities import Run

Row = Mapping[str, Any]
_DOSE = "dose_"
_VERSIONS = ("clean", "disturbed")


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
    def calls(self) -> list[Row]:
        """A row for each reply: of copies where copies of the texts were asked, else of the texts themselves."""
        if self.config.get("mitigate", {}).get("name", NONE) == NONE:
            return self.predictions
        return list(pq.read_table(self.folder / CALLS).to_pylist())

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
        disturbed = mitigated.queries(cell, examples, variants)
        found = self._mitigated(cell, queries, disturbed) if cell.mitigation else None
        if found:
            queries, disturbed = (mitigated.copied(cell, examples, copies) for copies in (found.clean, found.disturbed))
        keys = {name: tuple(self._key(row, cell.repeat) for row in self._version(name)) for name in _VERSIONS}
        other_keys = keys["disturbed"] if cell.rate else keys["clean"]
        return Asked(examples, variants, queries, disturbed, keys["clean"], other_keys, Build(self.folder), found)

    def _version(self, name: str) -> list[Row]:
        return [row for row in self.calls if row["version"] == name]

    def _mitigated(self, cell: Cell, clean: Sequence[Query], disturbed: Sequence[Query]) -> Mitigated:
        """Return what was asked in place of the texts, which are given as they came in."""
        first = _copies(self._version("clean"), clean)
        second = _copies(self._version("disturbed"), disturbed) if cell.rate else first
        return Mitigated(self._json(LEARNED), first, second)

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
    dose = {name.removeprefix(_DOSE): value for name, value in row.items() if name.startswith(_DOSE)}
    return Variant(row["id"], row["disturbed"], _edits(row), Dose(**dose))


def _edits(row: Row) -> tuple[Edit, ...]:
    return tuple(Edit(**{**edit, "flags": tuple(edit["flags"])}) for edit in json.loads(row["edits"]))


def _copies(rows: Sequence[Row], came: Sequence[Query]) -> Copies:
    """Return what was asked in place of texts, from a row a copy.

    Raises DataError where the rows are not those of the texts in the same order.
    """
    groups = [list(group) for _, group in groupby(rows, key=itemgetter("id"))]
    if [group[0]["id"] for group in groups] != [one.id for one in came]:
        raise DataError(f"{CALLS} and {PREDICTIONS} are not on the same texts in the same order")
    asked = tuple(tuple(Variant(row["id"], row["text"], _edits(row), Dose()) for row in group) for group in groups)
    return Copies(tuple(came), asked, tuple(json.loads(group[0]["facts"]) for group in groups))


def from_values(run: KeptRun, cell: Cell, asked: Asked) -> Result:
    """Return what a run found from the answers it kept, where it kept no replies to read again."""
    answers = [Answer(row["id"], "", row["value"], Outcome(row["outcome"])) for row in run.calls]
    return scoring.judged(cell, asked, list(replies(run.calls)), answers)


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
