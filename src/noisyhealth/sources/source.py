"""What a source is, and what it gives for each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from noisyhealth.records import Example


@dataclass(frozen=True, slots=True)
class Read:
    """One row as read.

    `reason`: why it cannot be used, "" when it can; its example then has what is known, its target as the row
    has it. `repairs`: what was mended in it.
    """

    example: Example
    repairs: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Columns:
    """Which columns of a source hold what; "" for none. `targets` maps its values to the task's labels.

    Without an `id` column the id is the hash of the text as the row has it: no repair changes an id.
    """

    text: str
    target: str
    question: str = ""
    group: str = ""
    id: str = ""
    targets: Mapping[str, str] | None = None


class Source(Protocol):
    """A place that has texts for a task."""

    @property
    def name(self) -> str:
        """The source's name, for tables."""
        ...

    def read(self, task: str) -> Iterator[Read]:
        """Yield what each row gives; called again, the same.

        Raises ConfigError for a task without settings, at once, and DataError with file, row and column.
        """
        ...

    def state(self, task: str) -> str:
        """Return what changes when the task's texts do, beyond the settings: a build depends on it."""
        ...

    def licence(self, task: str) -> str:
        """Return the licence of the task's texts, "" when it is not known."""
        ...
