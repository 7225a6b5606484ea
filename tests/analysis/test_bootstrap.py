"""The resampling engine, against resampling one by one, leaving out one by one, and SciPy's bootstrap."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import bootstrap as of_scipy
from sklearn.metrics import f1_score, precision_recall_fscore_support

from noisyhealth.analysis import bootstrap, sums
from noisyhealth.analysis.bootstrap import RESAMPLES, positions, totals
from noisyhealth.analysis.intervals import bca
from noisyhealth.errors import DataError
from noisyhealth.metrics import classification

LABELS = ["a", "b", "c"]


def drawn(seed: int, n: int, right: float) -> tuple[list[str], list[str]]:
    rng = random.Random(seed)
    targets = rng.choices(LABELS, weights=[5, 3, 2], k=n)
    return targets, [t if rng.random() < right else rng.choice([*LABELS, ""]) for t in targets]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (None, [0, 1, 2]),
        (["", "", ""], [0, 1, 2]),
        (["x", "y", "x"], [0, 1, 0]),
        (["y", "", "y"], [0, 1, 0]),
        (["b", "a", "b"], [0, 1, 0]),
    ],
)
def test_a_group_is_numbered_by_its_first_example_and_no_name_is_a_group_of_its_own(
    groups: Sequence[str] | None, expected: list[int]
) -> None:
    assert positions(groups, 3).tolist() == expected


def test_groups_of_another_number_than_the_examples_are_refused() -> None:
    with pytest.raises(DataError, match="2 groups for 3 examples"):
        positions(["a", "b"], 3)


def test_a_resample_has_as_many_groups_as_there_are_and_draws_them_evenly() -> None:
    found = totals(np.eye(50), np.arange(50), seed=0).resampled
    assert found.shape == (RESAMPLES, 50)
    assert (found.sum(axis=1) == 50).all()
    # The law of one count is binomial(50, 1/50): mean 1, variance .98; four standard errors of each.
    assert found.mean(axis=0) == pytest.approx(np.ones(50), abs=4 * (0.98 / RESAMPLES) ** 0.5)
    assert found.var() == pytest.approx(0.98, abs=0.02)
    assert np.corrcoef(found[:, 0], found[:, 1])[0, 1] == pytest.approx(-1 / 49, abs=0.06)


def test_the_same_number_of_groups_and_seed_draw_the_same_resamples_whatever_is_summed() -> None:
    first = totals(np.eye(20), np.arange(20), seed=3).resampled
    bootstrap._drawn.cache_clear()
    again = totals(np.hstack([np.ones((20, 1)), np.eye(20)]), np.arange(20), seed=3).resampled[:, 1:]
    assert (first == again).all()
    assert (first != totals(np.eye(20), np.arange(20), seed=4).resampled).any()


def test_sums_by_group_and_without_one_group_are_those_of_adding_up() -> None:
    rng = np.random.default_rng(0)
    columns, place = rng.random((30, 2)), np.array([*range(7), *rng.integers(0, 7, size=23)])
    found = totals(columns, place, seed=0)
    assert found.whole == pytest.approx(columns.sum(axis=0))
    for group in range(7):
        assert found.without[group] == pytest.approx(columns[place != group].sum(axis=0))
    drawn = totals(np.eye(7), np.arange(7), seed=0).resampled[0]
    assert found.resampled[0] == pytest.approx(sum(n * columns[place == g].sum(axis=0) for g, n in enumerate(drawn)))


def scores(name: str, targets: list[str], values: list[str], labels: list[str]) -> float:
    right = [float(value == target) for target, value in zip(targets, values, strict=True)]
    whole = sums.read(sums.columns(targets, [values], [right], labels).sum(axis=0), len(labels))
    return float(sums.score(name, whole, whole.targets > 0))


@pytest.mark.parametrize("seed", range(20))
def test_every_score_from_sums_is_that_of_the_metrics_and_of_scikit_learn(seed: int) -> None:
    targets, values = drawn(seed, n=3 + seed, right=0.5)
    expected = classification.scores(targets, values, LABELS)
    for name, score in expected.items():
        assert scores(name, targets, values, LABELS) == pytest.approx(score, abs=1e-12)
    for mean in ("macro", "weighted"):
        by = precision_recall_fscore_support(targets, values, labels=LABELS, average=mean, zero_division=0)
        for kind, score in zip(("precision", "recall", "f1"), by, strict=False):
            assert scores(f"{kind}_{mean}", targets, values, LABELS) == pytest.approx(score, abs=1e-12)


def test_a_label_that_no_example_has_pulls_every_macro_score_down() -> None:
    for name in ("precision_macro", "recall_macro", "f1_macro"):
        assert scores(name, ["a", "b"], ["a", "b"], ["a", "b", "c", "d"]) == 0.5


def test_a_label_that_only_a_resample_lacks_is_left_out_of_its_mean() -> None:
    table = sums.columns([*"aab"], [[*"aab"]], [[1.0] * 3], ["a", "b"])
    whole, part = table.sum(axis=0), table[:2].sum(axis=0)
    seen = sums.read(whole, 2).targets > 0
    assert float(sums.score("f1_macro", sums.read(part, 2), seen)) == 1.0


def test_the_second_version_of_the_answers_is_read_apart_from_the_first() -> None:
    table = sums.columns([*"ab"], [[*"ab"], [*"aa"]], [[1.0, 1.0], [1.0, 0.0]], ["a", "b"]).sum(axis=0)
    first, second = sums.read(table, 2, 0), sums.read(table, 2, 1)
    assert (first.hits.tolist(), second.hits.tolist()) == ([1, 1], [1, 0])
    assert (second.values.tolist(), second.targets.tolist(), float(second.right)) == ([2, 0], [1, 1], 1.0)


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("accuracy", LABELS, True),
        ("rougeL", [], True),
        ("f1_weighted", LABELS, True),
        ("f1_macro", [], False),
        ("bertscore", LABELS, False),
    ],
)
def test_a_score_is_known_when_it_is_a_function_of_sums(name: str, labels: list[str], expected: bool) -> None:
    assert sums.known(name, labels) is expected


def skewed(n: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(4)
    return np.where(rng.random(n) < 0.6, 0.0, rng.beta(2, 2, size=n))


@pytest.mark.parametrize("n", [15, 60, 300])
def test_bca_of_a_skewed_mean_is_that_of_scipy(n: int) -> None:
    values = skewed(n)
    found = totals(np.stack([np.ones(n), values], axis=1), np.arange(n), seed=0)
    got = bca(float(values.mean()), *(one[:, 1] / one[:, 0] for one in (found.resampled, found.without)))
    rng = np.random.default_rng(1)
    expected = of_scipy((values,), np.mean, n_resamples=50_000, batch=5000, method="BCa", rng=rng)
    ends, width = expected.confidence_interval, float(np.ptp(expected.confidence_interval))
    assert got is not None
    # The tails of 4,999 resamples wander by 2 % or so of the width.
    assert (got.low, got.high) == pytest.approx((ends.low, ends.high), abs=0.05 * width)


def test_bca_of_macro_f1_is_that_of_scipy() -> None:
    targets, values = drawn(0, n=80, right=0.8)
    place = np.arange(80)
    table = sums.columns(targets, [values], [[0.0] * 80], LABELS)
    found = totals(table, place, seed=0)
    seen = sums.read(found.whole, 3).targets > 0
    point, *rest = (
        sums.score("f1_macro", sums.read(one, 3), seen) for one in (found.whole, found.resampled, found.without)
    )
    got = bca(float(point), *rest)
    aim, said = np.array(targets), np.array(values)

    def f1(rows: NDArray[np.intp]) -> float:
        hit, named = (aim[rows] == said[rows]), [*LABELS]
        each = [2 * (hit & (aim[rows] == x)).sum() / ((aim[rows] == x).sum() + (said[rows] == x).sum()) for x in named]
        return float(np.mean(each))

    assert f1(place) == pytest.approx(f1_score(targets, values, labels=LABELS, average="macro"), abs=1e-12)
    rng = np.random.default_rng(1)
    expected = of_scipy((place,), f1, n_resamples=RESAMPLES, vectorized=False, method="BCa", rng=rng)
    ends = expected.confidence_interval
    assert got is not None
    assert (got.low, got.high) == pytest.approx((ends.low, ends.high), abs=0.05 * (ends.high - ends.low))


def test_bca_is_the_published_formula_by_hand() -> None:
    # Efron 1987, with the normal quantiles written out: bias z0 from 60 % of the resamples below, a from the jackknife.
    resampled, rest, point = np.arange(1000) / 1000, np.array([0.55, 0.6, 0.62, 0.63]), 0.5995
    z0, z = 0.2533471031, 1.9599639845
    d = rest.mean() - rest
    a = float((d**3).sum() / (6 * (d**2).sum() ** 1.5))
    from statistics import NormalDist

    shares = [NormalDist().cdf(z0 + (z0 + s * z) / (1 - a * (z0 + s * z))) for s in (-1, 1)]
    found = bca(point, resampled, rest)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(np.array(shares) * 999 / 1000, abs=1e-7)


@pytest.mark.parametrize(
    ("resampled", "without"),
    [([0.5] * 9, [0.4, 0.6]), ([0.4, 0.6] * 5, [0.5, 0.5]), ([0.4, 0.6] * 5, [0.5]), ([0.1] * 9, [0.1, 0.2])],
)
def test_without_variation_or_with_one_group_there_is_no_interval(resampled: list[float], without: list[float]) -> None:
    assert bca(0.5, np.array(resampled), np.array(without)) is None


def test_a_score_beyond_all_its_resamples_has_no_interval() -> None:
    assert bca(0.9, np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2])) is None


def test_differences_of_rounding_are_no_variation() -> None:
    assert bca(0.3, np.array([0.1 + 0.2, 0.3] * 5), np.array([0.2, 0.4])) is None
