"""Where texts come from: the samples of this package, the user's files, or the hub."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest, sha256
from importlib.resources import files
from pathlib import Path
from typing import Protocol, TypeAlias

from noisyhealth.errors import ConfigError, DataError
from noisyhealth.records import Example

Row: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that gives no example; `reason` is what the row is counted under."""

    reason: str


class Source(Protocol):
    """A place that has texts for a task."""

    @property
    def name(self) -> str:
        """The source's name, for tables."""
        ...

    def read(self, task: str) -> Sequence[Example | LeftOut]:
        """Return an example for each row, or why the row gives none.

        Raises DataError with file, row and column.
        """
        ...

    def state(self, task: str) -> str:
        """Return what changes when the task's texts do, beyond the settings: a build depends on it."""
        ...


@dataclass(frozen=True)
class Columns:
    """Which columns of a source hold what; "" for none. `targets` maps its values to the task's labels."""

    text: str
    target: str
    question: str = ""
    group: str = ""
    id: str = ""
    targets: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Sample:
    """The texts written for this project (CC0; `data/sample/CARD.md`)."""

    name: str = "sample"

    def read(self, task: str) -> Sequence[Example | LeftOut]:
        """Return the sample texts of a task."""
        path = files("noisyhealth.data") / "sample" / f"{task}.jsonl"
        if not path.is_file():
            raise DataError(f"there are no sample texts for task {task!r}: use data=files or data=hub")
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        question = "question" if "question" in rows[0] else ""  # closed tasks have none
        return list(_examples(rows, Columns(text="text", target="target", question=question, id="id"), str(path)))

    def state(self, task: str) -> str:
        """Return nothing: the texts are part of the code's hash."""
        return ""


@dataclass(frozen=True)
class Files:
    """The user's own files, one a task: CSV, JSON Lines or Parquet."""

    paths: Mapping[str, str]
    columns: Mapping[str, Columns]
    name: str = "files"

    def read(self, task: str) -> Sequence[Example | LeftOut]:
        """Return the examples of the task's file."""
        path = self._path(task)
        try:
            examples = list(_examples(_rows(path), self.columns[task], str(path)))
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not UTF-8 ({error}): save the file as UTF-8") from None
        if not any(isinstance(row, Example) for row in examples):
            raise DataError(f"{path}: the file holds no text")
        return examples

    def state(self, task: str) -> str:
        """Return the hash of the task's file."""
        with self._path(task).open("rb") as file:
            return file_digest(file, "sha256").hexdigest()

    def _path(self, task: str) -> Path:
        if not (given := self.paths.get(task)):
            raise ConfigError(f"data=files has no file for task {task!r}: set data.source.paths.{task}=FILE")
        if not Path(given).is_file():
            raise DataError(f"data.source.paths.{task}={given}: no such file")
        return Path(given)


@dataclass(frozen=True)
class Hub:
    """The public sets of the Hugging Face hub, read with `datasets` (extra `hub`)."""

    repos: Mapping[str, str]
    columns: Mapping[str, Columns]
    name: str = "hub"

    def read(self, task: str) -> Sequence[Example | LeftOut]:
        """Return the examples of the task's dataset, all its splits together."""
        try:
            from datasets import load_dataset
        except ImportError:
            raise DataError("data=hub needs the package datasets: pip install -e '.[hub]'") from None
        repo = self.repos[task]
        try:
            splits = load_dataset(repo)
        except Exception as error:  # the hub's client raises errors of many libraries
            raise DataError(
                f"dataset {repo!r} cannot be had from the hub ({type(error).__name__}): connect, or use data=sample"
            ) from error
        rows = (row for name in sorted(splits) for row in splits[name])
        return list(_examples(rows, self.columns[task], repo))

    def state(self, task: str) -> str:
        """Return nothing: which dataset it is stands in the settings."""
        return ""


def _rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file, by its ending."""
    match path.suffix.lower():
        case ".csv" | ".tsv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield from csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        case ".jsonl":
            # Not splitlines: a JSON string may hold other line separators of Unicode.
            for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
                if line.strip():
                    yield _parsed(line, path, number)
        case ".parquet":
            import pyarrow.parquet as pq

            yield from pq.read_table(path).to_pylist()
        case other:
            raise DataError(f"{path}: cannot read {other!r} files; give CSV, TSV, JSONL or Parquet")


def _parsed(line: str, path: Path, number: int) -> Row:
    try:
        row: Row = json.loads(line)
    except ValueError as error:
        raise DataError(f"{path}, line {number}: not JSON ({error})") from None
    return row


def _examples(rows: Iterable[Row], columns: Columns, origin: str) -> Iterator[Example | LeftOut]:
    """Yield an example for each row, or why there is none; a label that `targets` does not name is another task's.

    Raises DataError when `targets` names a label that no row has, and rows have others: a misspelt one would
    leave texts out.
    """
    met: set[str] = set()
    for number, row in enumerate(rows, 1):
        text, target = _cell(row, columns.text, origin, number), _cell(row, columns.target, origin, number)
        met.add(target)
        if not text.strip():
            yield LeftOut("has no text")
        elif not target.strip():
            yield LeftOut("has no target")
        elif columns.targets is not None and target not in columns.targets:
            yield LeftOut("has a target that is not mapped")
        else:
            question = _cell(row, columns.question, origin, number) if columns.question else ""
            name = _cell(row, columns.id, origin, number) if columns.id else sha256(text.encode()).hexdigest()[:16]
            group = _cell(row, columns.group, origin, number) if columns.group else ""
            yield Example(name, text, (columns.targets or {}).get(target, target), question, group)
    unmet, unmapped = set(columns.targets or ()) - met, met - set(columns.targets or met) - {""}
    if unmet and unmapped:
        raise DataError(
            f"{origin}: targets maps {', '.join(sorted(unmet))}, which no row has in {columns.target!r}, and not "
            f"{', '.join(sorted(unmapped)[:20])}, which some have: is a label misspelt?"
        )


def _cell(row: Row, column: str, origin: str, number: int) -> str:
    if column not in row:
        raise DataError(f"{origin}, row {number}: no column {column!r}; it has {', '.join(map(str, row))}")
    value = row[column]
    return "" if value is None else str(value)
