"""The relative change, the categories of the study and their table."""

import math

import pandas as pd
import pytest

from noisyhealth.analysis.impact import KEY, Category, category, category_table, change
from noisyhealth.errors import DataError


@pytest.mark.parametrize(
    ("score", "baseline", "expected"),
    [
        (0.76, 0.80, -0.05),
        (0.57, 0.60, -0.05),
        (0.9, 0.8, 0.125),
        (0.8, 0.8, 0.0),
        (0.0, 0.8, -1.0),
        (0.3, 0.0, None),
        (0.3, -0.1, None),
    ],
)
def test_a_change_is_a_fraction_of_the_baseline_to_nine_digits(
    score: float, baseline: float, expected: float | None
) -> None:
    assert change(score, baseline) == expected


def test_no_change_is_not_a_negative_zero() -> None:
    found = change(0.8 - 1e-13, 0.8)
    assert found is not None
    assert math.copysign(1, found) == 1


@pytest.mark.parametrize(
    ("score", "baseline", "expected"),
    [
        (0.81, 0.80, "increase"),
        (0.80, 0.80, "stable"),
        (0.80 + 1e-12, 0.80, "stable"),
        (0.7601, 0.80, "stable"),
        (0.76, 0.80, "decrease"),
        (0.95, 1.00, "decrease"),
        (0.57, 0.60, "decrease"),
        (0.4001, 0.80, "decrease"),
        (0.40, 0.80, "catastrophic"),
        (0.45, 0.90, "catastrophic"),
        (0.00, 0.80, "catastrophic"),
        (0.00, 0.00, "undefined"),
        (0.50, 0.00, "undefined"),
    ],
)
def test_the_edges_of_the_categories_belong_where_the_design_puts_them(
    score: float, baseline: float, expected: str
) -> None:
    assert category(score, baseline) == Category(expected)


@pytest.mark.parametrize("baseline", [n / 1000 for n in range(20, 1001, 20)])
def test_exactly_five_and_fifty_percent_down_are_on_the_lower_side_for_every_baseline(baseline: float) -> None:
    assert category(round(baseline * 0.95, 12), baseline) is Category.DECREASE
    assert category(round(baseline * 0.5, 12), baseline) is Category.CATASTROPHIC


@pytest.mark.parametrize(("score", "baseline"), [(math.nan, 0.8), (0.8, math.nan), (math.inf, 0.8)])
def test_a_score_that_is_no_number_is_refused(score: float, baseline: float) -> None:
    with pytest.raises(DataError, match="must be numbers"):
        category(score, baseline)


def frame(*rows: tuple[str, str, float], weights: str = "embedded") -> pd.DataFrame:
    """Rows of (task, model, value) against a baseline of .8, each at a level of its own."""
    return pd.DataFrame(
        [
            (task, model, weights, "typo", f"level {at}", "f1", 100, value, 0.8)
            for at, (task, model, value) in enumerate(rows)
        ],
        columns=[*KEY, "n", "value", "baseline"],
    )


FOUR = frame(("qa", "gpt", 0.9), ("qa", "gpt", 0.8), ("qa", "llama", 0.76), ("sentiment", "gpt", 0.1))


def test_the_table_counts_the_scenarios_of_each_group_and_their_shares() -> None:
    table = category_table(FOUR, ["task", "model"])
    assert list(table.columns[:3]) == ["task", "model", "n"]
    assert table[["task", "model", "n", *map(str, Category)]].to_numpy().tolist() == [
        ["qa", "gpt", 2, 1, 1, 0, 0, 0],
        ["qa", "llama", 1, 0, 0, 1, 0, 0],
        ["sentiment", "gpt", 1, 0, 0, 0, 1, 0],
    ]
    shares = table[[f"{name}_share" for name in Category]]
    assert shares.iloc[0].tolist() == [0.5, 0.5, 0.0, 0.0, 0.0]
    assert (shares.sum(axis=1) == 1).all()


def test_without_groups_the_table_has_one_row_for_everything() -> None:
    row = category_table(FOUR, [])
    assert row[["n", *map(str, Category)]].to_numpy().tolist() == [[4, 1, 1, 1, 1, 0]]


def test_a_baseline_of_zero_is_counted_as_undefined() -> None:
    assert category_table(FOUR.assign(baseline=0.0), ["task"])["undefined"].tolist() == [3, 1]


def test_weights_never_mix_in_a_row() -> None:
    both = pd.concat([FOUR, frame(("qa", "gpt", 0.4), weights="study")], ignore_index=True)
    with pytest.raises(DataError, match="would mix"):
        category_table(both, ["task"])
    assert category_table(both, ["weights", "task"])["n"].tolist() == [3, 1, 1]


@pytest.mark.parametrize(
    ("given", "by", "message"),
    [
        (FOUR.drop(columns="baseline"), ["task"], "no column .'baseline'."),
        (FOUR, ["tasks"], "no column .'tasks'. to group by"),
        (FOUR.iloc[:0], ["task"], "0 scores"),
        (FOUR.assign(perturb="none"), ["task"], "baselines, not scenarios"),
        (pd.concat([FOUR, FOUR]), ["task"], "stands twice"),
    ],
)
def test_a_frame_that_would_mislead_is_refused(given: pd.DataFrame, by: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        category_table(given, by)
