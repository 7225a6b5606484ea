"""The texts written for this project (CC0; `data/sample/CARD.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable

from noisyhealth.errors import DataError
from noisyhealth.sources.examples import examples
from noisyhealth.sources.rows import rows
from noisyhealth.sources.source import Columns, Read


@dataclass(frozen=True)
class Sample:
    """The sample texts of this package. `licences`: that of each task's texts."""

    licences: Mapping[str, str] = field(default_factory=dict)
    name: str = "sample"

    def read(self, task: str) -> Iterator[Read]:
        """Yield the sample texts of a task. Raises DataError for a task that has none."""
        stored = files("noisyhealth.data") / "sample" / f"{task}.jsonl"
        if not stored.is_file():
            raise DataError(f"there are no sample texts for task {task!r}: use data=files or data=hub")
        return _texts(stored, task)

    def state(self, task: str) -> str:
        """Return nothing: the texts are part of the code's hash."""
        return ""

    def licence(self, task: str) -> str:
        """Return the licence of the task's texts, "" when it is not known."""
        return self.licences.get(task, "")


def _texts(stored: Traversable, task: str) -> Iterator[Read]:
    with as_file(stored) as path:
        first = next(rows(path, ()))
        question = "question" if "question" in first.cells else ""  # closed tasks have none
        columns = Columns(text="text", target="target", question=question, id="id")
        yield from examples(rows(path, ()), columns, task=task, origin=str(path))
