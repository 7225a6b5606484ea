"""Cells with a mitigation on a few sample texts, asked of a model that answers by what it reads and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from noisyhealth import experiment, study
from noisyhealth.cell import Cell
from noisyhealth.models.model import Price
from noisyhealth.records import Answer, Outcome, Query, Reply, Training
from noisyhealth.study import Record
from noisyhealth.text.prompt import Wording

PRICE = Price(1e4, 1e5)  # 7 tokens of a prompt and 2 of a reply: 27 cents


@dataclass
class Reader:
    """Answers by a hash of the text, so that another text may get another answer."""

    name: str = "reader"
    batch: bool = False
    unread: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"reader({self.name})"

    def check(self) -> None:
        pass

    def fit(self, wording: Wording, training: Training) -> None:
        pass

    def signature(self) -> dict[str, object]:
        return {"model": self.name}

    def request(self, query: Query) -> dict[str, object]:
        return {"text": query.text, "question": query.question}

    def price(self) -> Price:
        return PRICE

    def shots(self) -> tuple[str, ...]:
        return ()

    def fitted(self) -> None:
        return None

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        for query in queries:
            self.asked.append(query.text)
            says = ("positive", "negative", "perhaps")[crc32(query.text.encode()) % 3]
            yield Reply(query.id, f"Answer: {says}", "stop", 7, 2, 0.1, {})


def run(cell: Cell) -> Record:
    asked = study.asked(cell)
    return experiment.run(cell, asked, study.key(cell, asked))


def answers(*values: str) -> list[Answer]:
    """Return answers with these values, "" for one that could not be read."""
    return [Answer(str(at), one, one, Outcome.SCORED if one else Outcome.UNPARSED) for at, one in enumerate(values)]


def same(one: Answer, other: Answer) -> float:
    return float(one.value == other.value)
