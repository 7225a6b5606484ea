"""What single answers say of an ablation: each value of a setting against its reference, on the same texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from noisyhealth.analysis import impact, sums
from noisyhealth.analysis.components import Component, components
from noisyhealth.analysis.difference import Difference, difference
from noisyhealth.analysis.paired import Pairs
from noisyhealth.report import factors
from noisyhealth.report.answers import PLACE, CellAnswers, Reader, logged

if TYPE_CHECKING:
    from mlflow.entities import Run

    from noisyhealth.report.factors import Design
    from noisyhealth.report.source import Source

# Settings whose values stand for any others: how far they move a score is chance, not an effect.
CHANCE = ("draw", "repeat", "seed", "prompt.shot_seed", "model.seed")
OTHER_TEXTS = "other texts than the reference's: no difference within texts"
NO_REFERENCE = "no finished cell at the reference"

_Place = tuple[str, ...]


@dataclass(frozen=True)
class Answered:
    """One disturbed cell of a design: its values of the factors, and the headline score of its texts."""

    run: Run
    place: _Place
    values: Mapping[str, str]
    data: str
    ids: tuple[str, ...]
    targets: tuple[str, ...]
    groups: tuple[str, ...]
    answers: tuple[str, ...]
    right: tuple[float, ...]

    @property
    def headline(self) -> str:
        """The score that stands for the cell."""
        return str(self.run.data.tags["headline"])


def read(store: Source, runs: Sequence[Run]) -> list[Answered]:
    """Return the disturbed cells among runs with their answers, in the order of tables.

    Raises StoreError for files that cannot be read, DataError where a run's logged score is not that of its answers.
    """
    with TemporaryDirectory() as scratch:
        return [_answered(cell) for cell in Reader(store, Path(scratch)).cells(runs)]


def _answered(cell: CellAnswers) -> Answered:
    name, metrics = cell.run.data.tags["headline"], cell.run.data.metrics
    if name in sums.MEANS:
        logged(cell.run, name, metrics[name], float(cell.disturbed.right.mean()))
        logged(cell.run, f"clean/{name}", metrics[f"clean/{name}"], float(cell.clean.right.mean()))
    return Answered(
        run=cell.run,
        place=cell.place,
        values=factors.of(cell.run),
        data=cell.run.data.tags["data_hash"],
        ids=tuple(cell.texts.ids.tolist()),
        targets=tuple(cell.texts.targets.tolist()),
        groups=tuple(cell.texts.groups.tolist()),
        answers=tuple(cell.disturbed.values.tolist()),
        right=tuple(cell.disturbed.right.tolist()),
    )


def rows(design: Design, factor: str, cells: Sequence[Answered], seed: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each cell of a design, a factor's values under each other, against the factor's reference.

    The other factors of the design are held: a cell is compared with the one that differs in this factor alone.
    """
    others = [name for name in design.names if name != factor]
    order = {name: {value: at for at, value in enumerate(values)} for name, values in design.values.items()}
    alike: dict[tuple[_Place, tuple[str, ...]], list[Answered]] = {}
    for cell in cells:
        alike.setdefault((cell.place, tuple(cell.values[name] for name in others)), []).append(cell)
    for (place, held), same in alike.items():
        by_value = {cell.values[factor]: cell for cell in same}
        reference = by_value.get(design.values[factor][0])
        for value in sorted(by_value, key=order[factor].__getitem__):
            cell = by_value[value]
            set_to = {factor: value, **dict(zip(others, held, strict=True))}
            yield {**dict(zip(PLACE, place, strict=True)), **set_to, **_scored(cell), **_against(cell, reference, seed)}


def _scored(cell: Answered) -> dict[str, Any]:
    """Return the cell's scores and what it took, a text."""
    metrics, name = cell.run.data.metrics, cell.headline
    n, score, clean = int(metrics["n"]), metrics[name], metrics[f"clean/{name}"]
    cost = {
        "prompt_tokens": metrics.get("tokens/prompt"),
        "reply_tokens": metrics.get("tokens/reply"),
        "seconds": metrics.get("seconds/replies"),
        "usd": metrics.get("cost/usd"),
    }
    return {
        **{"score_name": name, "n": n, "baseline": clean, "value": score, "change": impact.change(score, clean)},
        "category": str(impact.category(score, clean)),
        **{what: None if spent is None else spent / n for what, spent in cost.items()},
        "run_id": cell.run.info.run_id,
    }


def _against(cell: Answered, reference: Answered | None, seed: int) -> dict[str, Any]:
    """Return how a cell differs from the reference, or why that cannot be said; nothing of the reference itself."""
    if reference is cell:
        return _told(None, "the reference")
    if reference is None:
        return _told(None, NO_REFERENCE)
    if (cell.data, cell.ids) != (reference.data, reference.ids):
        return _told(None, OTHER_TEXTS)
    labels = json.loads(cell.run.data.tags["labels"])
    pairs = Pairs(
        cell.targets, reference.answers, cell.answers, reference.right, cell.right, cell.groups, tuple(labels)
    )
    found = difference(pairs, cell.headline, seed=seed)
    return _told(found, found.note)


def _told(found: Difference | None, note: str) -> dict[str, Any]:
    interval = found.interval if found else None
    return {
        "difference": found.difference if found else None,
        "difference_low": interval.low if interval else None,
        "difference_high": interval.high if interval else None,
        "p": found.p if found else None,
        "method": found.method if found else "",
        "note": note,
    }


@dataclass(frozen=True)
class Variances:
    """The components of one place of a design: of `n` texts; `note` says why there are none."""

    place: _Place
    score: str
    n: int
    found: tuple[Component, ...] = ()
    note: str = ""


def variances(design: Design, cells: Sequence[Answered]) -> list[Variances]:
    """Return where the variance of single texts' scores comes from, a place after the other.

    Only of designs with a factor that stands for chance (`CHANCE`); nothing for others.
    """
    if not set(design.names) & set(CHANCE):
        return []
    places: dict[_Place, list[Answered]] = {}
    for cell in cells:
        places.setdefault(cell.place, []).append(cell)
    return [_variances(design, place, own) for place, own in places.items()]


def _variances(design: Design, place: _Place, cells: Sequence[Answered]) -> Variances:
    empty = Variances(place, cells[0].headline, len(cells[0].ids))
    if len({(cell.data, cell.ids) for cell in cells}) > 1:
        return Variances(*_head(empty), note="its cells are not on the same texts")
    shape = [len(values) for values in design.values.values()]
    if len(cells) < np.prod(shape) or len(cells[0].ids) < 2:
        return Variances(*_head(empty), note="not every combination of the values was run, or on one text alone")
    scores = np.empty((*shape, len(cells[0].ids)))
    for cell in cells:
        at = tuple(values.index(cell.values[name]) for name, values in design.values.items())
        scores[at] = cell.right
    return Variances(*_head(empty), tuple(components(np.moveaxis(scores, -1, 0), ["text", *design.names])))


def _head(empty: Variances) -> tuple[_Place, str, int]:
    return empty.place, empty.score, empty.n
