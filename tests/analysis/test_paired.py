"""Clean against disturbed answers, against R, SciPy, the metrics and resampling one by one."""

import random
from collections.abc import Sequence

import fixtures
import numpy as np
import pytest
from scipy.stats import binomtest
from scipy.stats import bootstrap as of_scipy

from noisyhealth.analysis import bootstrap, impact
from noisyhealth.analysis.impact import Category
from noisyhealth.analysis.paired import BOOTSTRAP, MCNEMAR, Pairs, categories, changes
from noisyhealth.errors import DataError
from noisyhealth.metrics import classification

LABELS = ["a", "b", "c"]
SCORES = ["accuracy", "precision_macro", "recall_macro", "f1_macro"]


def closed(seed: int, n: int, clean: float = 0.8, disturbed: float = 0.7, groups: Sequence[str] | None = None) -> Pairs:
    rng = random.Random(seed)
    targets = rng.choices(LABELS, weights=[5, 3, 2], k=n)
    first, second = (
        [t if rng.random() < p else rng.choice([*LABELS, ""]) for t in targets] for p in (clean, disturbed)
    )
    return answered(targets, first, second, groups)


def answered(
    targets: Sequence[str], clean: Sequence[str], disturbed: Sequence[str], groups: Sequence[str] | None = None
) -> Pairs:
    right = ([float(v == t) for v, t in zip(each, targets, strict=True)] for each in (clean, disturbed))
    return Pairs(targets, clean, disturbed, *right, groups or [""] * len(targets), LABELS)


def free(clean: Sequence[float], disturbed: Sequence[float], groups: Sequence[str] | None = None) -> Pairs:
    names = [str(i) for i in range(len(clean))]
    return Pairs(names, names, names, clean, disturbed, groups or [""] * len(clean))


@pytest.mark.parametrize("seed", range(10))
def test_the_scores_computed_again_are_those_of_the_metrics(seed: int) -> None:
    pairs = closed(seed, n=5 + 7 * seed)
    clean, disturbed = (classification.scores(pairs.targets, v, LABELS) for v in (pairs.clean, pairs.disturbed))
    found = changes(pairs, list(clean))
    assert list(found) == list(clean)
    for name, change in found.items():
        assert change.clean == pytest.approx(clean[name], abs=1e-12)
        assert change.disturbed == pytest.approx(disturbed[name], abs=1e-12)
        assert change.relative == impact.change(disturbed[name], clean[name])


def test_a_free_answers_score_is_the_mean_of_how_right_it_is() -> None:
    found = changes(free([0.5, 0.25, 0.75], [0.5, 0.0, 0.25]), ["rougeL"])["rougeL"]
    assert (found.clean, found.disturbed, found.relative, found.n, found.groups) == (0.5, 0.25, -0.5, 3, 3)


EDGES = [
    *[(0.76, 0.80), (0.95, 1.0), (0.57, 0.6), (0.7601, 0.8), (0.40, 0.80), (0.45, 0.9), (0.4001, 0.8)],
    *[
        (0.8, 0.8),
        (0.8 + 1e-12, 0.8),
        (0.8 - 1e-13, 0.8),
        (0.81, 0.8),
        (0.0, 0.8),
        (0.0, 0.0),
        (0.5, 0.0),
        (1e-12, 0.8),
    ],
]
TENTHS = [(round(base * share, 12), base) for base in np.arange(20, 1001, 20) / 1000 for share in (0.5, 0.95, 1.0)]


@pytest.mark.parametrize(
    "both",
    [
        EDGES,
        TENTHS,
        np.random.default_rng(0).integers(0, 40, (5000, 2)) / 40,
        np.random.default_rng(1).random((5000, 2)),
    ],
)
def test_categories_of_many_are_those_of_the_study_one_by_one(both: Sequence[tuple[float, float]]) -> None:
    scores, baselines = np.array(both).T
    expected = [impact.category(score, base) for score, base in zip(scores, baselines, strict=True)]
    assert [list(Category)[at] for at in categories(scores, baselines)] == expected


def test_category_shares_are_those_of_the_same_resamples_of_both_versions_one_by_one() -> None:
    pairs = closed(1, n=40)
    found = changes(pairs, ["accuracy"], seed=5)["accuracy"]
    drawn = bootstrap.totals(np.eye(40), np.arange(40), seed=5).resampled
    scored = [(float(row @ pairs.disturbed_right) / 40, float(row @ pairs.clean_right) / 40) for row in drawn]
    each = [impact.category(*both) for both in scored]
    assert found.categories == {one: each.count(one) / len(each) for one in Category}
    assert sum(found.categories.values()) == pytest.approx(1)


