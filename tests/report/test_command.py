from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from conftest import Ended, Study, execute

from noisyhealth import report


@pytest.fixture(scope="module")
def analysed(nine: Study, shared_cache: Path) -> Ended:
    return execute(nine.folder, shared_cache, "analyze.py")


def test_the_categories_are_printed_by_model_and_task(analysed: Ended) -> None:
    assert analysed.returncode == 0, analysed.stderr
    assert "Scenarios by category, model and task" in analysed.stdout
    [row] = [line.split() for line in analysed.stdout.splitlines() if line.startswith("embedded majority")]
    assert row[:9] == ["embedded", "majority", "sentiment", "36", "0", "36", "0", "0", "0"]
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
    assert {path.name for path in folder.glob("*.csv")} >= {
        "categories_by_model_task.csv",
        "categories_by_perturb_level.csv",
        "friedman_embedded.csv",
    }
    table = pd.read_csv(folder / "categories_by_perturb_level.csv")
    assert list(table["n"]) == [4] * 9
    assert list(table["level"]) == ["low", "mid", "high"] * 3


def test_every_csv_can_be_read(analysed: Ended, nine: Study) -> None:
    assert analysed.returncode == 0
    for path in (nine.folder / "reports" / "noisyhealth").glob("*.csv"):
        assert list(pd.read_csv(path).columns), path.name


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


def test_where_it_is_allowed_every_table_says_so(part: Ended, nine: Study, shared_cache: Path) -> None:
    assert part.returncode == 0, part.stderr
    given = ("study=part", "grid.level=[low,mid,high]", "allow_incomplete=true")
    ended = execute(nine.folder, shared_cache, "analyze.py", *given)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    titles = [
        at for at, line in enumerate(lines) if line.startswith(("Scenarios by", "Categories against", "Friedman"))
    ]
    assert len(titles) == 4
    assert {lines[at - 1] for at in titles} == {"INCOMPLETE: 1 missing (problems.csv)"}
    problems = pd.read_csv(nine.folder / "reports" / "part" / "problems.csv")
    assert list(problems["problem"]) == ["missing"]


def test_the_categories_are_tested_against_each_dimension(analysed: Ended, nine: Study) -> None:
    assert analysed.returncode == 0
    table = pd.read_csv(nine.folder / "reports" / "noisyhealth" / "chi_squared_embedded.csv")
    assert list(table["factor"]) == ["perturb", "model", "task", "level"]
    assert set(table["n"]) == {36}
    assert table["p"].isna().all(), "one category: nothing to test"
    assert table["note"].str.contains("no increase; no decrease; no catastrophic").all()


def run_on(name: str, data: str, task: str = "qa", weights: str = "embedded") -> Any:
    tags = {"data_hash": data, "task": task, "weights": weights}
    return SimpleNamespace(info=SimpleNamespace(run_name=name, run_id=f"id-{name}"), data=SimpleNamespace(tags=tags))


def test_cells_on_other_examples_are_left_out_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [run_on("a", "few"), run_on("b", "all"), run_on("c", "all"), run_on("d", "few", task="sentiment")]
    assert [run.info.run_name for run in report.same_examples(runs)] == ["b", "c", "d"]
    assert capsys.readouterr().out == "a (id-a) is on other examples than most cells of its task: left out\n"


def test_of_two_sets_of_examples_with_as_many_cells_the_later_counts() -> None:
    assert [r.info.run_name for r in report.same_examples([run_on("old", "x"), run_on("new", "y")])] == ["new"]
