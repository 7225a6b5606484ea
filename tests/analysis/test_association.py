"""Chi-squared by the formula of the book, by R, by SciPy's distribution, and every degenerate case."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest
from fixtures import expected, table
from scipy.stats import chi2, fisher_exact

from noisyhealth.analysis.association import DISTRIBUTION, PERMUTATION, association
from noisyhealth.analysis.impact import KEY, Category
from noisyhealth.errors import DataError

# A score for each category, against a baseline of .8 (0 for "undefined").
VALUES = {"increase": 0.9, "stable": 0.8, "decrease": 0.6, "catastrophic": 0.2, "undefined": 0.5}
# The study's counts of 270 scenarios (Joshi et al. 2026, Results, RQ1), shared out over three models.
PUBLISHED = {"increase": 38, "stable": 113, "decrease": 104, "catastrophic": 15}


def scenarios(counts: Mapping[str, Sequence[int]], factor: str = "model") -> pd.DataFrame:
    """A frame with so many scenarios of each category for each level of a factor."""
    rows = []
    for category, numbers in counts.items():
        for at, number in enumerate(numbers):
            for _ in range(number):
                key = {"task": "qa", "model": "gpt", "weights": "study", "perturb": "typo", "level": "low"}
                key |= {"score_name": f"score {len(rows)}", factor: f"{factor} {at}"}
                baseline = 0.0 if category == "undefined" else 0.8
                rows.append({**key, "n": 100, "value": VALUES[category], "baseline": baseline})
    return pd.DataFrame(rows, columns=[*KEY, "n", "value", "baseline"])


def by_hand(observed: Sequence[Sequence[int]]) -> tuple[float, int, float]:
    """Pearson 1900: the sum of (O - E)^2 / E, E = row x column / n; Cramér 1946: sqrt(chi2 / (n (min(r, c) - 1)))."""
    o = np.array(observed, dtype=float)
    e = o.sum(1, keepdims=True) * o.sum(0, keepdims=True) / o.sum()
    statistic = float(((o - e) ** 2 / e).sum())
    return statistic, (o.shape[0] - 1) * (o.shape[1] - 1), float(np.sqrt(statistic / (o.sum() * (min(o.shape) - 1))))


def test_the_test_is_that_of_the_formula_with_the_studys_degrees_of_freedom() -> None:
    counts = {"increase": (20, 10, 8), "stable": (60, 30, 23), "decrease": (9, 40, 55), "catastrophic": (6, 5, 4)}
    assert {name: sum(row) for name, row in counts.items()} == PUBLISHED
    counts["catastrophic"] = (6, 7, 9)  # enough to expect 5 and more
    found = association(scenarios(counts), "model")
    statistic, df, v = by_hand(found.observed)
    assert found.df == df == 6  # as published for models and for tasks
    assert found.chi2 == pytest.approx(statistic)
    assert found.p == pytest.approx(chi2.sf(statistic, 6))
    assert found.v == pytest.approx(v)
    assert (found.method, found.n, found.dropped, found.undefined, found.note) == (DISTRIBUTION, 277, (), 0, "")
    assert found.observed == tuple(zip(*counts.values(), strict=True))
    assert found.categories == ("increase", "stable", "decrease", "catastrophic")
    assert np.array(found.expected).sum() == pytest.approx(277)


@pytest.mark.parametrize(("name", "method"), [("counts", DISTRIBUTION), ("fourfold", PERMUTATION)])
def test_the_numbers_are_those_of_r(name: str, method: str) -> None:
    """R: chisq.test(correct = FALSE), of 3 groups of unequal sizes and of a fourfold table; fisher.test beside it."""
    found = association(scenarios(table(name).drop(columns="group").to_dict("list"), "perturb"), "perturb")
    r = expected(name, "chi2")
    assert (found.chi2, found.df, found.v) == pytest.approx((r["chi2"], r["df"], r["v"]), rel=1e-12)
    assert min(min(row) for row in found.expected) == pytest.approx(r["least_expected"], rel=1e-12)
    assert found.method == method
    if method == DISTRIBUTION:
        assert found.p == pytest.approx(r["p"], rel=1e-9)
    else:  # permutations keep both margins, as Fisher's test does; 9,999 of them
        assert found.p == pytest.approx(expected(name, "fisher")["p"], abs=0.005)


def test_small_expected_counts_get_a_permutation_p_that_agrees_with_fishers() -> None:
    found = association(scenarios({"stable": (7, 2), "decrease": (1, 8)}), "model")
    assert found.method == PERMUTATION
    assert min(min(row) for row in found.expected) < 5
    assert found.p == pytest.approx(fisher_exact(found.observed).pvalue, abs=0.006)  # 9,999 draws of a p of .015
    again = association(scenarios({"stable": (7, 2), "decrease": (1, 8)}), "model")
    assert again == found, "the same seed gives the same p"


def test_a_permutation_p_is_never_zero() -> None:
    found = association(scenarios({"stable": (30, 0), "catastrophic": (0, 4)}), "model")
    assert found.method == PERMUTATION
    assert found.p is not None
    assert 0 < found.p <= 0.001
    assert found.v == pytest.approx(1)


def test_an_empty_category_is_dropped_and_said() -> None:
    found = association(scenarios({"stable": (40, 30), "decrease": (20, 30)}), "model")
    assert found.dropped == ("increase", "catastrophic")
    assert (found.df, found.categories) == (1, ("stable", "decrease"))
    # no continuity correction: by hand, 120 (40 x 30 - 30 x 20)^2 / (70 x 50 x 60 x 60)
    assert found.chi2 == pytest.approx(120 * (40 * 30 - 30 * 20) ** 2 / (70 * 50 * 60 * 60))


def test_scenarios_without_a_category_are_left_out_and_counted() -> None:
    found = association(scenarios({"stable": (40, 30), "decrease": (20, 30), "undefined": (3, 4)}), "model")
    assert (found.undefined, found.n) == (7, 120)
    assert str(Category.UNDEFINED) not in found.categories


@pytest.mark.parametrize(
    ("counts", "note"),
    [
        ({"stable": (5, 6)}, "2 levels and 1 categories"),
        ({"stable": (5,), "decrease": (6,)}, "1 levels and 2 categories"),
        ({"undefined": (5, 6)}, "0 levels and 0 categories"),
        ({"stable": (5, 0), "decrease": (6, 0), "undefined": (0, 2)}, "1 levels and 2 categories"),
    ],
)
def test_what_cannot_be_tested_is_named_and_never_a_number(counts: Mapping[str, Sequence[int]], note: str) -> None:
    found = association(scenarios(counts), "model")
    assert note in found.note
    assert (found.chi2, found.df, found.p, found.v, found.method) == (None, None, None, None, "")


def test_weights_never_mix_and_a_factor_is_a_dimension() -> None:
    frame = scenarios({"stable": (5, 6), "decrease": (2, 3)})
    with pytest.raises(DataError, match="weights"):
        association(pd.concat([frame, frame.assign(weights="embedded")]), "model")
    with pytest.raises(DataError, match="'answered_by' is none of"):
        association(frame, "answered_by")


def test_a_level_without_a_defined_change_is_dropped_and_named() -> None:
    found = association(scenarios({"increase": [9, 7, 0], "stable": [6, 9, 0], "undefined": [1, 0, 12]}), "model")
    assert found.dropped_levels == ("model 2",)
    assert (found.levels, found.df, found.undefined) == (("model 0", "model 1"), 1, 13)
