"""The user's own files, one a task: CSV, TSV, JSONL, JSON or Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path

from noisyhealth.errors import ConfigError, DataError
from noisyhealth.sources.examples import examples, used
from noisyhealth.sources.repair import REPAIRS, checked
from noisyhealth.sources.rows import rows
from noisyhealth.sources.source import Columns, Read


@dataclass(frozen=True)
class Files:
    """The user's own files, one a task. `repair` names what is mended; `licences`: that of each task's texts."""

    paths: Mapping[str, str]
    columns: Mapping[str, Columns]
    repair: Sequence[str] = tuple(REPAIRS)
    licences: Mapping[str, str] = field(default_factory=dict)
    name: str = "files"

    def __post_init__(self) -> None:
        """Raise ConfigError for a repair that is none."""
        checked(self.repair)

    def read(self, task: str) -> Iterator[Read]:
        """Yield what each row of the task's file gives; only one row (of a .json, the whole file) is held."""
        path = self._path(task)
        if task not in self.columns:
            raise ConfigError(f"data=files has no columns for task {task!r}: set data.source.columns.{task}")
        if not isinstance(columns := self.columns[task], Columns):
            raise ConfigError(
                f"data.source.columns.{task}={columns!r}: name a column for each role, as "
                f"data.source.columns.{task}.text={columns}"
            )
        found = rows(path, list(used(columns).values()))
        return examples(found, columns, task=task, origin=str(path), repair=self.repair)

    def state(self, task: str) -> str:
        """Return the hash of the task's file."""
        with self._path(task).open("rb") as file:
            return file_digest(file, "sha256").hexdigest()

    def licence(self, task: str) -> str:
        """Return the licence of the task's texts, "" when it is not known."""
        return self.licences.get(task, "")

    def _path(self, task: str) -> Path:
        if not (given := self.paths.get(task)):
            raise ConfigError(f"data=files has no file for task {task!r}: set data.source.paths.{task}=FILE")
        if not Path(given).is_file():
            raise DataError(f"data.source.paths.{task}={given}: no such file")
        return Path(given)
