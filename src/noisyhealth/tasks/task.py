"""What is asked: how a text becomes a query, how a reply is read, how answers are scored."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from noisyhealth.analysis.intervals import Interval
from noisyhealth.records import Answer, Example, Query, Reply, Scores
from noisyhealth.text.prompt import Wording


class Task(Protocol):
    """A task of the study, or one of the user's own."""

    @property
    def name(self) -> str:
        """The task's name in every table."""
        ...

    @property
    def wording(self) -> Wording:
        """How the task is put to a model."""
        ...

    @property
    def labels(self) -> Sequence[str]:
        """The closed set of answers; empty when answers are free."""
        ...

    @property
    def headline(self) -> str:
        """The score shown for a cell, and the one its category is named by."""
        ...

    @property
    def scenarios(self) -> Sequence[str]:
        """The scores that each count as a scenario in the analysis."""
        ...

    def check(self) -> None:
        """Raise WeightsError when what `score` needs cannot be had: better before the calls than after."""
        ...

    def query(self, example: Example) -> Query:
        """Return what is asked about an example, the clean or a disturbed one."""
        ...

    def read(self, reply: Reply) -> Answer:
        """Return the reply as read."""
        ...

    def score(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Scores:
        """Return every score over the answers, one answer an example in the same order."""
        ...

    def right(self, example: Example, answer: Answer) -> float:
        """Return how right one answer is, 0 to 1: what the headline is the mean of."""
        ...

    def intervals(self, examples: Sequence[Example], answers: Sequence[Answer], seed: int) -> Mapping[str, Interval]:
        """Return 95 % confidence intervals of the scores that have one."""
        ...
