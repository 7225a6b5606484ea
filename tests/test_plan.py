"""plan=true and budget: what a sweep would ask, and that it asks no more than it may."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ended, Study

OWN = ("data.split.test=6", "cache=own")  # no replies of other tests
GRID = ("-m", "model=majority", "task=sentiment,condition", "perturb=typo,redact", "level=low,high", *OWN)


@pytest.fixture
def planned(command: Callable[..., Ended]) -> Ended:
    return command("run.py", *GRID, "plan=true")


def test_a_plan_asks_nothing_and_leaves_no_run(planned: Ended, workspace: Path) -> None:
    assert (planned.returncode, planned.stderr) == (0, "")
    assert not (workspace / "mlflow.db").exists()


def test_a_plan_shows_each_model_s_calls_and_one_prompt_of_each_task(planned: Ended) -> None:
    # For each task 6 clean texts and 6 of each of 4 variants: 60 different questions in 8 cells.
    [line] = [line for line in planned.stdout.splitlines() if line.startswith("│ majority")]
    cells = [cell.strip() for cell in line.strip("│").split("│")]
    assert cells[:5] == ["majority", "8", "60", "0", "60"]
    assert cells[-1] == "nothing"
    assert planned.stdout.count("what is asked of the first text") == 2


@pytest.mark.slow
def test_a_plan_counts_what_is_known_already(command: Callable[..., Ended]) -> None:
    done = command("run.py", "model=majority", "perturb=typo", "level=low", *OWN)
    assert done.returncode == 0, done.stderr
    again = command("run.py", *GRID, "plan=true")
    [line] = [line for line in again.stdout.splitlines() if line.startswith("│ majority")]
    assert [cell.strip() for cell in line.strip("│").split("│")][:5] == ["majority", "8", "60", "12", "48"]


def test_a_plan_of_a_paid_model_needs_no_key_and_gives_money_as_a_range(command: Callable[..., Ended]) -> None:
    ended = command("run.py", "model=gpt", "weights=study", "weights.meaning=null", "data.split.test=6", "plan=true")
    assert ended.returncode == 0, ended.stderr
    [line] = [line for line in ended.stdout.splitlines() if line.startswith("│ gpt(gpt-4o-mini)")]
    low, high = (float(part) for part in line.strip("│").split("│")[-1].split("to"))
    assert 0 <= low < high < 0.1
    assert "Before it can run: gpt-4o-mini needs the environment variable OPENAI_API_KEY" in ended.stdout


def test_a_plan_counts_no_tokens_for_labels_that_are_chosen(command: Callable[..., Ended]) -> None:
    ended = command(
        "run.py", "-m", "model=llama", "task=sentiment,qa", "perturb=none", "data.split.test=6", "plan=true"
    )
    assert ended.returncode == 0, ended.stderr
    [line] = [line for line in ended.stdout.splitlines() if line.startswith("│ llama")]
    written = [cell.strip() for cell in line.strip("│").split("│")][6]
    low, high = written.split(" to ")
    assert (low, int(high) % 6) == ("6", 0), "only the six questions are answered in words"


@pytest.mark.slow
def test_a_budget_of_calls_holds_over_the_sweep_and_the_same_command_goes_on(command: Callable[..., Ended]) -> None:
    first = command("run.py", *GRID, "budget.calls=20")
    assert first.returncode == 1
    assert "Stopped: the budget is used up: 4 of 6 texts are not asked yet" in first.stderr
    assert "not run" in first.stdout
    second = command("run.py", *GRID, "budget.calls=39")
    assert second.returncode == 1
    third = command("run.py", *GRID, "budget.calls=1")  # 60 in all
    assert third.returncode == 0, third.stdout + third.stderr


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("budget.calls=-1", "budget.calls=-1: give a whole number of 0 or more"),
        ("budget.calls=many", "budget.calls='many' is not a number"),
        ("budget.usd=cheap", "budget.usd='cheap' is not a number"),
    ],
)
def test_a_limit_that_is_none_is_an_error_before_any_work(
    command: Callable[..., Ended], given: str, error: str, nine: Study
) -> None:
    ended = command("run.py", "model=majority", given)
    assert ended.returncode == 2
    assert error in ended.stderr
