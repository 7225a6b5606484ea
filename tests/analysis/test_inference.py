"""Friedman's test against SciPy and R, Conover's against the book's formula (also by R), every degenerate case."""

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
import pytest
from fixtures import expected, table
from scipy.stats import friedmanchisquare, rankdata, t

from noisyhealth.analysis.impact import KEY
from noisyhealth.analysis.inference import FACTORS, friedman, size
from noisyhealth.errors import DataError

PERTURBS, LEVELS, MODELS = ("typo", "homophone", "redact"), ("low", "mid", "high"), ("gpt", "llama", "bluebert")
SCORES = {"sentiment": ("accuracy", "f1_macro"), "condition": ("accuracy", "f1_macro"), "qa": ("rougeL",)}


def study(value: Callable[[dict[str, str]], float]) -> pd.DataFrame:
    """Every scenario of the study, its value a function of its key, its baseline .8."""
    keys = [
        dict(zip(KEY, (task, model, "embedded", perturb, level, name), strict=True))
        for task, model, perturb, level in product(SCORES, MODELS, PERTURBS, LEVELS)
        for name in SCORES[task]
    ]
    return pd.DataFrame([{**key, "n": 100, "value": value(key), "baseline": 0.8} for key in keys])


def noisy(seed: int, digits: int) -> pd.DataFrame:
    """A study of random values; one digit makes many ties."""
    rng = np.random.default_rng(seed)
    return study(lambda key: round(rng.uniform(0.3, 0.9) - 0.1 * (key["perturb"] == "redact"), digits))


def blocks(rows: Sequence[Sequence[float]]) -> pd.DataFrame:
    """One block per row (a task each), one value per perturbation."""
    names = [f"perturb {at}" for at in range(len(rows[0]))]
    return pd.DataFrame(
        [
            (f"task {at}", "gpt", "embedded", name, "low", "f1", 100, value, 1.0)
            for at, row in enumerate(rows)
            for name, value in zip(names, row, strict=True)
        ],
        columns=[*KEY, "n", "value", "baseline"],
    )


def conover(rows: np.ndarray, first: int, second: int) -> float:
    """Conover 1999, section 5.8, equations 2-6: p of |R_i - R_j| by Student's t, times the pairs."""
    b, k = rows.shape
    ranks = rankdata(rows, axis=1)
    sums, squares = ranks.sum(axis=0), (ranks**2).sum()
    df = (b - 1) * (k - 1)
    error = math.sqrt(2 * (b * squares - (sums**2).sum()) / df)
    return min(1.0, 2 * t.sf(abs(sums[first] - sums[second]) / error, df) * k * (k - 1) / 2)


@pytest.mark.parametrize("digits", [6, 1])
@pytest.mark.parametrize(("factor", "n"), [("perturb", 45), ("level", 45), ("model", 45), ("task", 27)])
def test_friedman_is_that_of_scipy_with_and_without_ties(factor: str, n: int, digits: int) -> None:
    frame = noisy(seed=n + digits, digits=digits)
    found = friedman(frame, factor)
    across = [name for name in KEY if name != factor and (factor, name) != ("task", "score_name")]
    change = frame.assign(change=((frame["value"] - 0.8) / 0.8).round(9))
    wide = change.groupby([*across, factor], sort=False)["change"].mean().round(9).unstack(factor)
    expected = friedmanchisquare(*(wide[level] for level in found.levels))
    assert (found.q, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)
    assert (found.blocks, found.incomplete, found.df, found.note) == (n, 0, 2, "")
    assert found.w == pytest.approx(expected.statistic / (n * 2), rel=1e-9)
    assert found.block_by == tuple(across)
    assert sum((found.mean_ranks or {}).values()) == pytest.approx(6)


TIED = [[0.9, 0.8, 0.8, 0.1], [0.7, 0.7, 0.7, 0.2], [0.6, 0.9, 0.5, 0.4], [0.8, 0.6, 0.6, 0.6], [0.5, 0.4, 0.9, 0.3]]


