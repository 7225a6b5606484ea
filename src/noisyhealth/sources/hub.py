"""The public sets of the Hugging Face hub, read with `datasets` (extra `hub`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from noisyhealth.errors import ConfigError, DataError
from noisyhealth.sources.examples import examples, used
from noisyhealth.sources.repair import REPAIRS, checked
from noisyhealth.sources.rows import Row
from noisyhealth.sources.source import Columns, Read


@dataclass(frozen=True)
class Hub:
    """A dataset of the hub for each task, all its splits together; a folder may stand for a repository.

    `revisions`: the commit, tag or branch of each task's dataset, None for the newest. `repair` names what is
    mended; `licences`: that of each task's texts.
    """

    repos: Mapping[str, str]
    columns: Mapping[str, Columns]
    revisions: Mapping[str, str | None] = field(default_factory=dict)
    repair: Sequence[str] = tuple(REPAIRS)
    licences: Mapping[str, str] = field(default_factory=dict)
    name: str = "hub"

    def __post_init__(self) -> None:
        """Raise ConfigError for a repair that is none."""
        checked(self.repair)

    def read(self, task: str) -> Iterator[Read]:
        """Yield what each row of the task's dataset gives, at the commit that `state` names."""
        repo, columns = self._repo(task), self.columns[task]
        commit = "" if Path(repo).is_dir() else self.state(task)
        found = _rows(_prepared(repo, commit), columns, repo)
        return examples(found, columns, task=task, origin=repo, repair=self.repair)

    def state(self, task: str) -> str:
        """Return the commit that is read: the hub's, or without a connection the one kept on this machine.

        A process asks once. The state of a folder is the hash of its files.
        """
        repo = self._repo(task)
        return _hash(Path(repo)) if Path(repo).is_dir() else _commit(repo, self.revisions.get(task))

    def licence(self, task: str) -> str:
        """Return the licence of the task's texts, "" when it is not known."""
        return self.licences.get(task, "")

    def _repo(self, task: str) -> str:
        if not (repo := self.repos.get(task)) or task not in self.columns:
            raise ConfigError(
                f"data=hub has no dataset for task {task!r}: set data.source.repos.{task} and "
                f"data.source.columns.{task}"
            )
        return repo


@cache
def _commit(repo: str, revision: str | None) -> str:
    """Return the commit of a revision. Raises DataError when it is neither on the hub nor on this machine."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        return str(HfApi().dataset_info(repo, revision=revision).sha)
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        at = f" at revision {revision!r}" if revision else ""
        raise DataError(
            f"the hub has no dataset {repo!r}{at}, or does not show it to you ({type(error).__name__}): check "
            "data.source.repos and data.source.revisions"
        ) from error
    except Exception:  # no connection: the hub's client raises errors of many libraries
        kept = str(_builder(repo, revision).hash)
    if revision not in (None, kept):
        raise DataError(
            f"dataset {repo!r} cannot be had from the hub, and what is kept here is commit {kept}, not revision "
            f"{revision!r}: connect, or set data.source.revisions to that commit"
        )
    return kept


def _builder(repo: str, revision: str | None) -> Any:
    try:
        from datasets import load_dataset_builder
    except ImportError:
        raise DataError("data=hub needs the package datasets: pip install -e '.[hub]'") from None
    try:
        return load_dataset_builder(repo, revision=revision)
    except Exception as error:
        raise DataError(_unavailable(repo, error)) from error


def _prepared(repo: str, commit: str) -> Mapping[str, Any]:
    """Return the splits of a dataset, downloaded if they were not before; `commit` is "" for a folder.

    `load_dataset` would, after a failed connection, read whatever commit was kept last.
    """
    builder = _builder(repo, commit or None)
    if commit and builder.hash != commit:
        raise DataError(f"dataset {repo!r}: got commit {builder.hash}, not {commit}: connect, and run again")
    try:
        builder.download_and_prepare()
        splits: Mapping[str, Any] = builder.as_dataset()
    except Exception as error:
        raise DataError(_unavailable(repo, error)) from error
    return splits


def _unavailable(repo: str, error: Exception) -> str:
    said = next(iter(str(error).splitlines()), "")
    return (
        f"dataset {repo!r} cannot be had from the hub ({type(error).__name__}: {said}): connect, or use data=sample "
        "or data=files"
    )


def _rows(splits: Mapping[str, Any], columns: Columns, repo: str) -> Iterator[Row]:
    for name in sorted(splits):
        split, wanted = splits[name], list(used(columns).values())
        if set(wanted) <= set(split.column_names):
            split = split.select_columns(wanted)
        labels = _labels(split.features.get(columns.target), columns.targets)
        for number, cells in enumerate(split, 1):
            label = cells.get(columns.target)
            named = {columns.target: labels[label]} if label in range(len(labels)) else {}
            yield Row(f"{repo}, split {name}, row {number}", {**cells, **named})


def _labels(feature: object, targets: Iterable[str] | None) -> list[str]:
    """Return the names of a column's labels when `targets` maps names; otherwise none, and labels stay numbers."""
    names: list[str] = getattr(feature, "names", [])
    return names if set(names) & set(targets or ()) else []


def _hash(folder: Path) -> str:
    """Return the hash of a folder's files, but for hidden ones."""
    digest = sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder)
        if not any(part.startswith(".") for part in name.parts):
            content = sha256(path.read_bytes()).hexdigest()
            digest.update(f"{name.as_posix()}\0{content}\0".encode())
    return digest.hexdigest()
