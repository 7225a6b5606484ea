"""Confidence intervals, against SciPy, plain resampling and formulas."""

import math
import random

import fixtures
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest, t
from scipy.stats import bootstrap as of_scipy

from noisyhealth.analysis.intervals import bootstrap_f1, bootstrap_mean, clustered_wilson, wilson
from noisyhealth.errors import DataError


@pytest.mark.parametrize(("right", "n"), [(0, 10), (10, 10), (0, 1), (1, 1), (80, 100), (999, 1000), (3, 7)])
def test_wilson_is_that_of_scipy_and_has_a_width_at_the_ends(right: int, n: int) -> None:
    expected = binomtest(right, n).proportion_ci(method="wilson")
    found = wilson(right, n)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.high - found.low > 0


@pytest.mark.parametrize("counts", ["7/10", "0/20", "20/20", "81/100", "1/37"])
def test_wilson_is_that_of_r(counts: str) -> None:
    numbers, (right, n) = fixtures.expected("shares", "wilson"), map(int, counts.split("/"))
    found = wilson(right, n)
    assert (found.low, found.high) == pytest.approx((numbers[f"{counts}.low"], numbers[f"{counts}.high"]), abs=1e-9)


@pytest.mark.parametrize(("right", "n"), [(1, 0), (0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_counts_that_cannot_be(right: int, n: int) -> None:
    with pytest.raises(DataError, match=f"{right} right of {n}"):
        wilson(right, n)


@pytest.mark.parametrize("groups", [None, ["", "", "", ""], ["a", "b", "c", ""]])
def test_where_no_group_repeats_a_clustered_interval_is_that_of_independent_examples(groups: list[str] | None) -> None:
    assert clustered_wilson([1, 1, 0, 1], groups) == wilson(3, 4)


def test_copies_of_each_example_tell_nothing_more_than_the_examples() -> None:
    # Ten notes, eight right, each with five equal answers: deff is 5 x (n - 1)/n / (1 - 1/10) by hand.
    right, groups = [1.0] * 40 + [0.0] * 10, [f"note {i // 5}" for i in range(50)]
    effect = (10 / 9 * 10 * 25 * 0.8 * 0.2 / 50**2) / (0.8 * 0.2 / 49)
    n = 50 / effect * (t.ppf(0.975, 49) / t.ppf(0.975, 9)) ** 2
    found, expected = clustered_wilson(right, groups), wilson(0.8 * n, n)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert n < 9
    assert found.low < wilson(8, 10).low


def test_the_design_effect_is_that_of_a_regression_with_clustered_errors() -> None:
    # A second source: the variance of a mean by statsmodels' cluster-robust covariance, unequal groups.
    import statsmodels.api as sm

    rng = np.random.default_rng(3)
    names = rng.integers(0, 30, size=120)
    right = (rng.random(120) < rng.beta(2, 1, size=30)[names]).astype(float)
    fit = sm.OLS(right, np.ones(120)).fit(
        cov_type="cluster", cov_kwds={"groups": names, "use_correction": False}, use_t=False
    )
    groups, share = len(set(names)), float(right.mean())
    variance = float(fit.cov_params()[0, 0]) * groups / (groups - 1)
    n = share * (1 - share) / variance * 120 / 119 * (t.ppf(0.975, 119) / t.ppf(0.975, groups - 1)) ** 2
    found, by_hand = clustered_wilson(right.tolist(), [str(one) for one in names]), wilson(share * n, n)
    assert n < 100
    assert (found.low, found.high) == pytest.approx((by_hand.low, by_hand.high), abs=1e-12)


def test_groups_that_differ_less_than_by_chance_do_not_add_examples() -> None:
    found = clustered_wilson([1, 0] * 100, [f"note {i // 2}" for i in range(200)])
    n = 200 * (t.ppf(0.975, 199) / t.ppf(0.975, 99)) ** 2
    expected = wilson(n / 2, n)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(("right", "successes"), [(1.0, 4), (0.0, 0)])
def test_all_right_and_all_wrong_count_as_one_example_a_group(right: float, successes: int) -> None:
    assert clustered_wilson([right] * 20, [f"note {i // 5}" for i in range(20)]) == wilson(successes, 4)


def test_one_group_tells_as_much_as_one_example() -> None:
    found = clustered_wilson([1, 1, 1, 0], ["a"] * 4)
    assert found == wilson(0.75, 1)
    assert found.high - found.low > 0.8


@pytest.mark.parametrize("right", [[], [0.5], [math.nan]])
def test_a_share_of_what_is_not_right_or_wrong_is_refused(right: list[float]) -> None:
    with pytest.raises(DataError, match=f"{len(right)} examples"):
        clustered_wilson(right, None)


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


def test_the_interval_of_f1_is_that_of_resampling_the_examples_one_by_one() -> None:
    targets, values = map(np.array, drawn(0, n=200, right=0.7))

    def f1(rows: NDArray[np.intp]) -> float:
        aim, said = targets[rows], values[rows]
        return float(
            np.mean([2 * ((aim == x) & (said == x)).sum() / ((aim == x).sum() + (said == x).sum()) for x in LABELS])
        )

    rng = np.random.default_rng(5)
    by_scipy = of_scipy((np.arange(200),), f1, n_resamples=2000, vectorized=False, method="BCa", rng=rng)
    found = bootstrap_f1(targets.tolist(), values.tolist(), LABELS, seed=0)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(by_scipy.confidence_interval), abs=0.007)


def test_examples_of_one_group_are_resampled_together() -> None:
    # Each example stands four times: with groups the interval is that of the examples once, without it is half as wide.
    targets, values = drawn(1, n=60, right=0.7)
    groups = [str(i) for i in range(60)] * 4
    once = bootstrap_f1(targets, values, LABELS, seed=0)
    assert bootstrap_f1(targets * 4, values * 4, LABELS, seed=0, groups=groups) == once
    apart = bootstrap_f1(targets * 4, values * 4, LABELS, seed=0)
    assert once is not None
    assert apart is not None
    assert (apart.high - apart.low) / (once.high - once.low) == pytest.approx(0.5, abs=0.05)
    scores = np.random.default_rng(2).random(60).tolist()
    assert bootstrap_mean(scores * 4, seed=0, groups=groups) == bootstrap_mean(scores, seed=0)


def test_one_group_has_no_interval() -> None:
    assert bootstrap_mean([0.1, 0.5, 0.9], seed=0, groups=["a"] * 3) is None
    assert bootstrap_f1([*"abab"], [*"abba"], ["a", "b"], seed=0, groups=["a"] * 4) is None


def test_a_label_that_a_resample_misses_does_not_pull_its_f1_down() -> None:
    # All right; resamples of 6 miss "b" one time in three, and with 0 for it the lower end would be .5.
    assert bootstrap_f1([*"aaaaab"], [*"aaaaab"], ["a", "b"], seed=0) is None


@pytest.mark.parametrize("values", [["a", "b"], ["", ""], ["b", "a"]])
def test_f1_without_variation_has_no_interval(values: list[str]) -> None:
    assert bootstrap_f1(["a", "b"], values, ["a", "b"], seed=0) is None
    assert bootstrap_f1(["a"], ["a"], ["a", "b"], seed=0) is None


@pytest.mark.parametrize(("targets", "values"), [([], []), (["a"], []), (["z"], ["a"])])
def test_what_cannot_be_resampled_is_refused(targets: list[str], values: list[str]) -> None:
    with pytest.raises(DataError, match="one value per target"):
        bootstrap_f1(targets, values, LABELS, seed=0)
