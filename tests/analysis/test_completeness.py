"""What a study lacks, one constructed fault at a time."""

from dataclasses import replace
from itertools import product

import pytest

from noisyhealth.analysis.completeness import CellRun, Problem, problems, summary

CONDITIONS = [("none", "none"), *product(("typo", "redact"), ("low", "high"))]


def whole() -> list[CellRun]:
    """A study of two tasks, two models and four disturbed cells each, with its baselines."""
    return [
        CellRun(f"r{at}", task, part, f"{part}(X)", "embedded", perturb, level, "FINISHED", f"of {task}", "c1", at)
        for at, (task, part, (perturb, level)) in enumerate(product(("qa", "sentiment"), ("gpt", "llama"), CONDITIONS))
    ]


def kinds(found: list[Problem]) -> list[str]:
    return [problem.kind for problem in found]


def test_a_whole_study_has_no_problem() -> None:
    assert len(whole()) == 20
    assert problems(whole()) == []


def test_no_run_at_all_is_no_problem_of_the_grid() -> None:
    assert problems([]) == []


@pytest.mark.parametrize("at", range(20))
def test_each_cell_that_is_not_there_is_named(at: int) -> None:
    runs = whole()
    gone = runs.pop(at)
    [problem] = problems(runs)
    level = [gone.level] if gone.level != "none" else []
    assert problem == Problem("missing", " · ".join([gone.task, gone.model, gone.perturb, *level, "weights embedded"]))


@pytest.mark.parametrize(("status", "kind"), [("FAILED", "failed"), ("KILLED", "killed"), ("RUNNING", "unfinished")])
def test_a_cell_without_a_finished_run_is_named_by_what_became_of_it(status: str, kind: str) -> None:
    runs = whole()
    runs[3] = replace(runs[3], status=status)
    assert problems(runs) == [Problem(kind, "qa · gpt(X) · redact · low · weights embedded", ("r3",))]


def test_a_cell_that_failed_before_it_was_done_is_done() -> None:
    assert problems([*whole(), replace(whole()[3], run="first", status="FAILED", begun=-1)]) == []
    assert problems([*whole(), replace(whole()[3], run="later", status="FAILED", begun=99)]) == []


def test_two_finished_runs_of_one_cell_are_named() -> None:
    [problem] = problems([*whole(), replace(whole()[3], run="again", begun=99)])
    assert (problem.kind, problem.runs) == ("duplicate", ("r3", "again"))


def test_a_study_that_newer_code_ran_again_is_whole_and_half_of_one_is_not() -> None:
    again = [replace(run, run=f"n{run.run}", code="c2", begun=run.begun + 100) for run in whole()]
    assert problems([*whole(), *again]) == []
    assert problems([*again, *whole()]) == []
    [problem] = problems([*whole(), *again[:7]])
    assert problem == Problem("mixed code", "runs of 2 versions of the code: c2 in 7 runs, c1 in 13 runs")


def test_mixed_code_weights_and_examples_are_named() -> None:
    runs = whole()
    runs[3] = replace(runs[3], code="c2")
    assert problems(runs) == [Problem("mixed code", "runs of 2 versions of the code: c1 in 19 runs, c2 in 1 runs")]
    both = [*whole(), *(replace(run, run=f"s{run.run}", weights="study") for run in whole())]
    assert kinds(problems(both)) == ["mixed weights"]
    runs = whole()
    runs[3] = replace(runs[3], examples="others")
    assert kinds(problems(runs)) == ["mixed examples", "other texts than the baseline"]
    assert problems(runs)[1].runs == ("r3",)


def test_weights_need_their_own_whole_grid() -> None:
    some = [replace(run, run=f"s{run.run}", weights="study") for run in whole() if run.task == "qa"]
    assert kinds(problems([*whole(), *some])) == ["mixed weights"]  # of the other weights only qa was ever asked
    assert summary(problems([*whole(), *some[:-1]])) == "1 missing, 1 mixed weights"


