"""Confidence intervals, against SciPy, plain resampling and formulas."""

import math
import random
import time

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import f1_score

from noisyhealth.analysis.intervals import _confusion, _macro_f1, _present, bootstrap_f1, bootstrap_mean, wilson
from noisyhealth.errors import DataError


@pytest.mark.parametrize(("right", "n"), [(0, 10), (10, 10), (0, 1), (1, 1), (80, 100), (999, 1000), (3, 7)])
def test_wilson_is_that_of_scipy_and_has_a_width_at_the_ends(right: int, n: int) -> None:
    expected = binomtest(right, n).proportion_ci(method="wilson")
    found = wilson(right, n)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.high - found.low > 0


@pytest.mark.parametrize(("right", "n"), [(1, 0), (0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_counts_that_cannot_be(right: int, n: int) -> None:
    with pytest.raises(DataError, match=f"{right} right of {n}"):
        wilson(right, n)


@pytest.mark.parametrize("values", [[], [0.4], [1.0, 1.0], [0.0] * 1000])
def test_a_mean_without_variation_has_no_interval(values: list[float]) -> None:
    assert bootstrap_mean(values, seed=0) is None


def test_the_interval_of_a_mean_is_about_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.1, size=1000).tolist()
    found = bootstrap_mean(values, seed=0)
    half = 1.96 * np.std(values, ddof=1) / math.sqrt(1000)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((np.mean(values) - half, np.mean(values) + half), abs=0.1 * half)


def test_one_other_value_in_a_thousand_gives_a_lopsided_interval_around_the_mean() -> None:
    found = bootstrap_mean([1.0] * 999 + [0.0], seed=0)
    assert found is not None
    assert found.low < 0.999 <= found.high <= 1.0
    assert 0.999 - found.low > found.high - 0.999


def test_the_same_seed_gives_the_same_interval() -> None:
    values = [0.1, 0.4, 0.5, 0.9, 0.3]
    assert bootstrap_mean(values, seed=3) == bootstrap_mean(values, seed=3)
    assert bootstrap_mean(values, seed=3) != bootstrap_mean(values, seed=4)


def test_a_mean_of_something_that_is_no_number_is_refused() -> None:
    with pytest.raises(DataError, match="nan among 2 values"):
        bootstrap_mean([0.1, math.nan], seed=0)


LABELS = ["a", "b", "c"]


def drawn(seed: int, n: int, right: float) -> tuple[list[str], list[str]]:
    rng = random.Random(seed)
    targets = rng.choices(LABELS, k=n)
    return targets, [t if rng.random() < right else rng.choice([*LABELS, ""]) for t in targets]


@pytest.mark.parametrize("seed", range(10))
def test_macro_f1_of_a_confusion_table_is_that_of_scikit_learn(seed: int) -> None:
    targets, values = drawn(seed, n=5 + seed, right=0.5)
    table = _confusion(targets, values, LABELS)
    expected = f1_score(targets, values, labels=LABELS, average="macro", zero_division=0)
    assert _macro_f1(table[None], seen=_present(table) > 0)[0] == pytest.approx(expected, abs=1e-12)


def test_the_interval_of_f1_is_that_of_resampling_the_examples_one_by_one() -> None:
    targets, values = drawn(0, n=200, right=0.7)
    rng = np.random.default_rng(5)
    each = [
        f1_score(np.array(targets)[rows], np.array(values)[rows], labels=LABELS, average="macro", zero_division=0)
        for rows in rng.integers(0, 200, size=(400, 200))
    ]
    found = bootstrap_f1(targets, values, LABELS, seed=0)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(np.quantile(each, [0.025, 0.975]), abs=0.015)


def test_a_label_that_a_resample_misses_does_not_pull_its_f1_down() -> None:
    # All right; resamples of 6 miss "b" one time in three, and with 0 for it the lower end would be .5.
    assert bootstrap_f1([*"aaaaab"], [*"aaaaab"], ["a", "b"], seed=0) is None


@pytest.mark.parametrize("values", [["a", "b"], ["", ""], ["b", "a"]])
def test_f1_without_variation_has_no_interval(values: list[str]) -> None:
    assert bootstrap_f1(["a", "b"], values, ["a", "b"], seed=0) is None
    assert bootstrap_f1(["a"], ["a"], ["a", "b"], seed=0) is None


def test_an_interval_of_f1_for_a_thousand_examples_takes_under_50_ms() -> None:
    targets, values = drawn(0, n=1000, right=0.8)
    took = []
    for _ in range(5):
        start = time.perf_counter()
        bootstrap_f1(targets, values, LABELS, seed=0)
        took.append(time.perf_counter() - start)
    assert min(took) < 0.05


@pytest.mark.parametrize(("targets", "values"), [([], []), (["a"], []), (["z"], ["a"])])
def test_what_cannot_be_resampled_is_refused(targets: list[str], values: list[str]) -> None:
    with pytest.raises(DataError, match="one value per target"):
        bootstrap_f1(targets, values, LABELS, seed=0)