@pytest.mark.parametrize("rows", [TIED, np.random.default_rng(0).random((12, 3)).tolist()])
def test_pairs_are_those_of_conovers_formula_times_the_number_of_pairs(rows: list[list[float]]) -> None:
    found = friedman(blocks(rows), "perturb")
    names = list(found.levels)
    assert len(found.pairs) == len(names) * (len(names) - 1) // 2
    for pair in found.pairs:
        at, other = names.index(pair.first), names.index(pair.second)
        assert pair.p == pytest.approx(conover(np.array(rows), at, other), rel=1e-9)
        ranks = rankdata(np.array(rows), axis=1).mean(axis=0)
        assert pair.difference == pytest.approx(ranks[at] - ranks[other])


@pytest.mark.parametrize("name", ["plain", "even", "ties", "binary"])
def test_friedman_and_conover_are_those_of_r_with_the_effects(name: str) -> None:
    """R: friedman.test; Conover's t and r = t / sqrt(t^2 + df) by their formulas."""
    rows = table(name)
    found = friedman(blocks(rows.to_numpy().tolist()), "perturb", analysed="value")
    r, pairs = expected(name, "friedman"), expected(name, "conover")
    assert (found.q, found.df, found.p, found.w) == pytest.approx((r["q"], r["df"], r["p"], r["w"]), rel=1e-9)
    letter = dict(zip(found.levels, rows.columns, strict=True))
    for pair in found.pairs:
        key = f"{letter[pair.first]}-{letter[pair.second]}"
        assert pair.p == pytest.approx(pairs[f"{key}.p_bonferroni"], rel=1e-9)
        assert pair.effect == pytest.approx(pairs[f"{key}.r"], rel=1e-9, abs=1e-15)
        assert pair.size == size(pairs[f"{key}.r"])


@pytest.mark.parametrize(
    ("effect", "word"),
    [
        (0.0, "none"), (0.0999, "none"), (-0.1, "small"), (0.3 - 1e-12, "medium"), (0.29, "small"),
        (-0.3, "medium"), (0.4999, "medium"), (0.5, "large"), (-1.0, "large"), (0.1 + 0.2, "medium"),
    ],
)  # fmt: skip
def test_an_edge_of_cohens_rule_belongs_to_the_larger_word(effect: float, word: str) -> None:
    assert size(effect) == word


def test_levels_that_rank_alike_have_no_effect() -> None:
    first = friedman(blocks([[0.9, 0.5, 0.4], [0.5, 0.9, 0.4], [0.9, 0.5, 0.4], [0.5, 0.9, 0.4]]), "perturb").pairs[0]
    assert (first.effect, first.size, first.p) == (0.0, "none", 1.0)


def test_the_worked_example_of_the_grasses_gives_the_numbers_of_the_book() -> None:
    """Conover 1999, section 5.8, example 1: 12 homeowners rank 4 grasses; T1 = 8.0973 (df 3)."""
    grass = [
        [4, 3, 2, 1], [4, 2, 3, 1], [3, 1.5, 1.5, 4], [3, 1, 2, 4], [4, 2, 1, 3], [2, 2, 2, 4],
        [1, 3, 2, 4], [2, 4, 1, 3], [3.5, 1, 2, 3.5], [4, 1, 3, 2], [4, 2, 3, 1], [3.5, 1, 2, 3.5],
    ]  # fmt: skip
    found = friedman(blocks(grass), "perturb", analysed="value")
    assert (found.q, found.df, found.blocks) == (pytest.approx(8.0973, abs=5e-5), 3, 12)


def test_equal_changes_of_different_baselines_are_ties() -> None:
    """0.76/0.80 and 0.57/0.60 differ in floats and not on paper."""
    frame = blocks([[0.76, 0.57, 0.5], [0.76, 0.57, 0.4], [0.9, 0.1, 0.5]])
    frame["baseline"] = [0.8, 0.6, 1.0] * 3
    ranks = friedman(frame, "perturb").mean_ranks
    assert ranks == {"perturb 0": 8 / 3, "perturb 1": 2.0, "perturb 2": 4 / 3}


def test_the_value_itself_can_be_analysed() -> None:
    frame = blocks([[0.9, 0.5, 0.4], [0.8, 0.6, 0.5], [0.7, 0.6, 0.65]])
    frame["baseline"] = [1.0, 0.5, 0.1] * 3
    by_change, by_value = friedman(frame, "perturb"), friedman(frame, "perturb", analysed="value")
    assert by_change.mean_ranks == {"perturb 0": 1.0, "perturb 1": 2.0, "perturb 2": 3.0}
    assert by_value.mean_ranks == {"perturb 0": 3.0, "perturb 1": 5 / 3, "perturb 2": 4 / 3}


