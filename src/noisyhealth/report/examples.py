"""What the single answers of a study say: the change of every score and its uncertainty, and flips."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from noisyhealth.analysis import bootstrap, floor, paired
from noisyhealth.analysis.flips import flip_counts, flips
from noisyhealth.analysis.impact import Category
from noisyhealth.analysis.intervals import Interval
from noisyhealth.analysis.trend import improvement
from noisyhealth.metrics.overlap import rouge_l_each
from noisyhealth.progress import steps
from noisyhealth.report.answers import PLACE, CellAnswers, Reader, logged
from noisyhealth.report.beside import Submit
from noisyhealth.report.kept import Writer

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Run

    from noisyhealth.analysis.paired import Change
    from noisyhealth.report.source import Source

SHOWN = 200
"""The most examples of a task that a page shows."""
_FLOOR = 200  # pairs of an answer and another text's reference


@dataclass(frozen=True)
class Examples:
    """What all answers say.

    `changes`: a row a scenario; `clean`: a row a task, model and score; `flips`: a row a cell; `items`: a row an answer
    to a disturbed text, as `analysis.medical` takes it; `shown`: has the examples for the page; `doubts`: what
    does not fit together, in sentences.
    """

    changes: pd.DataFrame
    flips: pd.DataFrame
    clean: pd.DataFrame
    items: pd.DataFrame
    shown: Writer
    doubts: tuple[str, ...]

    def of(self, weights: str) -> Examples:
        """Return the same with the rows of one set of weights."""
        frames = (self.changes, self.flips, self.clean, self.items)
        changes, flipped, clean, items = (_own(frame, weights) for frame in frames)
        return replace(self, changes=changes, flips=flipped, clean=clean, items=items)


def read(store: Source, runs: Sequence[Run], folder: Path, submit: Submit, *, seed: int, warning: str = "") -> Examples:
    """Return what the answers of all disturbed cells say, and write them to `folder`; `submit` has them resampled.

    Raises StoreError for files that cannot be read, DataError where a run's logged score is not that of its answers.
    """
    import pandas as pd

    changes: list[tuple[Run, dict[str, str], Callable[[], Mapping[str, Change]]]] = []
    flipped: list[dict[str, Any]] = []
    baselines: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    parts: list[_Part] = []
    clean: dict[tuple[str, ...], dict[tuple[str, ...], list[str]]] = {}
    texts: dict[tuple[str, ...], dict[tuple[str, ...], list[str]]] = {}
    total = sum(run.data.tags["perturb"] != "none" for run in runs)
    with TemporaryDirectory() as scratch, Writer(folder, SHOWN, warning) as writer:
        for cell in steps(Reader(store, Path(scratch)).cells(runs), "reading answers", total, "cell"):
            pairs = _pairs(cell)
            found = flips(pairs.clean, pairs.disturbed, pairs.clean_right, pairs.disturbed_right)
            given = submit(_resampled, pairs, cell.run.data.tags["scenarios"].split(","), seed)
            changes.append((cell.run, dict(zip(PLACE, cell.place, strict=True)), given))
            flipped.append(_flips(cell, found))
            if cell.place[:3] not in baselines:
                baselines[cell.place[:3]] = list(_baselines(cell))
            parts.append(_part(cell))
            run_id, (weights, task, model, perturb, level) = cell.run.info.run_id, cell.place
            clean.setdefault((weights, task, model), {}).setdefault(tuple(cell.clean.values), []).append(run_id)
            texts.setdefault((weights, task, perturb, level), {}).setdefault((cell.texts.digest,), []).append(run_id)
            writer.add(cell, found)
        told = steps(changes, "resampling answers", unit="cell")
        changed = [row for run, place, given in told for row in _changes(run, place, given())]
    doubts = (*_doubts(clean, "the answers to the clean texts"), *_doubts(texts, "the disturbed texts"))
    clean_answers = pd.DataFrame([row for rows in baselines.values() for row in rows])
    return Examples(pd.DataFrame(changed), pd.DataFrame(flipped), clean_answers, _items(parts), writer, doubts)


def _own(frame: pd.DataFrame, weights: str) -> pd.DataFrame:
    return frame[frame["weights"] == weights]


def _pairs(cell: CellAnswers) -> paired.Pairs:
    return paired.Pairs(
        targets=cell.texts.targets.tolist(),
        clean=cell.clean.values.tolist(),
        disturbed=cell.disturbed.values.tolist(),
        clean_right=cell.clean.right.tolist(),
        disturbed_right=cell.disturbed.right.tolist(),
        groups=cell.texts.groups.tolist(),
        labels=json.loads(cell.run.data.tags["labels"]),
    )


def _resampled(pairs: paired.Pairs, scores: Sequence[str], seed: int) -> Mapping[str, Change]:
    return paired.changes(pairs, scores, seed=seed)


def _changes(run: Run, place: Mapping[str, str], found: Mapping[str, Change]) -> Iterator[dict[str, Any]]:
    metrics = run.data.metrics
    for name, change in found.items():
        logged(run, name, metrics[name], change.disturbed)
        logged(run, name, metrics[f"clean/{name}"], change.clean)
        yield {**place, "score_name": name, **_row(change)}


def _row(change: Change) -> dict[str, Any]:
    shares = change.categories or {}
    return {
        "independent": change.groups,
        **_ends("baseline", change.clean_interval),
        **_ends("value", change.disturbed_interval),
        **_ends("change", change.relative_interval),
        **{f"{one}_probability": shares.get(one) for one in Category},
        **{"p": change.p, "method": change.method, "note": change.note},
    }


def _ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    return {f"{name}_{end}": getattr(interval, end) if interval else None for end in ("low", "high")}


def _flips(cell: CellAnswers, found: Any) -> dict[str, Any]:
    # Texts of one group (a patient) rise and fall together: the sign of their sum is flipped.
    places = bootstrap.positions(cell.texts.groups.tolist(), len(found))
    better = improvement(np.bincount(places, weights=cell.disturbed.right - cell.clean.right))
    place = dict(zip(PLACE, cell.place, strict=True))
    counts = {name.replace(" ", "_"): count for name, count in flip_counts(found).items()}
    unread = {
        "unread": int((cell.disturbed.outcomes != "scored").sum()),
        "unread_clean": int((cell.clean.outcomes != "scored").sum()),
    }
    mean = float((cell.disturbed.right - cell.clean.right).mean())
    told = {"mean_change": mean, "better_p": better.p, "note": better.note}
    return {**place, "n": len(found), "independent": int(places.max()) + 1, **counts, **unread, **told}


def _baselines(cell: CellAnswers) -> Iterator[dict[str, Any]]:
    """Yield for each score what answers that do not follow from the text would have, and the model's commonest one."""
    place, tags = dict(zip(PLACE[:3], cell.place[:3], strict=True)), cell.run.data.tags
    labels, targets = json.loads(tags["labels"]), cell.texts.targets.tolist()
    [(answer, often)] = Counter(cell.clean.values.tolist()).most_common(1)
    floors = floor.constant(targets, len(labels)) if labels else {"rougeL": _free_floor(cell)}
    own = {"commonest": str(answer), "commonest_share": often / len(targets)} if labels else {}
    for name in tags["scenarios"].split(","):
        yield {**place, "score_name": name, "floor": floors.get(name), "commonest": "", "commonest_share": None, **own}


