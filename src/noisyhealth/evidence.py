"""What a run keeps so that its numbers can be followed: texts, edits, prompts, replies, values, hashes."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import distributions
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from noisyhealth import manifest, own_code, sealed, version
from noisyhealth.cell import Cell
from noisyhealth.mitigated import Copies
from noisyhealth.models.model import whole_signature
from noisyhealth.records import Edit, Fit, Query, Scores
from noisyhealth.scoring import Read, Result
from noisyhealth.study import Asked
from noisyhealth.text import tagger
from noisyhealth.tracking import preview
from noisyhealth.tracking.seal import sealer

CONFIG, VARIANTS, PREDICTIONS = "config.yaml", "variants.parquet", "predictions.parquet"
METRICS, MODEL, PROMPT, ENVIRONMENT = "metrics.json", "model.json", "prompt.txt", "environment.json"
FIT, CURVES = "fit.json", "fit_curves.csv"
OWN_CODE = "own_code"  # a folder: the user's files that the settings name code of
# Where something is done about disturbed input: a row a copy that was asked, and what was learned.
CALLS, LEARNED = "calls.parquet", "learned.json"

# Ten times as fast as the one in Python.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def write(folder: Path, cell: Cell, asked: Asked, result: Result, metrics: Scores, tags: Mapping[str, str]) -> str:
    """Write every artifact of a run into an empty folder, last the manifest of them all, and return its hash."""
    from noisyhealth.dataset.table import FACTS

    _text(folder / CONFIG, yaml.dump(dict(cell.resolved), Dumper=_DUMPER, allow_unicode=True))
    variants, predictions = _variants(asked, cell.field), _predictions(cell, asked, result)
    calls = _calls(cell, asked, result)
    shown = prompt(cell, asked)
    if not cell.keep_text:
        seal = sealer(Path(cell.cache))
        variants = (sealed.variant(row, seal) for row in variants)
        predictions = (sealed.prediction(row, seal, free=not cell.task.labels) for row in predictions)
        calls = (sealed.call(row, seal, free=not cell.task.labels) for row in calls)
        shown = seal(shown)
    _text(folder / PROMPT, shown)
    _json(folder / FACTS, dict(asked.build.facts))
    signature = whole_signature(cell.model, own_code.hashes(cell.resolved["model"]))
    _json(folder / MODEL, {"signature": signature, "shots": list(cell.model.shots())})
    _json(folder / METRICS, {"metrics": metrics, "tags": dict(tags)})
    _json(folder / ENVIRONMENT, environment())
    if changed := version.uncommitted():
        _text(folder / "uncommitted.diff", changed)
    for name, text in own_code.sources(cell.resolved).items():
        (folder / OWN_CODE / name).parent.mkdir(parents=True, exist_ok=True)
        _text(folder / OWN_CODE / name, text)
    _table(folder / VARIANTS, variants)
    _table(folder / PREDICTIONS, predictions)
    if asked.mitigated:
        _table(folder / CALLS, calls)
        _json(folder / LEARNED, dict(asked.mitigated.learned))
    if fit := cell.model.fitted():
        write_fit(folder, fit)
    if cell.keep_text:
        preview.write(folder)
    return manifest.write(folder, {"cell_key": tags["cell_key"], "code": tags["code_hash"], "data": asked.build.hash})


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _json(path: Path, whole: Mapping[str, Any]) -> None:
    _text(path, json.dumps(whole, indent=2, ensure_ascii=False))


def _table(path: Path, rows: Iterable[dict[str, object]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(rows)), path, compression="zstd")


def write_fit(folder: Path, fit: Fit) -> None:
    """Write how a model was fitted, and the curves of it."""
    (folder / FIT).write_text(json.dumps(fit.facts, indent=1, ensure_ascii=False), encoding="utf-8")
    (folder / CURVES).write_text(fit.curves, encoding="utf-8")


@cache
def environment() -> dict[str, object]:
    """Return what the numbers may depend on beside code and settings."""
    return {
        "python": sys.version,
        "platform": platform.platform(),
        "processor": _processor(),
        "gpus": _gpus(),
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "tagger": tagger.signature(),
        "tables": version.tables(),
        "packages": {d.metadata["Name"]: d.version for d in sorted(distributions(), key=lambda d: d.metadata["Name"])},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _gpus() -> list[str]:
    """Return the GPUs that torch may use, where a model has loaded it."""
    torch = sys.modules.get("torch")
    return [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())] if torch else []


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
            "edits": _plain(variant.edits),
            "edited_words": len(variant.edits),
            **{f"dose_{name}": value for name, value in asdict(variant.dose).items()},
        }


def _plain(edits: Iterable[Edit]) -> str:
    return json.dumps([edit._asdict() for edit in edits], ensure_ascii=False)


@dataclass(frozen=True)
class _Version:
    """One version of the texts: what was asked, under which keys, what came of it; `copies` where copies were asked."""

    name: str
    queries: tuple[Query, ...]
    keys: tuple[str, ...]
    read: Read
    copies: Copies | None

    @property
    def came(self) -> tuple[Query, ...]:
        """The texts as they came in."""
        return self.copies.came if self.copies else self.queries


def _versions(cell: Cell, asked: Asked, result: Result) -> Iterator[_Version]:
    """Yield the clean and then the disturbed texts."""
    clean, disturbed = (asked.mitigated.clean, asked.mitigated.disturbed) if asked.mitigated else (None, None)
    yield _Version("clean", asked.clean, asked.clean_keys, result.clean, clean)
    if cell.rate:
        yield _Version("disturbed", asked.disturbed, asked.disturbed_keys, result.disturbed, disturbed)


def _predictions(cell: Cell, asked: Asked, result: Result) -> Iterator[dict[str, object]]:
    """Yield a row for each text, with the reply that counts: the clean ones, then the disturbed ones."""
    for one in _versions(cell, asked, result):
        for example, came, at, answer, right in zip(
            asked.examples, one.came, one.read.chosen, one.read.answers, one.read.right, strict=True
        ):
            yield {
                "id": example.id,
                "group": example.group,
                "version": one.name,
                "text": came.text,
                "question": came.question,
                "target": example.target,
                "value": answer.value,
                "outcome": str(answer.outcome),
                "right": right,
                **_replied(cell, one, at),
            }


def _replied(cell: Cell, one: _Version, at: int) -> dict[str, object]:
    """Return a reply as it was given, and what was put to the model."""
    reply = one.read.replies[at]
    return {
        "reply": reply.text,
        "finish": reply.finish,
        "prompt_tokens": reply.prompt_tokens,
        "reply_tokens": reply.reply_tokens,
        "seconds": reply.seconds,
        "detail": json.dumps(dict(reply.detail), ensure_ascii=False),
        "request": json.dumps(dict(cell.model.request(one.queries[at])), ensure_ascii=False),
        "reply_key": one.keys[at],
    }


def _calls(cell: Cell, asked: Asked, result: Result) -> Iterator[dict[str, object]]:
    """Yield a row for each copy that was asked in place of a text, in the order of the replies."""
    for one in _versions(cell, asked, result):
        if one.copies is None:
            return
        places, counting = count(), set(one.read.chosen)
        for copies, facts in zip(one.copies.asked, one.copies.facts, strict=True):
            for number, copy in enumerate(copies):
                at = next(places)
                yield {
                    "id": copy.id,
                    "version": one.name,
                    "copy": number,
                    "text": copy.text,
                    "edits": _plain(copy.edits),
                    "facts": json.dumps(facts),
                    "counts": at in counting,
                    "value": one.read.each[at].value,
                    "outcome": str(one.read.each[at].outcome),
                    **_replied(cell, one, at),
                }
