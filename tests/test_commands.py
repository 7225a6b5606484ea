"""`python -m noisyhealth`: the dataset of a configuration, built and exported from the command line."""

import json
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY, Ended, asked


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> tuple[Path, Ended, Ended]:
    """A folder in which two datasets were built and one exported."""
    folder = tmp_path_factory.mktemp("commands")
    built = asked(folder, shared_cache, "dataset", "build", "task=sentiment,qa")
    exported = asked(folder, shared_cache, "dataset", "export", "task=qa", "--to", "out", "seed=0")
    return folder, built, exported


def test_a_build_prints_for_each_task_how_many_texts_are_kept_and_the_dose(ran: tuple[Path, Ended, Ended]) -> None:
    built = ran[1]
    assert (built.returncode, built.stderr) == (0, "")
    for wanted in ("task sentiment", "task qa", "reaches homophone high", "kept: reaches every level", "typo mid"):
        assert wanted in built.stdout
    assert built.stdout.count("asked") == 2  # a table of doses each


def test_a_build_that_is_there_is_not_made_again(ran: tuple[Path, Ended, Ended], shared_cache: Path) -> None:
    folder = Path(ran[1].stdout.splitlines()[-2])
    before = (folder / "dataset.parquet").stat().st_mtime_ns
    again = asked(ran[0], shared_cache, "dataset", "build", "task=qa")
    assert again.stdout.splitlines()[-2] == str(folder)
    assert (folder / "dataset.parquet").stat().st_mtime_ns == before


def test_settings_may_stand_before_and_after_options(ran: tuple[Path, Ended, Ended]) -> None:
    folder, _, exported = ran
    assert (exported.returncode, exported.stderr) == (0, "")
    rows = sum(pq.read_table(path).num_rows for path in (folder / "out/qa/data").glob("*.parquet"))
    assert f"{rows} texts of task qa: out/qa" in exported.stdout
    assert json.loads((folder / "out/qa/build.json").read_text())["attrition"]["kept"] == rows


def test_the_readme_s_checker_finds_no_fault_in_an_export(ran: tuple[Path, Ended, Ended]) -> None:
    ended = checked(ran[0] / "out/qa")
    rows = json.loads((ran[0] / "out/qa/build.json").read_text())["attrition"]["kept"]
    assert (ended.returncode, ended.stdout.splitlines()[-1].split()[:2]) == (0, ["faults=0", f"texts={rows}"])


def test_the_readme_s_checker_finds_a_text_that_stands_in_two_files_of_an_export(
    ran: tuple[Path, Ended, Ended], tmp_path: Path
) -> None:
    copytree(ran[0] / "out/qa", tmp_path / "qa")
    prompt, test = (pq.read_table(tmp_path / f"qa/data/{name}.parquet") for name in ("prompt", "test"))
    leaked = pa.concat_tables([prompt, test.slice(0, 1).set_column(5, "split", pa.array(["prompt"]))])
    pq.write_table(leaked.replace_schema_metadata(prompt.schema.metadata), tmp_path / "qa/data/prompt.parquet")
    ended = checked(tmp_path / "qa")
    assert ended.returncode == 1
    assert "FAULT no text in two values of split" in ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting", ["perturb=redact perturb.change.mask=___", "protect=[]", "perturb=typo perturb.unit=valid_words"]
)
def test_the_checker_takes_the_settings_that_the_readme_names(
    ran: tuple[Path, Ended, Ended], shared_cache: Path, tmp_path: Path, setting: str
) -> None:
    made = asked(tmp_path, shared_cache, "dataset", "export", "task=sentiment", "--to", "out", *setting.split())
    assert made.returncode == 0, made.stderr
    ended = checked(tmp_path / "out/sentiment")
    assert ended.returncode == 0, ended.stdout


def checked(folder: Path) -> Ended:
    command = [sys.executable, str(REPOSITORY / "scripts/check_dataset.py"), str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("dataset", "export", "task=qa", "--to", "out"), "DataError: out/qa exists: remove it"),
        (("dataset", "build", "task=qaa"), "there is no task 'qaa', did you mean qa?"),
        (("dataset", "build", "task=qa", "data=files"), "set data.source.paths.qa=FILE"),
        (("dataset", "build", "perturb.unit=letters"), "unit='letters' is none of words, valid_words, chars"),
        (("dataset", "build", "valid_pos=[NOUNS]"), "valid_pos has NOUNS: it may have ADJ"),
        (("dataset", "build", "protect=[numbers]"), "'numbers'"),
        (("dataset", "build", "letters.letters=a"), "letters='a': give at least two letters"),
        (("dataset", "build", "--foo"), "unknown option --foo"),
        (("dataset",), "build|export"),
        ((), "COMMAND"),
    ],
)
def test_what_cannot_be_done_is_one_readable_error_and_exit_code_two(
    ran: tuple[Path, Ended, Ended], shared_cache: Path, arguments: tuple[str, ...], error: str
) -> None:
    ended = asked(ran[0], shared_cache, *arguments)
    assert ended.returncode == 2
    assert error in ended.stderr
    assert "Traceback" not in ended.stderr
