"""A study's archive: checked on a machine that has neither MLflow nor a network nor the study."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from audited import unpacked
from conftest import Ended

from noisyhealth import manifest
from noisyhealth.audit import bundle, command
from noisyhealth.audit.bundle import Bundle
from noisyhealth.audit.finding import Verdict
from noisyhealth.errors import DataError

pytestmark = pytest.mark.slow

Ask = Callable[..., Ended]

ALONE = """
import socket, sys

class WithoutMlflow:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] == "mlflow" else self.finder.find_spec(name, path, target)

def refuse(*arguments, **named):
    raise OSError("there is no network")

sys.meta_path[:] = map(WithoutMlflow, sys.meta_path)
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
"""


@pytest.fixture(scope="module")
def packed(audited: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return unpacked(audited, tmp_path_factory.mktemp("unpacked"))


def test_an_archive_is_checked_without_mlflow_network_and_cache(audited: Path, ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(ALONE)
    empty = tmp_path / "empty"
    ended = ask(
        "verify",
        str(audited / "out" / "demo.zip"),
        f"cache={empty}",
        PYTHONPATH=str(tmp_path),
        NOISYHEALTH_CACHE=str(empty),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("10 runs: 10 the same.")
    assert "108 replies in the journal" in ended.stdout
    assert "tables computed again" in ended.stdout


def test_a_changed_byte_in_any_file_of_an_archive_is_found(packed: Bundle, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(packed.folder, tmp_path / "copy"))
    assert list(Bundle(folder).differences()) == []
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert {"manifest.json", "journal.jsonl", "dataset.parquet", "index.html"} <= {path.name for path in files}
    for file in files:
        whole = file.read_bytes()
        at = len(whole) // 2
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        told = list(Bundle(folder).differences())
        assert told, file
        assert told[0].startswith(file.relative_to(folder).as_posix())
        file.write_bytes(whole)


def test_the_same_study_gives_the_same_archive(audited: Path, ask: Ask) -> None:
    assert ask("bundle", "demo", "--to", "again").returncode == 0
    assert (audited / "again" / "demo.zip").read_bytes() == (audited / "out" / "demo.zip").read_bytes()


def test_a_folder_that_cannot_be_made_is_told_with_its_option(audited: Path, ask: Ask) -> None:
    ended = ask("bundle", "demo", "--to", "/proc/none")
    assert ended.returncode == 2
    assert "--to='/proc/none' cannot be made (No such file or directory)" in ended.stderr


def test_an_archive_that_would_write_outside_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../outside.txt", "here")
    (tmp_path / "to").mkdir()
    with pytest.raises(DataError, match=r"'\.\./outside\.txt' would be written outside"):
        bundle.unpack(tmp_path / "evil.zip", tmp_path / "to")
    assert not (tmp_path / "outside.txt").exists()


@pytest.mark.parametrize(("content", "told"), [(b"no archive", "cannot be unpacked"), (None, "has no manifest.json")])
def test_a_file_that_is_no_archive_of_a_study_is_refused(content: bytes | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "some.zip"
    if content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.txt", "a")
    else:
        path.write_bytes(content)
    (tmp_path / "to").mkdir()
    with pytest.raises(DataError, match=told):
        bundle.unpack(path, tmp_path / "to")


def resigned(folder: Path) -> None:
    """Sign a folder's changed files as if they had never been otherwise."""
    about = {name: value for name, value in manifest.read(folder).items() if name not in ("files", "sha256")}
    manifest.write(folder, about)


def test_a_number_changed_in_an_archive_s_report_and_signed_anew_is_found(
    packed: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(packed.folder, tmp_path / "copy"))
    scores = folder / "report" / "scores.csv"
    scores.write_text(scores.read_text(encoding="utf-8").replace("stable", "increase", 1), encoding="utf-8")
    resigned(folder / "report")
    resigned(folder)
    assert command.verify_archive(Bundle(folder)) is Verdict.DIFFERENT
    assert "scores.csv, line 2: the report has" in capsys.readouterr().out


def test_an_archive_without_runs_or_without_replies_and_datasets_is_not_the_same(
    packed: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(packed.folder, tmp_path / "copy"))
    (folder / "journal.jsonl").write_text("")
    shutil.rmtree(folder / "datasets")
    shutil.rmtree(folder / "report")
    resigned(folder)
    assert command.verify_archive(Bundle(folder)) is Verdict.UNKNOWN
    told = capsys.readouterr().out
    assert "12 of 12 replies are not in the journal" in told
    assert "is not here: whether these were the texts to be tested cannot be told" in told
    shutil.rmtree(folder / "runs")
    resigned(folder)
    assert command.verify_archive(Bundle(folder)) is Verdict.UNKNOWN
    assert "it holds no run" in capsys.readouterr().out
