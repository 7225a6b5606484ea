"""Every text and every answer behind a report as two Parquet files, and those of them that its page shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from noisyhealth.report.answers import PLACE, CellAnswers, Column, Given
from noisyhealth.report.items import Items
from noisyhealth.sealed import NOT_KEPT

ANSWERS, TEXTS = "answers.parquet", "texts.parquet"
_ANSWERS = pa.schema(
    [
        *((name, pa.string()) for name in (*PLACE, "run_id", "id", "group", "target", "value", "outcome")),
        ("right", pa.float64()),
        *((name, pa.string()) for name in ("flip", "reply", "texts")),
        ("edits", pa.int64()),
        ("medical_share", pa.float64()),
    ]
)
_TEXTS = pa.schema(
    [
        *((name, pa.string()) for name in ("weights", "task", "perturb", "level", "id", "group", "target", "question")),
        *((name, pa.string()) for name in ("field", "text", "disturbed", "edits", "texts")),
    ]
)


@dataclass
class Writer:
    """Writes both files into a folder, a cell at a time, and keeps up to `shown` examples a task for the page.

    What keeps the study from being whole (`warning`) stands in the files' metadata. answers.parquet has the answers to
    the clean texts once a model, as perturbation "none"; texts.parquet each disturbed text once, whoever was asked
    about it; `texts` is the same in both where an answer is to that text.
    """

    folder: Path
    shown: int
    warning: str = ""
    _stack: ExitStack = field(default_factory=ExitStack)
    _seen: set[tuple[str, ...]] = field(default_factory=set)
    _examples: dict[tuple[str, str], dict[str, dict[str, Any]]] = field(default_factory=dict)
    _totals: dict[tuple[str, str], int] = field(default_factory=dict)
    _sealed: bool = False

    def __enter__(self) -> Writer:
        self._answers = self._opened(ANSWERS, _ANSWERS)
        self._written = self._opened(TEXTS, _TEXTS)
        return self

    def _opened(self, name: str, schema: pa.Schema) -> pq.ParquetWriter:
        said = schema.with_metadata({"incomplete": self.warning}) if self.warning else schema
        return self._stack.enter_context(pq.ParquetWriter(self.folder / name, said, compression="zstd"))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, cell: CellAnswers, flips: Column) -> None:
        """Write a cell; `flips` says for each example what became of its answer."""
        weights, task, model, perturb, level = cell.place
        if self._first("clean", weights, task, model):
            place = (weights, task, model, "none", "none")
            self._answers.write_table(_answers(cell, place, cell.clean, None))
        self._answers.write_table(_answers(cell, cell.place, cell.disturbed, flips))
        if self._first("texts", weights, task, perturb, level, cell.texts.digest):
            self._written.write_table(_texts(cell))
        if cell.run.data.tags.get("keep_text") == "false":
            self._sealed = True
        else:
            self._keep(cell, flips)

    def _first(self, *what: str) -> bool:
        new = what not in self._seen
        self._seen.add(what)
        return new

    def _keep(self, cell: CellAnswers, flips: Column) -> None:
        weights, task, model, perturb, level = cell.place
        kept = self._examples.setdefault((weights, task), {})
        self._totals.setdefault((weights, task), len(cell.texts.ids))
        places = {str(one): at for at, one in enumerate(cell.texts.ids)}
        for name in list(kept) or sorted(places, key=_rank)[: self.shown]:
            at = places[name]
            if name not in kept:
                kept[name] = _example(cell, at)
            example = kept[name]
            if not any(one["perturb"] == perturb and one["level"] == level for one in example["variants"]):
                edits = [_edit(edit) for edit in json.loads(cell.texts.edits[at])]
                example["variants"].append({"perturb": perturb, "level": level, "edits": edits})
            if model not in example["replies"]:
                example["replies"][model] = {"model": model, "clean": _answer(cell.clean, at), "cells": []}
            answer = {"perturb": perturb, "level": level, **_answer(cell.disturbed, at), "flip": str(flips[at])}
            example["replies"][model]["cells"].append(answer)

    def items(self, limit: int) -> Items:
        """Return the examples for the page: as many of each task as fit into `limit` bytes together."""
        ranked = [
            (rank, {**example, "replies": list(example["replies"].values())})
            for kept in self._examples.values()
            for rank, example in enumerate(kept.values())
        ]
        ranked.sort(key=lambda one: one[0])  # stable: a task's first, then every task's second
        chosen: list[tuple[int, dict[str, Any]]] = []
        size = 0
        for rank, example in ranked:
            size += len(json.dumps(example, ensure_ascii=False).encode())
            if size > limit and rank:
                chosen = [(at, one) for at, one in chosen if at < rank]
                break
            chosen.append((rank, example))
        order = list(self._examples)
        examples = sorted((one for _, one in chosen), key=lambda one: order.index((one["weights"], one["task"])))
        return Items(self._rule(len(examples)), tuple(examples))

    def _rule(self, shown: int) -> str:
        """Return in a sentence which examples the page has."""
        total = sum(self._totals.values())
        sealed = f"Runs whose {NOT_KEPT} show none. " if self._sealed else ""
        if shown == total:
            return f"{sealed}All {total} texts are shown." if total else sealed.strip()
        return (
            f"{sealed}{shown} of {total} texts are shown: of each task those whose ids' SHA-256 come first, whatever "
            f"was answered, at most {self.shown} of a task and as many as the page has room for. All answers are in "
            f"{ANSWERS}, all texts in {TEXTS}, beside this page."
        )


def _rank(name: str) -> str:
    return sha256(name.encode()).hexdigest()


def _example(cell: CellAnswers, at: int) -> dict[str, Any]:
    weights, task, *_ = cell.place
    texts = cell.texts
    return {
        **{"task": task, "weights": weights, "id": str(texts.ids[at]), "field": texts.field},
        **{"text": str(texts.texts[at]), "question": str(texts.questions[at]), "target": str(texts.targets[at])},
        **{"graded": not json.loads(cell.run.data.tags["labels"]), "variants": [], "replies": {}},
    }


def _edit(edit: Mapping[str, Any]) -> list[Any]:
    return [*(edit[name] for name in ("start", "before", "after", "op")), int(edit["medical"]), list(edit["flags"])]


def _answer(given: Given, at: int) -> dict[str, Any]:
    return {
        **{"value": str(given.values[at]), "reply": str(given.replies[at]), "outcome": str(given.outcomes[at])},
        "right": round(float(given.right[at]), 3),
    }


def _answers(cell: CellAnswers, place: Sequence[str], given: Given, flips: Column | None) -> pa.Table:
    texts, count = cell.texts, len(cell.texts.ids)
    columns = {
        **{name: pa.repeat(value, count) for name, value in zip(PLACE, place, strict=True)},
        **{"run_id": pa.repeat(str(cell.run.info.run_id), count), "id": texts.ids, "group": texts.groups},
        **{"target": texts.targets, "value": given.values, "outcome": given.outcomes, "right": given.right},
        **{"reply": given.replies, "flip": pa.repeat("", count) if flips is None else flips},
        "texts": pa.repeat(texts.digest[:16], count),
        "edits": pa.repeat(0, count) if flips is None else texts.edited,
        "medical_share": pa.repeat(0.0, count) if flips is None else texts.medical,
    }
    return pa.table({name: columns[name] for name in _ANSWERS.names}, schema=_ANSWERS)


def _texts(cell: CellAnswers) -> pa.Table:
    texts, count = cell.texts, len(cell.texts.ids)
    weights, task, _, perturb, level = cell.place
    place = {"weights": weights, "task": task, "perturb": perturb, "level": level}
    columns = {
        **{name: pa.repeat(value, count) for name, value in place.items()},
        **{"id": texts.ids, "group": texts.groups, "target": texts.targets, "question": texts.questions},
        **{"field": pa.repeat(texts.field, count), "text": texts.texts, "disturbed": texts.disturbed},
        **{"edits": texts.edits, "texts": pa.repeat(texts.digest[:16], count)},
    }
    return pa.table({name: columns[name] for name in _TEXTS.names}, schema=_TEXTS)
