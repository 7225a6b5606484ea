"""Datasets of the hub: a folder stands for a repository, and nobody is asked over a network."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import RepositoryNotFoundError

from noisyhealth.errors import ConfigError, DataError
from noisyhealth.sources import hub
from noisyhealth.sources.hub import Hub
from noisyhealth.sources.source import Columns, Read

COMMIT = "cab853a1dbdf4c42c2b3ef2173804746df8825fe"
COLUMNS = Columns("text", "label", targets={"0": "negative", "1": "positive"})
CARD = """---
dataset_info:
  features:
  - {name: text, dtype: string}
  - {name: label, dtype: {class_label: {names: {'0': sadness, '1': joy, '2': love}}}}
---
"""


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own for what `datasets` keeps, with the connection off."""
    datasets = pytest.importorskip("datasets", reason="the package datasets (extra hub) is not installed")
    folder = tmp_path / "kept"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    hub._commit.cache_clear()
    yield folder
    hub._commit.cache_clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of two splits with named labels."""
    made = tmp_path / "emotion"
    made.mkdir()
    (made / "README.md").write_text(CARD)
    rows = {"train": [("low &amp; sad", 0), ("glad", 1)], "test": [("fond", 2), (" ", 0)]}
    for split, texts in rows.items():
        lines = [json.dumps({"text": text, "label": label}) for text, label in texts]
        (made / f"{split}.jsonl").write_text("\n".join(lines))
    return made


def source(repo: object, columns: Columns = COLUMNS, **settings: Any) -> Hub:
    return Hub({"sentiment": str(repo)}, {"sentiment": columns}, **settings)


def targets(found: list[Read]) -> list[tuple[str, str, str]]:
    return [(r.example.text, r.example.target, r.reason) for r in found]


def says(monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    """Let the hub give a commit, or raise an error."""

    def dataset_info(self: object, repo: str, revision: str | None = None) -> object:
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(sha=f"{answer} {revision}" if revision else answer)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)


def test_a_folder_gives_the_rows_of_all_its_splits_again_and_again(folder: Path) -> None:
    found = list(source(folder).read("sentiment"))
    assert targets(found) == [
        ("fond", "2", "has a target that is not mapped"),
        (" ", "0", "has no text"),
        ("low & sad", "negative", ""),
        ("glad", "positive", ""),
    ]
    assert found[2].repairs == ("entities",)
    assert list(source(folder).read("sentiment")) == found
    assert "low &amp; sad" in [r.example.text for r in source(folder, repair=[]).read("sentiment")]


def test_labels_may_be_mapped_by_their_names(folder: Path) -> None:
    names = Columns("text", "label", targets={"sadness": "negative", "joy": "positive", "love": "positive"})
    assert [r.example.target for r in source(folder, names).read("sentiment")] == [
        "positive",
        "sadness",
        "negative",
        "positive",
    ]


def test_the_state_of_a_folder_changes_with_its_files_and_so_do_its_rows(folder: Path) -> None:
    given = source(folder)
    before = given.state("sentiment")
    assert len(list(given.read("sentiment"))) == 4
    (folder / ".cache").write_text("hidden")
    assert given.state("sentiment") == before
    with (folder / "train.jsonl").open("a") as file:
        file.write('\n{"text": "gay", "label": 1}')
    assert given.state("sentiment") != before
    assert len(list(given.read("sentiment"))) == 5


def test_a_missing_column_names_split_row_and_columns(folder: Path) -> None:
    message = r"emotion, split test, row 1: no column 'content'; it has text, label: set data\.source\.columns"
    with pytest.raises(DataError, match=message):
        list(source(folder, Columns("content", "label")).read("sentiment"))


def test_the_state_of_a_repository_is_the_commit_that_the_hub_names(monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, COMMIT)
    assert source("who/emotion").state("sentiment") == COMMIT
    assert source("who/emotion", revisions={"sentiment": None}).state("sentiment") == COMMIT
    assert source("who/emotion", revisions={"sentiment": "v2"}).state("sentiment") == f"{COMMIT} v2"


def keep(folder: Path, kept: Path) -> None:
    """Leave what a download of who/emotion at COMMIT leaves on this machine."""
    list(source(folder).read("sentiment"))
    prepared = next(path.parent for path in kept.rglob("dataset_info.json"))
    shutil.copytree(prepared, kept / "who___emotion" / "default" / "0.0.0" / COMMIT)


@pytest.mark.parametrize("revision", [None, COMMIT])
def test_without_a_connection_the_commit_kept_here_is_read(folder: Path, kept: Path, revision: str | None) -> None:
    keep(folder, kept)
    given = source("who/emotion", revisions={"sentiment": revision})
    assert given.state("sentiment") == COMMIT
    assert [r.example.text for r in given.read("sentiment")] == ["fond", " ", "low & sad", "glad"]


def test_another_revision_than_that_kept_here_is_never_read_in_its_place(
    folder: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(folder, kept)
    given = source("who/emotion", revisions={"sentiment": "v2"})
    with pytest.raises(DataError, match=f"what is kept here is commit {COMMIT}, not revision 'v2': connect, or set"):
        given.state("sentiment")
    says(monkeypatch, "f" * 40)  # the connection breaks after the hub has named a newer commit
    with pytest.raises(DataError, match=f"got commit {COMMIT}, not ffffffff"):
        source("who/emotion").read("sentiment")


def test_a_dataset_that_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"'who/none' cannot be had from the hub .*: connect, or use data=sample"):
        source("who/none").read("sentiment")
    answer = SimpleNamespace(headers={}, request=None, status_code=404)
    says(monkeypatch, RepositoryNotFoundError("no", response=answer))  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"no dataset 'who/none' at revision 'v9'.* check data\.source\.repos"):
        source("who/none", revisions={"sentiment": "v9"}).state("sentiment")


def test_a_task_without_a_dataset_and_a_repair_that_is_none_name_the_setting(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"set data\.source\.repos\.qa and data\.source\.columns\.qa"):
        source(folder).read("qa")
    with pytest.raises(ConfigError, match=r"data\.source\.repair has spelling"):
        source(folder, repair=["spelling"])