def test_a_resample_without_a_right_clean_answer_is_undefined_and_said() -> None:
    found = changes(free([1.0, *[0.0] * 9], [0.0] * 10), ["rougeL"])["rougeL"]
    assert found.categories is not None
    # The chance that ten draws of ten miss the one: .9 ** 10.
    assert found.categories[Category.UNDEFINED] == pytest.approx(0.9**10, abs=0.03)
    assert found.categories[Category.UNDEFINED] + found.categories[Category.CATASTROPHIC] == pytest.approx(1)
    assert found.relative_interval is None
    assert "no interval of the relative change" in found.note


def test_few_resamples_without_a_right_clean_answer_are_left_out_and_counted() -> None:
    found = changes(free([1.0] * 5 + [0.0] * 20, [1.0, *[0.0] * 24]), ["rougeL"])["rougeL"]
    assert found.relative_interval is not None
    assert "resamples: left out of the interval" in found.note


def test_a_clean_score_of_zero_has_no_relative_change() -> None:
    found = changes(free([0.0] * 10, [0.5, *[0.0] * 9]), ["rougeL"])["rougeL"]
    assert (found.relative, found.relative_interval, found.clean_interval) == (None, None, None)
    assert found.categories == {one: float(one is Category.UNDEFINED) for one in Category}
    alike = "no interval of the clean score: (nearly) all resamples are alike"
    assert found.note == f"the clean score is 0: there is no relative change; {alike}"
    assert found.p is not None


def test_intervals_are_those_of_scipy() -> None:
    rng = np.random.default_rng(3)
    clean = np.where(rng.random(150) < 0.4, 0.0, rng.random(150))
    disturbed = np.where(rng.random(150) < 0.2, 0.0, clean)
    found = changes(free(clean.tolist(), disturbed.tolist()), ["rougeL"])["rougeL"]
    relative = lambda c, d, axis: d.mean(axis=axis) / c.mean(axis=axis) - 1  # noqa: E731
    for interval, data, statistic in [
        (found.clean_interval, (clean,), np.mean),
        (found.disturbed_interval, (disturbed,), np.mean),
        (found.relative_interval, (clean, disturbed), relative),
    ]:
        options = {"n_resamples": 50_000, "batch": 5000, "method": "BCa", "rng": np.random.default_rng(1)}
        ends = of_scipy(data, statistic, paired=len(data) == 2, **options).confidence_interval
        assert interval is not None
        assert (interval.low, interval.high) == pytest.approx(tuple(ends), abs=0.05 * (ends.high - ends.low))


def test_the_p_of_an_accuracy_is_that_of_r_s_exact_mcnemar() -> None:
    table, expected = fixtures.table("paired"), fixtures.expected("paired", "mcnemar")
    found = changes(free(table["clean"], table["disturbed"]), ["accuracy"])["accuracy"]
    assert (found.method, found.p) == (MCNEMAR, pytest.approx(expected["p_exact"], abs=1e-12))


@pytest.mark.parametrize(("lost", "gained"), [(6, 2), (0, 5), (4, 4), (1, 0), (40, 3), (2000, 0)])
def test_the_exact_p_is_that_of_a_binomial_test_on_the_answers_that_changed(lost: int, gained: int) -> None:
    clean, disturbed = [1.0] * lost + [0.0] * gained + [1.0] * 9, [0.0] * lost + [1.0] * gained + [1.0] * 9
    found = changes(free(clean, disturbed), ["accuracy"])["accuracy"]
    expected = binomtest(lost, lost + gained).pvalue
    assert found.p == pytest.approx(max(expected, 2.3e-308), rel=1e-9)
    assert found.p is not None
    assert found.p > 0


def test_with_groups_or_another_score_p_is_that_of_the_paired_bootstrap_one_by_one() -> None:
    groups = [f"note {i // 3}" for i in range(60)]
    pairs = closed(2, n=60, clean=0.75, disturbed=0.6, groups=groups)
    found = changes(pairs, ["accuracy"], seed=1)["accuracy"]
    moved = np.array(pairs.disturbed_right) - np.array(pairs.clean_right)
    drawn = bootstrap.totals(np.eye(20), np.arange(20), seed=1).resampled
    each = drawn @ moved.reshape(20, 3).sum(axis=1)
    expected = 2 * (min((each <= 0).sum(), (each >= 0).sum()) + 1) / (len(each) + 1)
    assert (found.groups, found.method, found.p) == (20, BOOTSTRAP, pytest.approx(expected))
    assert changes(closed(2, n=60), ["f1_macro"])["f1_macro"].method == BOOTSTRAP


