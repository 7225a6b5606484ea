"""Which model is said to cope worst: never one that had nothing to lose."""

import numpy as np
import pandas as pd
import pytest

from noisyhealth.report.sections import coping

TEXTS = 40


def answers(**share: float) -> pd.DataFrame:
    """Answers of models that are all right on clean texts, and on disturbed ones but for a share of the texts."""
    rows = [
        {"task": "mood", "id": f"{n:02}", "group": f"{n:02}", "model": model, "perturb": "typo", "level": level,
         "clean_right": 1.0, "right": float(n >= TEXTS * lost)}
        for model, lost in share.items()
        for level in ("low", "high")
        for n in range(TEXTS)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def sentence(items: pd.DataFrame, low: set[tuple[str, str]]) -> str:
    [told] = coping.section("w", coping.frames(items, low), {"mood": "accuracy"}).sentences
    return told


def test_the_model_that_lost_most_copes_worst_and_the_two_are_compared_text_by_text() -> None:
    told = sentence(answers(a=0.1, b=0.5, c=0.3), set())
    assert told.startswith("mood, mean change of accuracy over the disturbed cells: b with -0.500 [")
    assert " from 1.000 copes worst, a with -0.100 [" in told
    assert "; between the two -0.400 [" in told


@pytest.mark.parametrize("at_floor", ["a", "b"])
def test_a_model_near_its_floor_copes_neither_best_nor_worst(at_floor: str) -> None:
    told = sentence(answers(a=0.1, b=0.5, c=0.3, d=0.2), {("mood", at_floor)})
    worst, best = ("b", "d") if at_floor == "a" else ("c", "a")
    assert f": {worst} with " in told
    assert f" copes worst, {best} with " in told
    assert f"; with little to lose, since near their floor: {at_floor} with " in told


def test_with_one_model_above_its_floor_none_copes_worst() -> None:
    told = sentence(answers(a=0.1, b=0.5), {("mood", "a")})
    assert told.startswith("mood, mean change of accuracy over the disturbed cells: b with -0.500 [")
    assert told.endswith("; which model copes worst cannot be told.")
    assert "copes worst, " not in told


def test_of_many_models_each_stands_against_the_best_of_those_above_their_floor() -> None:
    share = {f"m{n}": n / 20 for n in range(9)}
    found = coping.frames(answers(**share), {("mood", "m0")})
    assert set(found.models["model"][found.models["near_floor"]]) == {"m0"}
    assert len(found.pairs) == 8
    assert ((found.pairs["first"] == "m1") | (found.pairs["second"] == "m1")).all()
    assert found.pairs["difference"].to_numpy(dtype=float).max() <= 0
    assert np.allclose(
        sorted(found.pairs["difference"].astype(float)), sorted([*((1 - n) / 20 for n in range(2, 9)), -0.05])
    )
