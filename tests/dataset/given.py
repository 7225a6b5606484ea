"""What the tests of the dataset share: texts, a source that gives them, a cheap tagger, a small build."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from noisyhealth.dataset.build import build
from noisyhealth.dataset.design import Design, Disturbance, Split
from noisyhealth.dataset.table import TABLE, Build
from noisyhealth.perturbations.homophone import Homophone
from noisyhealth.perturbations.redact import Redact
from noisyhealth.perturbations.typo import Typo
from noisyhealth.records import Example, Word
from noisyhealth.sources.sample import Sample
from noisyhealth.sources.source import Read
from noisyhealth.text.homophones import Table
from noisyhealth.text.tagger import Tagger
from noisyhealth.text.words import PROTECTIONS, spans

VALID = frozenset({"ADJ", "ADV", "VERB", "NOUN", "PROPN", "AUX"})
TAGGER = Tagger(VALID)
STUDY = (
    Disturbance("typo", {"low": 0.1, "mid": 0.3, "high": 0.5}, True, Typo()),
    Disturbance("homophone", {"low": 0.1, "mid": 0.2, "high": 0.3}, True, Homophone(Table())),
    Disturbance("redact", {"low": 0.1, "mid": 0.3, "high": 0.5}, True, Redact()),
)
REDACT = Disturbance("redact", {"low": 0.1, "high": 0.3}, True, Redact())
TYPO = Disturbance("typo", {"low": 0.1, "high": 0.3}, True, Typo())
FEW = Split(prompt=0.2, test=3, train=0.8)


@dataclass(frozen=True)
class Nouns:
    """A tagger for tests to which parts of speech do not matter: every word that no rule protects is a noun."""

    valid_pos: frozenset[str] = VALID
    protect: frozenset[str] = PROTECTIONS

    def tag(self, texts: Iterable[str]) -> Iterator[list[Word]]:
        for text in texts:
            yield [Word(s.text, s.start, "NOUN", not s.protection, False) for s in spans(text, self.protect)]


@dataclass
class Given:
    """A source of the test's own that counts how often it is read."""

    rows: Sequence[Example | Read]
    name: str = "given"
    reads: list[str] = field(default_factory=list)

    def read(self, task: str) -> Iterator[Read]:
        self.reads.append(task)
        for row in self.rows:
            yield row if isinstance(row, Read) else Read(row)

    def state(self, task: str) -> str:
        return ""

    def licence(self, task: str) -> str:
        return ""


def words(count: int, seed: object) -> list[str]:
    """Return words of six letters that no other seed gives."""
    random = Random(f"words {seed}")
    return ["".join(chr(ord("a") + int(random.random() * 26)) for _ in range(6)) for _ in range(count)]


def invented(count: int, length: int = 12) -> list[Example]:
    """Return examples with nothing in common."""
    return [Example(f"{n:04}", " ".join(words(length, n)) + ".", "yes" if n % 2 else "no") for n in range(count)]


def notes(count: int) -> list[Example]:
    """Return the first sample notes with their questions, each of a patient of its own."""
    return [replace(read.example, group=f"patient {n}") for n, read in zip(range(count), Sample().read("qa"))]  # noqa: B905


def design(rows: object, *disturbances: Disturbance, **changes: object) -> Design:
    """Return the design of a small build: rows or a source, redaction, the cheap tagger."""
    source = Given(rows) if isinstance(rows, list) else rows
    settings = {"task": "qa"}
    whole = Design("qa", source, disturbances or (REDACT,), FEW, Nouns(), 0, settings)  # type: ignore[arg-type]
    return replace(whole, **changes)  # type: ignore[arg-type]


def made(rows: object, *disturbances: Disturbance, **changes: object) -> Build:
    """Build it in a folder of its own."""
    return build(design(rows, *disturbances, **changes), Path(tempfile.mkdtemp(prefix="noisyhealth")))


def rows(found: Build) -> list[dict[str, Any]]:
    """Return the rows of its table."""
    return pq.read_table(found.folder / TABLE).to_pylist()  # type: ignore[no-any-return]


def splits(found: Build) -> dict[str, tuple[str, str]]:
    """Return both splits of each example by its id."""
    learned = {e.id: "prompt" for e in found.training.prompt} | {e.id: "test" for e in found.test}
    tuned = {e.id: "train" for e in found.training.train} | {e.id: "validation" for e in found.training.validation}
    return {e.id: (learned.get(e.id, "validation"), tuned.get(e.id, "test")) for e in found.examples}