def _free_floor(cell: CellAnswers) -> float | None:
    """Return what the same answers score where they answer nothing: ROUGE-L against the references of other texts.

    None for another score, for answers that were not kept, and where no two texts are of two groups.
    """
    tags, texts = cell.run.data.tags, cell.texts
    if tags["headline"] != "rougeL" or tags.get("keep_text") == "false":
        return None
    n = len(texts.ids)
    each = ((at, (at + offset) % n) for offset in range(1, n) for at in range(n))
    pairs = list(islice(((at, other) for at, other in each if texts.groups[at] != texts.groups[other]), _FLOOR))
    if not pairs:
        return None
    answers, others = (list(places) for places in zip(*pairs, strict=True))
    return float(np.mean(rouge_l_each(texts.targets[others].tolist(), cell.clean.values[answers].tolist())))


def _part(cell: CellAnswers) -> _Part:
    texts = cell.texts
    medical = np.where(texts.edited > 0, texts.medical, np.nan)  # without an edit there is no share
    return _Part(cell.place, texts.ids, texts.groups, cell.clean.right, cell.disturbed.right, texts.edited, medical)


def _doubts(found: Mapping[tuple[str, ...], Mapping[tuple[str, ...], Sequence[str]]], what: str) -> Iterator[str]:
    """Yield where cells that should share something do not."""
    for (weights, *place), kinds in found.items():
        if len(kinds) > 1:
            runs = "; ".join(f"{len(runs)} runs like {runs[0]}" for runs in kinds.values())
            yield f"{' · '.join(place)} (weights {weights}): its cells do not share {what} ({runs})"


@dataclass(frozen=True)
class _Part:
    """The numbers of one cell."""

    place: tuple[str, str, str, str, str]
    ids: Any
    groups: Any
    clean_right: Any
    right: Any
    edits: Any
    medical: Any


def _items(parts: Sequence[_Part]) -> pd.DataFrame:
    """Return one row an answer; names are categories, so that a million rows stay small."""
    import pandas as pd

    sizes = [len(part.ids) for part in parts]
    frame = {}
    for at, name in enumerate(PLACE):
        values = list(dict.fromkeys(part.place[at] for part in parts))
        codes = np.repeat([values.index(part.place[at]) for part in parts], sizes)
        frame[name] = pd.Categorical.from_codes(codes, categories=pd.Index(values))
    for name in ("id", "group"):
        known: dict[str, int] = {}
        column = "ids" if name == "id" else "groups"
        each = [[known.setdefault(str(one), len(known)) for one in getattr(part, column)] for part in parts]
        codes = np.concatenate(each)
        frame[name] = pd.Categorical.from_codes(codes, categories=pd.Index(list(known)))
    numbers = ("clean_right", "right", "edits", "medical")
    return pd.DataFrame({**frame, **{name: np.concatenate([getattr(p, name) for p in parts]) for name in numbers}})
