"""A question on a medical note, answered freely from the note alone.

    "... Metformin raised to 1 g b.i.d., gliclazide stopped ..." / "Which drug was stopped?" -> gliclazide

The note is disturbed, the question is not. Source: Joshi et al. 2026, Methods, "Study Design".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from noisyhealth.analysis.intervals import Interval, bootstrap_mean
from noisyhealth.metrics import clinical, meaning, overlap
from noisyhealth.records import Answer, Example, Query, Reply, Scores
from noisyhealth.text.prompt import Wording
from noisyhealth.text.reply import check_reading, read_free


class Weights(Protocol):
    """Weights that lie in a folder."""

    def check(self) -> None:
        """Raise WeightsError when they cannot be had."""
        ...

    def folder(self) -> Path:
        """Return the folder to load from."""
        ...


@dataclass(frozen=True)
class Meaning:
    """The encoder whose layer number `layers` BERTScore compares in."""

    source: Weights
    layers: int


@dataclass(frozen=True)
class QuestionAnswer:
    """A free task; `meaning` is the encoder that BERTScore compares with.

    `reading`: lenient, strict or last (`text/reply.py` has the rules). Raises ConfigError for another.
    """

    name: str
    wording: Wording
    meaning: Meaning
    reading: str = "lenient"
    labels: tuple[str, ...] = ()
    headline: str = "rougeL"
    scenarios: tuple[str, ...] = ("rougeL",)

    def __post_init__(self) -> None:
        check_reading(self.reading, self.name)

    def check(self) -> None:
        """Raise WeightsError when the encoder for BERTScore cannot be had."""
        self.meaning.source.check()

    def query(self, example: Example) -> Query:
        """Return the example's own question on its text."""
        return Query(example.id, example.text, example.question, ())

    def read(self, reply: Reply) -> Answer:
        """Return the answer without its lead and its justification."""
        return read_free(reply, self.reading)

    def score(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Scores:
        """Return BLEU, ROUGE, BERTScore and clinical agreement; an unread answer counts as empty."""
        references, candidates = [e.target for e in examples], [a.value for a in answers]
        return {
            **overlap.scores(references, candidates),
            **meaning.scores(references, candidates, self.meaning.source.folder(), self.meaning.layers),
            **clinical.scores(references, candidates),
        }

    def right(self, example: Example, answer: Answer) -> float:
        """Return the answer's own ROUGE-L."""
        return overlap.rouge_l_each([example.target], [answer.value])[0]

    def intervals(self, examples: Sequence[Example], answers: Sequence[Answer], seed: int) -> dict[str, Interval]:
        """Return a bootstrap's interval of ROUGE-L, where it has one."""
        each = overlap.rouge_l_each([e.target for e in examples], [a.value for a in answers])
        found = bootstrap_mean(each, seed, [e.group for e in examples])
        return {"rougeL": found} if found else {}
