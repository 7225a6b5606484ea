"""Page's test against R's coin, SciPy and every order of small tables; sign flips against R, SciPy and every flip."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from fixtures import expected, table
from scipy.stats import norm, page_trend_test

from noisyhealth.analysis import trend as module
from noisyhealth.analysis.trend import EXACT, FLIPS, NORMAL, improvement, trend
from noisyhealth.errors import DataError

TABLES = ("plain", "even", "ties", "binary")


@pytest.mark.parametrize("name", TABLES)
def test_statistic_and_z_are_those_of_r_coin_with_and_without_ties(name: str) -> None:
    found, r = trend(table(name).to_numpy()), expected(name, "page")
    assert (found.statistic, found.z) == pytest.approx((r["L"], r["z"]), rel=1e-12)
    assert (found.constant, found.direction, found.note) == (r["constant"], "falls", "")


@pytest.mark.parametrize("name", TABLES)
def test_beyond_the_exact_texts_p_is_that_of_r_coin(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_EXACT_TEXTS", 0)
    found, r = trend(table(name).to_numpy()), expected(name, "page")
    assert found.method == NORMAL
    assert found.p == pytest.approx(r["p"], rel=1e-9)
    assert found.p_falls == pytest.approx(r["p"] / 2, rel=1e-9)


@pytest.mark.parametrize("name", ["plain", "even"])
def test_without_ties_p_and_z_are_those_of_scipy(name: str) -> None:
    rows = table(name).to_numpy()
    found, turned = trend(rows), page_trend_test(rows[:, ::-1], method="exact")
    assert found.method == EXACT
    assert found.p_falls == pytest.approx(turned.pvalue, rel=1e-9)
    normal = page_trend_test(rows, method="asymptotic")
    assert found.statistic == normal.statistic
    assert norm.sf(found.z or 0.0) == pytest.approx(normal.pvalue, rel=1e-9)


def test_with_ties_scipys_p_is_several_times_too_large() -> None:
    """Why SciPy is not used: its variance is that of texts without ties. Half of these 60 texts are all ties."""
    rows = table("binary").to_numpy()
    ours = trend(rows).p_falls
    theirs = page_trend_test(rows[:, ::-1], method="asymptotic").pvalue
    assert ours == pytest.approx(0.01599, abs=5e-5)
    assert theirs == pytest.approx(0.09733, abs=5e-5)


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0]],
        [[0.5, 0.5, 0.2, 0.1], [0.3, 0.4, 0.4, 0.4], [1, 1, 1, 1]],
        [[1, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1], [0.2, 0.1, 0.1]],
    ],
)
def test_the_exact_p_is_that_of_every_order_of_every_text(rows: list[list[float]]) -> None:
    def page(table: tuple[tuple[float, ...], ...]) -> float:
        return float(sum(page_trend_test([row, row]).statistic / 2 for row in table))

    every = [page(orders) for orders in product(*(set(permutations(row)) for row in rows))]
    at = page(tuple(map(tuple, rows)))
    falls, rises = (np.mean([side * one <= side * at + 1e-9 for one in every]) for side in (1, -1))
    found = trend(rows)
    assert found.statistic == at
    assert found.p_falls == pytest.approx(falls)
    assert found.p == pytest.approx(min(1, 2 * min(falls, rises)))


def test_turned_round_a_fall_is_a_rise_of_the_same_size() -> None:
    rows = table("ties").to_numpy()
    down, up = trend(rows), trend(rows[:, ::-1])
    assert (up.direction, up.p, up.z) == ("rises", pytest.approx(down.p), pytest.approx(-(down.z or 0)))
    assert up.p_falls is not None
    assert up.p_falls > 0.999


def test_constant_texts_change_nothing_but_their_count() -> None:
    rows = table("binary").to_numpy()
    found = trend(rows)
    more = trend(np.vstack([rows, np.ones((40, 4))]))
    assert (more.n, more.constant) == (100, found.constant + 40)
    assert (more.z, more.p) == (pytest.approx(found.z), pytest.approx(found.p))


def test_balanced_texts_have_no_direction() -> None:
    found = trend([[1, 0, 0], [0, 0, 1]])
    assert (found.direction, found.z, found.p) == ("level", 0.0, 1.0)


@pytest.mark.parametrize("n", [400, 4000])
def test_no_p_is_zero_however_clear_the_trend(n: int) -> None:
    found = trend(np.tile([0.9, 0.6, 0.4, 0.1], (n, 1)))
    assert found.p is not None
    assert found.p_falls is not None
    assert 0 < found.p_falls <= found.p < 1e-300


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        (np.ones((5, 4)), "5 texts, and none changes over the conditions"),
        (np.zeros((0, 4)), "0 texts, and none changes"),
        ([[1, 0], [0, 1]], "2 conditions: Page's test needs 3"),
    ],
)
def test_a_trend_that_cannot_be_tested_says_why(rows: list[list[float]], note: str) -> None:
    found = trend(rows)
    assert found.note.startswith(note)
    assert (found.statistic, found.z, found.p, found.p_falls, found.direction) == (None, None, None, None, "")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([1, 0, 1], "1 dimensions, expected 2"),
        ([[1, 0, math.nan]], "1 of 3 are no numbers"),
    ],
)
def test_what_is_no_table_of_scores_is_refused(rows: list[list[float]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        trend(rows)


def test_of_right_and_wrong_answers_it_is_mcnemars_exact_test_of_r_one_sided() -> None:
    both, r = table("paired"), expected("paired", "mcnemar")
    found = improvement(both["disturbed"] - both["clean"])
    assert found.p == pytest.approx(r["p_exact_greater"], rel=1e-9)
    assert (found.n, found.changed, found.method) == (len(both), r["lost"] + r["gained"], EXACT)
    assert found.mean == pytest.approx((r["gained"] - r["lost"]) / len(both))
    assert improvement(both["clean"] - both["disturbed"]).p == pytest.approx(r["p_exact_less"], rel=1e-9)


def test_few_changes_are_flipped_in_every_way() -> None:
    changes = [0.5, -0.2, 0.3, 0.1, 0.0, 0.4, -0.1]
    moved = [one for one in changes if one]
    sums = [sum(map(math.prod, zip(signs, moved, strict=True))) for signs in product((1, -1), repeat=len(moved))]
    found = improvement(changes)
    assert found.p == pytest.approx(np.mean([one >= sum(moved) - 1e-9 for one in sums]))
    assert (found.method, found.changed, found.n) == (EXACT, 6, 7)


def test_many_changes_are_flipped_at_random_by_the_seed() -> None:
    changes = np.random.default_rng(1).normal(0.03, 0.2, 60)
    found = improvement(changes, seed=1)
    assert found.method == FLIPS
    assert found == improvement(changes, seed=1)
    assert found.p != improvement(changes, seed=2).p
    # The normal distribution of the sum: its variance over flips is the sum of squares. 4 errors of 9,999 draws.
    normal = norm.sf(changes.sum() / math.sqrt((changes**2).sum()))
    assert found.p == pytest.approx(normal, abs=4 * math.sqrt(normal / 9999))


def test_a_p_of_random_flips_is_at_least_one_in_the_draws_and_one() -> None:
    assert improvement(np.linspace(0.1, 0.9, 50), draws=999).p == pytest.approx(1 / 1000)


def test_flips_do_not_reject_more_often_than_they_may_when_the_disturbance_is_redrawn() -> None:
    """Half of 40 texts always gain, half always lose, some at random: redraws vary little, flips do not know."""
    rng = np.random.default_rng(0)
    chance = np.repeat([0.9, 0.1], 20)  # of a gain, the mean over all texts is 0
    ps = [improvement(np.where(rng.random(40) < chance, 1.0, -1.0)).p or 1.0 for _ in range(300)]
    assert np.mean(np.array(ps) <= 0.05) <= 0.05
    spread = [np.where(rng.random(40) < chance, 1.0, -1.0).sum() for _ in range(2000)]
    assert np.var(spread) == pytest.approx(40 * (1 - 0.8**2), rel=0.1)  # a redraw's; flips have 40


@pytest.mark.parametrize(
    ("changes", "note", "mean"),
    [([], "0 texts: there is nothing to test", None), ([0, 0, 0], "no text changes its score", 0.0)],
)
def test_an_improvement_that_cannot_be_tested_says_why(changes: list[float], note: str, mean: float | None) -> None:
    found = improvement(changes)
    assert found.note.startswith(note)
    assert (found.p, found.mean, found.changed, found.method) == (None, mean, 0, "")


def test_changes_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="1 of 2 are no numbers; leave those texts out"):
        improvement([0.1, math.nan])


def test_more_conditions_than_the_exact_test_takes_have_a_normal_p() -> None:
    scores = np.random.default_rng(4).random((30, 8)) - np.arange(8) / 8
    found = trend(scores)
    expected = page_trend_test(-scores, method="asymptotic")
    assert (found.method, found.conditions, found.direction) == ("normal", 8, "falls")
    assert found.p_falls == pytest.approx(expected.pvalue, rel=1e-6)
