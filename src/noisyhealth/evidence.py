"""What a run keeps so that its numbers can be followed: texts, edits, prompts, replies, values, hashes."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import file_digest
from importlib.metadata import distributions
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from noisyhealth.records import Answer, Fit, Query, Reply, Scores
from noisyhealth.settings import Cell
from noisyhealth.study import Asked
from noisyhealth.text import tagger


@dataclass(frozen=True)
class Read:
    """Replies to one version of the texts, as read: how right each answer is (0 to 1), and all scores."""

    replies: tuple[Reply, ...]
    answers: tuple[Answer, ...]
    right: tuple[float, ...]
    scores: Scores


@dataclass(frozen=True)
class Result:
    """What a cell found on the clean and on the disturbed texts."""

    clean: Read
    disturbed: Read


def write(folder: Path, cell: Cell, asked: Asked, result: Result) -> None:
    """Write every artifact of a run into an empty folder, and last the hashes of them all."""
    (folder / "config.yaml").write_text(yaml.safe_dump(dict(cell.resolved), allow_unicode=True), encoding="utf-8")
    (folder / "prompt.txt").write_text(prompt(cell, asked), encoding="utf-8")
    (folder / "environment.json").write_text(json.dumps(environment(), indent=2), encoding="utf-8")
    (folder / "dataset.json").write_text(
        json.dumps(dict(asked.build.facts), indent=2, ensure_ascii=False), encoding="utf-8"
    )
    pq.write_table(
        pa.Table.from_pylist(list(_variants(asked, cell.field))), folder / "variants.parquet", compression="zstd"
    )
    pq.write_table(
        pa.Table.from_pylist(list(_predictions(cell, asked, result))),
        folder / "predictions.parquet",
        compression="zstd",
    )
    if fit := cell.model.fitted():
        write_fit(folder, fit)
    hashes = {path.name: _sha256(path) for path in sorted(folder.iterdir())}
    (folder / "manifest.json").write_text(json.dumps(hashes, indent=2), encoding="utf-8")


def write_fit(folder: Path, fit: Fit) -> None:
    """Write how a model was fitted, and the curves of it."""
    (folder / "fit.json").write_text(json.dumps(fit.facts, indent=1, ensure_ascii=False), encoding="utf-8")
    (folder / "fit_curves.csv").write_text(fit.curves, encoding="utf-8")


@cache
def environment() -> dict[str, object]:
    """Return what the numbers may depend on beside code and settings."""
    import os

    return {
        "python": sys.version,
        "platform": platform.platform(),
        "processor": _processor(),
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "tagger": tagger.signature(),
        "packages": {d.metadata["Name"]: d.version for d in sorted(distributions(), key=lambda d: d.metadata["Name"])},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def prompt(cell: Cell, asked: Asked) -> str:
    """Return what the model was given for the first text, whole, as a person reads it."""
    request = cell.model.request(asked.disturbed[0])
    messages = request.get("messages")
    if not isinstance(messages, list):
        return json.dumps(request, indent=2, ensure_ascii=False)
    turns = [f"[{message['role']}]\n{message['content']}" for message in messages]
    form = {name: value for name, value in request.items() if name == "response_format"}
    return "\n\n".join([*turns, *([json.dumps(form, ensure_ascii=False)] if form else [])])


def _variants(asked: Asked, field: str) -> Iterator[dict[str, object]]:
    for example, variant in zip(asked.examples, asked.variants, strict=True):
        yield {
            "id": example.id,
            "original": getattr(example, field),
            "disturbed": variant.text,
            "edits": json.dumps([edit._asdict() for edit in variant.edits], ensure_ascii=False),
            "edited_words": len(variant.edits),
            **{f"dose_{name}": value for name, value in asdict(variant.dose).items()},
        }


def _predictions(cell: Cell, asked: Asked, result: Result) -> Iterator[dict[str, object]]:
    """Yield a row for each text that was asked about: the clean ones, then the disturbed ones."""
    yield from _rows("clean", cell, asked, asked.clean, asked.clean_keys, result.clean)
    if cell.rate:
        yield from _rows("disturbed", cell, asked, asked.disturbed, asked.disturbed_keys, result.disturbed)


def _rows(
    version: str, cell: Cell, asked: Asked, queries: tuple[Query, ...], keys: tuple[str, ...], read: Read
) -> Iterator[dict[str, object]]:
    for example, query, key, reply, answer, right in zip(
        asked.examples, queries, keys, read.replies, read.answers, read.right, strict=True
    ):
        yield {
            "id": example.id,
            "group": example.group,
            "version": version,
            "text": query.text,
            "question": query.question,
            "target": example.target,
            "value": answer.value,
            "outcome": str(answer.outcome),
            "right": right,
            "reply": reply.text,
            "finish": reply.finish,
            "prompt_tokens": reply.prompt_tokens,
            "reply_tokens": reply.reply_tokens,
            "seconds": reply.seconds,
            "detail": json.dumps(dict(reply.detail), ensure_ascii=False),
            "request": json.dumps(dict(cell.model.request(query)), ensure_ascii=False),
            "reply_key": key,
        }