def test_a_grid_that_is_named_may_be_larger_than_what_the_runs_have() -> None:
    named = {"task": ["qa", "sentiment", "condition"], "model": ["gpt", "llama", "bluebert"]}
    found = problems(whole(), named)
    assert summary(found) == f"{3 * 3 * 5 - 20} missing"
    assert Problem("missing", "condition · bluebert · typo · high · weights embedded") in found
    levels = problems(whole(), {"perturb": ["none", "typo", "homophone"], "level": ["low", "mid", "high"]})
    assert summary(levels) == f"{4 * (1 + 2 * 3) - 4 * 3} missing"


def test_a_level_that_only_one_disturbance_has_is_missing_under_the_others() -> None:
    runs = [run for run in whole() if (run.perturb, run.level) != ("redact", "high")]
    assert summary(problems(runs)) == "4 missing"


def test_what_a_sweep_set_out_to_run_and_never_came_to_is_missing() -> None:
    swept = {"weights": ["embedded"], "task": ["qa", "sentiment", "condition"], "model": ["gpt", "llama"]}
    swept |= {"perturb": ["none", "typo", "redact"], "level": ["low", "high"]}
    found = problems(whole(), swept=[swept])
    assert summary(found) == f"{2 * (1 + 2 * 2)} missing"
    assert Problem("missing", "condition · gpt(X) · typo · low · weights embedded") in found
    assert problems(whole(), {"task": ["qa", "sentiment"]}, [swept]) == []


def test_prompts_and_rates_that_differ_within_a_task_or_level_are_named() -> None:
    runs = [replace(run, prompt="p1", rate=0.1) for run in whole()]
    assert problems(runs) == []
    runs[3] = replace(runs[3], prompt="p2")
    assert problems(runs) == [Problem("mixed prompts", "qa, weights embedded: p1 in 9 runs, p2 in 1 runs")]
    runs[3] = replace(runs[3], prompt="p1", rate=0.2)
    assert problems(runs) == [Problem("mixed rates", "redact low, weights embedded: 0.2 in 1 runs, 0.1 in 3 runs")]


def ablated() -> list[CellRun]:
    """The same study under three values of a setting, each with its prompt and its texts."""
    return [
        replace(run, run=f"{value}-{run.run}", factors=(("shots", value),), prompt=value, examples=f"{run.task}{value}")
        for value in "501"
        for run in whole()
    ]


def test_each_value_of_a_factor_has_a_grid_of_its_own_and_mixes_with_no_other() -> None:
    assert problems(ablated()) == []
    runs = ablated()
    gone = runs.pop(23)
    [problem] = problems(runs)
    assert problem.what == f"{gone.task} · {gone.model} · {gone.perturb} · {gone.level} · shots=0 · weights embedded"


def test_a_value_of_a_factor_that_a_sweep_never_came_to_is_missing() -> None:
    swept = {"weights": ["embedded"], "task": ["qa", "sentiment"], "model": ["gpt", "llama"]}
    swept |= {"perturb": ["none", "typo", "redact"], "level": ["low", "high"], "shots": ["5", "0", "1", "3"]}
    found = problems(ablated(), swept=[swept])
    assert summary(found) == "20 missing"
    assert all("shots=3" in problem.what for problem in found)


def test_the_same_cell_under_two_values_is_no_duplicate_and_twice_under_one_is() -> None:
    again = replace(ablated()[0], run="again", begun=99)
    assert kinds(problems([*ablated(), again])) == ["duplicate"]
    assert problems([*whole(), *ablated()]) == []  # cells of no ablation beside those of one


def test_what_is_wrong_outside_a_grid_that_is_named_is_no_problem_of_it() -> None:
    runs = whole()
    runs[3] = replace(runs[3], status="RUNNING")
    assert kinds(problems(runs)) == ["unfinished"]
    assert problems(runs, {"task": ["sentiment"]}) == []
