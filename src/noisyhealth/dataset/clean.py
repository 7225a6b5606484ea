"""Which rows of a source give usable examples: repeats and contradictions go, and are counted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from hashlib import blake2b

from noisyhealth.dataset.attrition import Attrition
from noisyhealth.errors import DataError
from noisyhealth.progress import steps
from noisyhealth.records import Example
from noisyhealth.sources.source import Read, Source

_UNMAPPED = ""  # the target of a row whose label is another task's


def usable(source: Source, task: str, attrition: Attrition, labels: Collection[str] = ()) -> Iterator[Example]:
    """Yield the examples of a source that can be used, counting all.

    A text that stands there twice is used once. One with two different targets is not used at all, since
    neither can be called right; nor is one whose twin has a label that no target is mapped to. Of the
    questions on one note the first is used. The source is read twice, so that no text need be held.
    `labels` are a closed task's; empty where answers are free.

    Raises DataError where an id stands for two texts, or a target is none of the labels.
    """
    targets, rows = _targets(source, task)
    texts: set[bytes] = set()
    ids: set[str] = set()
    for read in steps(source.read(task), f"disturbing texts of {task}", rows):
        attrition.read += 1
        attrition.repaired.update(read.repairs)
        example = read.example
        reason = read.reason or _clash(targets.get(_digest(example.text, example.question), set()))
        reason = reason or _again(example, texts)
        if reason:
            attrition.left_out[reason] += 1
            continue
        if example.id in ids:
            raise DataError(
                f"task {task!r}: the id {example.id!r} stands for two texts of {source.name}: make ids unique, or set "
                f"data.source.columns.{task}.id to nothing, and hashes of the texts are taken"
            )
        if labels and example.target not in labels:
            raise DataError(
                f"task {task!r}: example {example.id!r} has the answer {example.target!r}, none of "
                f"task.labels={list(labels)}: correct the labels, or map them with "
                f"'data.source.columns.{task}.targets={{yours: {next(iter(labels))}, ...}}'"
            )
        ids.add(example.id)
        texts.add(_digest(example.text))
        attrition.usable += 1
        yield example


def _targets(source: Source, task: str) -> tuple[dict[bytes, set[str]], int]:
    """Map each question on each text that has several targets to them; also return how many rows there are."""
    first: dict[bytes, str] = {}
    several: dict[bytes, set[str]] = {}
    rows = 0
    for read in source.read(task):
        rows += 1
        if not read.example.text.strip():
            continue
        key, target = _digest(read.example.text, read.example.question), _target(read)
        if first.setdefault(key, target) != target:
            several.setdefault(key, {first[key]}).add(target)
    return several, rows


def _target(read: Read) -> str:
    return _UNMAPPED if read.reason else read.example.target


def _clash(targets: set[str]) -> str:
    if len(targets - {_UNMAPPED}) > 1:
        return "contradicts its twin"
    return "has a twin without a usable target" if targets else ""


def _again(example: Example, texts: set[bytes]) -> str:
    if _digest(example.text) not in texts:
        return ""
    return "asks about a note already used" if example.question else "repeats another text"


def _digest(*parts: str) -> bytes:
    return blake2b("\x1f".join(parts).encode(), digest_size=16).digest()
