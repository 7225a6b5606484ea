"""A setting against its reference on the same texts: against statsmodels and SciPy."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import bootstrap as of_scipy
from statsmodels.stats.contingency_tables import mcnemar

from noisyhealth.analysis.difference import difference
from noisyhealth.analysis.paired import BOOTSTRAP, MCNEMAR, Pairs

LABELS = ["a", "b"]


def pairs(reference: Sequence[int], value: Sequence[int], groups: Sequence[str] | None = None) -> Pairs:
    """Two versions of right (1) and wrong (0) answers to texts that are all an "a"."""
    first, second = (["a" if right else "b" for right in each] for each in (reference, value))
    return Pairs(["a"] * len(first), first, second, reference, value, groups or [""] * len(first), LABELS)


def answers(seed: int, n: int = 80) -> tuple[list[int], list[int]]:
    rng = random.Random(seed)
    reference = [int(rng.random() < 0.6) for _ in range(n)]
    return reference, [one if rng.random() < 0.7 else int(rng.random() < 0.8) for one in reference]


@pytest.mark.parametrize("seed", range(5))
def test_p_is_mcnemars_exact_one(seed: int) -> None:
    reference, value = answers(seed)
    table = np.zeros((2, 2))
    for one, other in zip(reference, value, strict=True):
        table[one, other] += 1
    found = difference(pairs(reference, value), "accuracy")
    assert found.method == MCNEMAR
    assert found.p == pytest.approx(mcnemar(table, exact=True).pvalue)
    assert found.difference == pytest.approx(np.mean(value) - np.mean(reference))


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_is_scipys_bca_of_paired_differences(seed: int) -> None:
    reference, value = answers(seed)
    moved = np.subtract(value, reference)
    ends = of_scipy((moved,), np.mean, n_resamples=4999, method="BCa", random_state=np.random.default_rng(1))
    found = difference(pairs(reference, value), "accuracy").interval
    assert found is not None
    expected = (ends.confidence_interval.low, ends.confidence_interval.high)
    assert (found.low, found.high) == pytest.approx(expected, abs=0.02)


def test_texts_of_one_patient_are_drawn_together() -> None:
    reference, value = answers(1)
    groups = [str(at // 4) for at in range(len(value))]
    found = difference(pairs(reference, value, groups), "accuracy")
    assert (found.n, found.groups, found.method) == (80, 20, BOOTSTRAP)


def test_equal_answers_have_no_test_and_say_so() -> None:
    found = difference(pairs([1, 0, 1], [1, 0, 1]), "accuracy")
    assert (found.difference, found.p, found.interval) == (0, None, None)
    assert found.note == "no answer differs in what this score counts: no test"


def test_a_score_that_answers_do_not_give_has_a_note_and_no_number() -> None:
    found = difference(pairs([1, 0], [0, 0]), "bertscore")
    assert (found.difference, found.p) == (None, None)
    assert found.note
