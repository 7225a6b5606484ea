"""A score of the user's own, beside those of the task (`metric=...`)."""

from collections.abc import Sequence
from typing import Protocol

from noisyhealth.records import Answer, Example


class Metric(Protocol):
    """How good the answers to a cell's texts are, as one finite number; more is better, and 0 is none at all.

    Changes are relative to the score on the clean texts, so that a score below 0 has none that means anything.
    """

    def __call__(self, examples: Sequence[Example], answers: Sequence[Answer]) -> float:
        """Return the score over the answers, one an example in the same order; an unread one has the value ""."""
        ...