def test_incomplete_blocks_are_left_out_and_counted() -> None:
    frame = noisy(seed=1, digits=6)
    whole = friedman(frame, "perturb")
    gap = frame.index[0]
    without = friedman(frame.drop(gap), "perturb")
    assert (whole.blocks, whole.incomplete) == (45, 0)
    assert (without.blocks, without.incomplete) == (44, 1)


def test_a_baseline_of_zero_makes_its_block_incomplete() -> None:
    frame = noisy(seed=1, digits=6)
    frame.loc[frame.index[0], "baseline"] = 0.0
    for factor in FACTORS:
        found = friedman(frame, factor)
        assert found.incomplete == 1
        assert found.p is not None


def test_over_tasks_a_cell_that_lacks_one_of_its_tasks_scores_makes_its_block_incomplete() -> None:
    frame = noisy(seed=1, digits=6)
    first = frame.index[frame["score_name"] == "f1_macro"][0]
    found = friedman(frame.drop(first), "task")
    assert (found.blocks, found.incomplete) == (26, 1)


def test_levels_keep_the_order_of_the_frame() -> None:
    assert friedman(noisy(seed=1, digits=6), "level").levels == LEVELS


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([[0.9, 0.5], [0.8, 0.4]], "2 levels: Friedman's test needs 3"),
        ([[0.9, 0.5, 0.4]], "1 complete block: Friedman's test needs 2"),
        ([[0.9, 0.9, 0.9], [0.5, 0.5, 0.5]], "in every block all values are equal: there is nothing to rank"),
    ],
)
def test_a_test_that_cannot_be_made_says_why_and_has_no_p(rows: list[list[float]], note: str) -> None:
    found = friedman(blocks(rows), "perturb")
    assert (found.note, found.q, found.p, found.w, found.size, found.pairs) == (note, None, None, None, "", ())


def test_without_a_complete_block_every_block_is_counted_as_incomplete() -> None:
    frame = blocks([[0.9, 0.5, 0.4], [0.8, 0.6, 0.5]])
    found = friedman(frame.drop(frame.index[[0, 4]]), "perturb")
    assert (found.blocks, found.incomplete, found.p) == (0, 2, None)
    assert found.note.startswith("0 complete blocks")


@pytest.mark.parametrize(
    "rows", [[[0.9, 0.5, 0.4], [0.8, 0.6, 0.5], [0.3, 0.2, 0.1]], [[0.9, 0.5, 0.5], [0.8, 0.6, 0.6]]]
)
def test_where_all_blocks_rank_alike_the_pairs_have_no_p_and_the_test_keeps_its_own(rows: list[list[float]]) -> None:
    found = friedman(blocks(rows), "perturb")
    assert found.note.startswith("all blocks rank alike")
    assert found.w == pytest.approx(1.0)
    # W = 1 means Q = blocks x df, and P(chi-squared with 2 df > Q) = exp(-Q / 2).
    assert found.p == pytest.approx(math.exp(-len(rows)))
    assert [pair.p for pair in found.pairs] == [None] * 3
    assert [pair.effect for pair in found.pairs] == [float(np.sign(pair.difference)) for pair in found.pairs]
    assert found.size == "large"


def test_no_p_is_zero_however_clear_the_difference() -> None:
    rows = [[0.9, 0.5, 0.1]] * 3000 + [[0.5, 0.9, 0.1]]
    found = friedman(blocks(rows), "perturb")
    assert found.p is not None
    assert found.p > 0
    assert all(pair.p is not None and pair.p > 0 for pair in found.pairs)


def test_weights_make_blocks_of_their_own() -> None:
    frame = noisy(seed=1, digits=6)
    both = pd.concat([frame, frame.assign(weights="study")], ignore_index=True)
    assert friedman(both, "perturb").blocks == 90


def test_another_factor_is_refused_by_name() -> None:
    with pytest.raises(DataError, match="'weights' is none of perturb, model, task, level"):
        friedman(noisy(seed=1, digits=6), "weights")


def test_a_frame_with_baseline_rows_is_refused() -> None:
    frame = noisy(seed=1, digits=6)
    with pytest.raises(DataError, match="baselines, not scenarios"):
        friedman(frame.assign(perturb="none"), "level")