def test_p_of_a_mean_is_about_that_of_the_paired_t_test() -> None:
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(8)
    clean = rng.random(400)
    disturbed = clean - rng.normal(0.012, 0.1, 400)
    found = changes(free(clean.tolist(), disturbed.tolist()), ["rougeL"])["rougeL"]
    assert found.p == pytest.approx(ttest_rel(clean, disturbed).pvalue, rel=0.3)


def test_p_is_never_zero_and_never_below_what_few_changed_groups_can_show() -> None:
    many = changes(free([1.0] * 100, [0.4] * 100), ["rougeL"])["rougeL"]
    assert many.p == 2 / 5000
    few = changes(free([0.9, 0.8, 0.7, *[0.5] * 20], [0.1, 0.2, 0.1, *[0.5] * 20]), ["rougeL"])["rougeL"]
    assert few.p is not None
    assert few.p >= 0.25  # three changes, all down: 2 of 8 ways to sign them
    same = closed(0, n=30)
    once = answered(same.targets, same.targets, ["", *same.targets[1:]])
    assert changes(once, ["f1_macro"])["f1_macro"].p == 1.0


def test_where_nothing_changed_there_is_no_test_and_the_score_is_stable() -> None:
    pairs = closed(0, n=50)
    for name, found in changes(answered(pairs.targets, pairs.clean, pairs.clean), SCORES).items():
        assert (found.score, found.relative, found.p, found.method) == (name, 0.0, None, "")
        alike = "no interval of the change: (nearly) all resamples are alike"
        assert found.note == f"{alike}; nothing changed that this score counts: no test"
        assert found.relative_interval is None
        assert found.clean_interval == found.disturbed_interval
        assert found.categories == {one: float(one is Category.STABLE) for one in Category}


def test_another_wrong_answer_changes_no_accuracy_but_may_change_a_precision() -> None:
    found = changes(answered([*"aabbcc"] * 5, [*"aabbcb"] * 5, [*"aabbca"] * 5), SCORES)
    assert found["accuracy"].p is None
    assert found["precision_macro"].p is not None


def test_one_group_has_scores_and_nothing_more() -> None:
    for pairs in (closed(0, n=12, groups=["a"] * 12), closed(0, n=1)):
        found = changes(pairs, ["f1_macro"])["f1_macro"]
        assert found.clean is not None
        assert (found.clean_interval, found.relative_interval, found.categories, found.p) == (None, None, None, None)
        assert "all examples are of one group" in found.note


def test_examples_of_one_group_weigh_as_one() -> None:
    pairs = closed(4, n=50)
    groups = [str(i) for i in range(50)] * 4
    copies = [list(one) * 4 for one in (pairs.targets, pairs.clean, pairs.disturbed)]
    once, again = changes(pairs, ["f1_macro"])["f1_macro"], changes(answered(*copies, groups), ["f1_macro"])["f1_macro"]
    assert (again.n, again.groups) == (200, 50)
    assert (again.relative_interval, again.p, again.categories) == (once.relative_interval, once.p, once.categories)


@pytest.mark.parametrize("name", ["bertscore", "bleu", "clinical_f1"])
def test_a_score_that_is_no_function_of_the_answers_has_only_a_note(name: str) -> None:
    found = changes(closed(0, n=20), [name])[name]
    assert (found.n, found.clean, found.clean_interval, found.categories, found.p) == (20, None, None, None, None)
    assert found.note == "cannot be computed from the answers again"
    assert changes(free([1.0], [0.0]), ["f1_macro"])["f1_macro"].note == found.note


def test_the_same_seed_gives_the_same_numbers() -> None:
    pairs = closed(0, n=80)
    assert changes(pairs, SCORES, seed=1) == changes(pairs, SCORES, seed=1)
    assert changes(pairs, SCORES, seed=1) != changes(pairs, SCORES, seed=2)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (answered([], [], []), "0 targets"),
        (answered(["z"], ["a"], ["a"]), "outside the labels: .'z'."),
        (Pairs(["a"], ["a"], ["a", "b"], [1.0], [1.0], [""], LABELS), "give one value per target"),
        (Pairs(["a"], ["a"], ["a"], [1.0], [float("nan")], [""], LABELS), "nan among 1 values"),
        (Pairs(["a"], ["a"], ["a"], [1.0], [1.0], [], LABELS), "0 groups for 1 examples"),
    ],
)
def test_what_cannot_be_compared_is_refused(pairs: Pairs, message: str) -> None:
    with pytest.raises(DataError, match=message):
        changes(pairs, SCORES)
