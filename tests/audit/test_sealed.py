"""Runs that may hold no text: hashes and counts in its place, and a check that says what it cannot tell."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from conftest import Ended, Study, asked, execute

from noisyhealth.tracking.seal import MARK, sealer

pytestmark = pytest.mark.slow

Ask = Callable[..., Ended]
GRID = ("-m", "task=sentiment,qa", "model=majority", "perturb=none,typo", "level=high", "data.split.test=6")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Study:
    folder = tmp_path_factory.mktemp("sealed")
    ended = execute(folder, shared_cache, "run.py", *GRID, "tracking.keep_text=false")
    assert ended.returncode == 0, ended.stderr
    analysed = execute(folder, shared_cache, "analyze.py", "allow_incomplete=true")
    assert analysed.returncode == 0, analysed.stderr
    return Study(folder, GRID, ended)


def kept(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.rglob(pattern) if path.is_file())


def test_no_text_of_an_example_is_in_any_file_of_runs_and_report(sealed: Study, shared_cache: Path) -> None:
    tables = kept(shared_cache / "datasets", "dataset.parquet")
    texts = {text for table in tables for text in pd.read_parquet(table, columns=["text"])["text"]}
    assert len(texts) > 100
    written = [path for part in ("mlruns", "reports", "multirun") for path in kept(sealed.folder / part, "*")]
    written += [sealed.folder / "mlflow.db"]
    assert len(written) > 60
    for path in written:
        content = _content(path)
        # Long enough to be found whole, and short enough to be whole on one line.
        assert not [text for text in texts if text[:40] in content], path


def _content(path: Path) -> str:
    if path.suffix == ".parquet":
        return str(pd.read_parquet(path).to_dict("list"))
    return path.read_bytes().decode("utf-8", "replace")


def test_hashes_labels_counts_and_numbers_are_kept(sealed: Study) -> None:
    for path in kept(sealed.folder / "mlruns", "predictions.parquet"):
        frame = pd.read_parquet(path)
        assert frame[["text", "reply", "request"]].map(lambda one: one.startswith(MARK)).all(axis=None)
        free = frame["question"].str.startswith(MARK)
        assert frame["target"].str.startswith(MARK).equals(free)
    for path in kept(sealed.folder / "mlruns", "variants.parquet"):
        edits = [edit for row in pd.read_parquet(path)["edits"] for edit in json.loads(row)]
        assert {(edit["before"], edit["after"]) for edit in edits} <= {("", "")}
        assert all(edit["pos"] and edit["op"] for edit in edits)


def test_verify_checks_the_numbers_of_labels_and_says_what_it_cannot_check(sealed: Study, shared_cache: Path) -> None:
    ended = asked(sealed.folder, shared_cache, "verify", "noisyhealth")
    assert ended.returncode == 2, ended.stdout
    assert ended.stdout.count("texts were not kept (tracking.keep_text=false)") == 4
    assert "DIFFERENT" not in ended.stdout
    assert "4 runs: 4 cannot be checked. Checked: " in ended.stdout
    assert " numbers" in ended.stdout


def test_the_same_text_has_the_same_hash_in_one_cache_and_another_elsewhere(tmp_path: Path) -> None:
    one, again, other = (sealer(tmp_path / name) for name in ("a", "a", "b"))
    assert one("fever") == again("fever") != other("fever")
    assert one("fever") != one("fevers")
    assert one("") == ""
    assert (tmp_path / "a" / "seal.key").stat().st_mode & 0o777 == 0o600


def test_no_text_is_in_an_archive_either(sealed: Study, shared_cache: Path, tmp_path: Path) -> None:
    packed = asked(sealed.folder, shared_cache, "bundle", "noisyhealth", "--to", str(tmp_path))
    assert packed.returncode == 0, packed.stderr
    with zipfile.ZipFile(tmp_path / "noisyhealth.zip") as archive:
        archive.extractall(tmp_path / "open")
    tables = kept(shared_cache / "datasets", "dataset.parquet")
    texts = {text for table in tables for text in pd.read_parquet(table, columns=["text"])["text"]}
    assert not kept(tmp_path / "open", "dataset.parquet")
    for path in kept(tmp_path / "open", "*"):
        content = _content(path)
        assert not [text for text in texts if text[:40] in content], path
