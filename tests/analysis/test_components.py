"""Components of variance: against REML, a hand calculation, and what was put into simulated scores."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest

from noisyhealth.analysis.components import Component, components
from noisyhealth.errors import DataError


def drawn(
    seed: int, shape: tuple[int, ...], deviations: dict[tuple[int, ...], float]
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Scores to which each source (a set of axes) adds normal numbers of its standard deviation."""
    rng = np.random.default_rng(seed)
    scores = np.zeros(shape)
    for axes, deviation in deviations.items():
        size = [length if axis in axes else 1 for axis, length in enumerate(shape)]
        scores = scores + rng.normal(0, deviation, size)
    return scores


def by_name(found: list[Component]) -> dict[tuple[str, ...], Component]:
    return {one.sources: one for one in found}


def test_simulated_components_are_found_again_on_average() -> None:
    put = {(0,): 0.5, (1,): 0.2, (2,): 0.3, (0, 1): 0.3, (0, 2): 0.1, (1, 2): 0.1, (0, 1, 2): 0.4}
    names = ("text", "draw", "shots")
    found = [by_name(components(drawn(seed, (40, 6, 5), put), names)) for seed in range(300)]
    for axes, deviation in put.items():
        estimates = [one[tuple(names[axis] for axis in axes)].estimate for one in found]
        error = np.std(estimates) / np.sqrt(len(estimates))
        assert abs(np.mean(estimates) - deviation**2) < 4 * error, axes


def test_the_estimates_are_those_of_reml_in_a_balanced_design() -> None:
    import statsmodels.formula.api as smf

    scores = drawn(3, (12, 8), {(0,): 1.0, (1,): 0.7, (0, 1): 0.5})
    rows = [(0, text, draw, scores[text, draw]) for text, draw in product(range(12), range(8))]
    frame = pd.DataFrame(rows, columns=["all", "text", "draw", "score"])
    parts = {"draw": "0 + C(draw)", "text": "0 + C(text)"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without a random intercept of its own, statsmodels warns of a singular one
        fit = smf.mixedlm("score ~ 1", frame, groups="all", vc_formula=parts, re_formula="0").fit(reml=True)
    found = by_name(components(scores, ["text", "draw"]))
    assert [one.estimate for one in found.values()] == pytest.approx([fit.vcomp[1], fit.vcomp[0], fit.scale], rel=1e-3)


def test_mean_squares_of_two_sources_are_those_of_the_textbook() -> None:
    # Rows 1 2 3 / 4 4 7: by hand MS(row) = 13.5, MS(column) = 3.5, MS(rest) = 0.5.
    row, column, rest = components(np.array([[1.0, 2, 3], [4, 4, 7]]), ["row", "column"])
    assert [row.estimate, column.estimate, rest.estimate] == pytest.approx([(13.5 - 0.5) / 3, (3.5 - 0.5) / 2, 0.5])
    assert (row.df, column.df, rest.df) == (1, 2, 2)
    assert row.share == pytest.approx((13 / 3) / (13 / 3 + 1.5 + 0.5))


def test_a_negative_estimate_counts_as_nothing() -> None:
    found = by_name(components(np.array([[0.0, 1.0], [1.0, 0.0]]), ["text", "draw"]))
    assert found["text",].estimate < 0
    assert found["text",].variance == found["text",].share == 0
    assert found["text", "draw"].share == 1


def test_scores_that_are_all_alike_have_no_shares() -> None:
    assert {one.share for one in components(np.ones((3, 2)), ["text", "draw"])} == {None}


@pytest.mark.parametrize(
    ("scores", "names"),
    [(np.ones((3, 1)), ["text", "draw"]), (np.ones((3, 2)), ["text"]), (np.array([[np.nan, 1], [1, 1]]), ["a", "b"])],
)
def test_what_is_no_crossed_design_is_refused(
    scores: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", names: list[str]
) -> None:
    with pytest.raises(DataError, match="axis of 2 values or more"):
        components(scores, names)
