from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from conftest import Ended, Study, execute

from noisyhealth.report.runs import choose


@pytest.fixture(scope="module")
def analysed(nine: Study, shared_cache: Path) -> Ended:
    return execute(nine.folder, shared_cache, "analyze.py")


def test_the_categories_are_printed_by_model_and_task(analysed: Ended) -> None:
    assert analysed.returncode == 0, analysed.stderr
    lines = analysed.stdout.splitlines()
    at = lines.index("Scenarios by category, model and task")
    assert lines[at + 2].split()[:8] == ["majority", "sentiment", "36", "0", "36", "0", "0", "0"]
    assert "9 runs, 36 scenarios" in analysed.stdout


def test_friedmans_test_says_why_it_cannot_be_made(analysed: Ended) -> None:
    assert "all values are equal: there is nothing to rank" in analysed.stdout
    assert "Friedman's test needs 3" in analysed.stdout


def test_the_tables_are_written_with_the_runs_they_rest_on(analysed: Ended, nine: Study) -> None:
    assert analysed.returncode == 0
    folder = nine.folder / "reports" / "noisyhealth"
    scores = pd.read_csv(folder / "scores.csv")
    assert len(scores) == 36
    assert set(scores["n"]) == {6}
    assert scores["run_id"].nunique() == 9
    assert set(scores["category"]) == {"stable"}
    assert {path.name for path in (folder / "tables").glob("*.csv")} >= {
        "categories_by_model_task_embedded.csv",
        "categories_by_perturb_level_embedded.csv",
        "friedman_embedded.csv",
    }
    table = pd.read_csv(folder / "tables" / "categories_by_perturb_level_embedded.csv")
    assert list(table["n"]) == [4] * 9
    assert list(table["level"]) == ["low", "mid", "high"] * 3


def test_every_csv_can_be_read(analysed: Ended, nine: Study) -> None:
    assert analysed.returncode == 0
    for path in (nine.folder / "reports" / "noisyhealth").rglob("*.csv"):
        assert list(pd.read_csv(path).columns), path.name


def test_the_page_and_the_files_of_all_answers_and_texts_are_there(analysed: Ended, nine: Study) -> None:
    assert analysed.returncode == 0
    folder = nine.folder / "reports" / "noisyhealth"
    assert str((folder / "index.html").resolve()) in analysed.stdout
    answers = pd.read_parquet(folder / "answers.parquet")
    assert len(answers) == 6 * 10, "nine cells and the clean texts"
    assert len(pd.read_parquet(folder / "texts.parquet")) == 6 * 9
    assert set(answers["flip"]) == {"", "same"}


def test_a_study_without_runs_is_said_in_a_sentence(nine: Study, shared_cache: Path) -> None:
    ended = execute(nine.folder, shared_cache, "analyze.py", "study=never_run")
    assert ended.returncode == 2
    assert "DataError: there is no study 'never_run'" in ended.stderr
    assert "run.py" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


@pytest.fixture(scope="module")
def part(nine: Study, shared_cache: Path) -> Ended:
    """A study of one disturbance at two levels."""
    cells = ("-m", "model=majority", "perturb=redact", "level=low,mid", "data.split.test=6", "study=part")
    return execute(nine.folder, shared_cache, "run.py", *cells)


def test_a_study_that_is_not_whole_is_not_analysed_but_listed(part: Ended, nine: Study, shared_cache: Path) -> None:
    assert part.returncode == 0, part.stderr
    ended = execute(nine.folder, shared_cache, "analyze.py", "study=part", "grid.level=[low,mid,high]")
    assert ended.returncode == 2
    assert "study 'part' is not whole: 1 missing" in ended.stderr
    assert "- missing: sentiment · majority · redact · high · weights embedded" in ended.stderr
    assert "allow_incomplete=true" in ended.stderr
    assert not (nine.folder / "reports" / "part").exists()


@pytest.mark.slow
def test_where_it_is_allowed_every_table_says_so(part: Ended, nine: Study, shared_cache: Path) -> None:
    assert part.returncode == 0, part.stderr
    given = ("study=part", "grid.level=[low,mid,high]", "allow_incomplete=true")
    ended = execute(nine.folder, shared_cache, "analyze.py", *given)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    titles = [
        at
        for at, line in enumerate(lines)
        if line.startswith(("Scenarios by", "Categories against", "Friedman's test over"))
    ]
    assert len(titles) == 4
    assert {lines[at - 1] for at in titles} == {"INCOMPLETE: 1 missing (see problems)"}
    problems = pd.read_csv(nine.folder / "reports" / "part" / "tables" / "problems.csv")
    assert list(problems["problem"]) == ["missing"]


def test_the_categories_are_tested_against_each_dimension(analysed: Ended, nine: Study) -> None:
    assert analysed.returncode == 0
    table = pd.read_csv(nine.folder / "reports" / "noisyhealth" / "tables" / "chi_squared_embedded.csv")
    assert list(table["factor"]) == ["perturb", "model", "task", "level"]
    assert set(table["n"]) == {36}
    assert table["p"].isna().all(), "one category: nothing to test"
    assert table["note"].str.contains("no increase; no decrease; no catastrophic").all()


def run_on(name: str, data: str, *, task: str = "qa", begun: int = 0) -> Any:
    """A finished run of a cell; `name` is its model."""
    tags = {"data_hash": data, "task": task, "weights": "embedded", "model": name, "answered_by": name}
    tags |= {"perturb": "typo", "level": "low", "code_hash": ""}
    params = {"rate": "0.1"}
    info = SimpleNamespace(run_name=name, run_id=f"id-{name}", status="FINISHED", start_time=begun)
    return SimpleNamespace(info=info, data=SimpleNamespace(tags=tags, params=params))


def test_cells_on_other_examples_are_left_out_and_named() -> None:
    runs = [run_on("a", "few"), run_on("b", "all"), run_on("c", "all"), run_on("d", "few", task="sentiment")]
    chosen = choose(runs)
    assert [run.info.run_name for run in chosen.runs] == ["b", "c", "d"]
    assert chosen.left_out == ("a (id-a) is on other examples than most cells of its task: left out",)


def test_of_two_sets_of_examples_with_as_many_cells_the_later_counts() -> None:
    runs = [run_on("new", "y", begun=2), run_on("old", "x", begun=1)]
    assert [run.info.run_name for run in choose(runs).runs] == ["new"]


def test_of_two_runs_of_a_cell_the_newer_counts() -> None:
    runs = [run_on("a", "x", begun=2), run_on("a", "x", begun=1)]
    chosen = choose(runs)
    assert [run.info.start_time for run in chosen.runs] == [2]
    assert chosen.left_out == ("1 runs are older than another of the same cell and left out",)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("allow_incomplete=no", "allow_incomplete='no' is neither true nor false"),
        ("log=1", "log=1 is neither true nor false"),
        ("grid.level=[]", "grid.level=[] is no list of names"),
        ("grid.level=3", "grid.level=3 is no list of names"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_said_in_a_sentence(
    nine: Study, shared_cache: Path, setting: str, told: str
) -> None:
    ended = execute(nine.folder, shared_cache, "analyze.py", setting)
    assert ended.returncode == 2
    assert f"ConfigError: {told}" in ended.stderr
    assert "Traceback" not in ended.stderr
