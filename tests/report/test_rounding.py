"""How numbers are shown. Expected strings are written by hand."""

import numpy as np
import pandas as pd
import pytest

from noisyhealth.report.rounding import numeric, rounded


def shown(name: str, *values: object) -> list[str]:
    frame = pd.DataFrame({name: pd.Series(values, dtype=object)})
    return list(rounded(frame)[name])


@pytest.mark.parametrize("name", ["p", "p_holm", "chi2_p"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1e-300, "<.001"),
        (0.000999, "<.001"),
        (0.001, ".001"),
        (0.0455, ".045"),  # 0.0455 is 0.04549999… in binary
        (0.05, ".050"),
        (0.25, ".250"),
        (0.9994, ".999"),
        (0.9999, ">.999"),
        (1.0, "1.000"),
        (1, "1.000"),
        (np.float64(0.25), ".250"),
        (None, ""),
        (float("nan"), ""),
    ],
)
def test_a_p_value_has_three_digits_and_is_never_zero(name: str, value: object, expected: str) -> None:
    assert shown(name, value) == [expected]


@pytest.mark.parametrize("name", ["pairs", "prompt", "perturb", "stop"])
def test_a_column_that_only_begins_or_ends_with_p_is_no_p_value(name: str) -> None:
    assert shown(name, 0.0001) == ["0.000"]


def test_a_number_that_can_be_no_probability_is_shown_as_it_is() -> None:
    assert shown("p_rank", 12.5, -0.5) == ["12.500", "-0.500"]


@pytest.mark.parametrize("name", ["share", "shares", "share_low", "stable_share", "medical_shares"])
def test_a_share_is_shown_per_cent(name: str) -> None:
    assert shown(name, 0.25, 1, 0.0004, -0.0001, 2 / 3, None) == ["25.0 %", "100.0 %", "0.0 %", "0.0 %", "66.7 %", ""]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.5, "0.500"),
        (1234.5678, "1234.568"),
        (-0.1, "-0.100"),
        (-0.0001, "0.000"),
        (10.0, "10.000"),
        (-10.0, "-10.000"),
        (np.float32(0.5), "0.500"),
        (float("inf"), "inf"),
        (3, "3"),
        (np.int64(1200), "1200"),
        (True, "yes"),
        (np.False_, "no"),
        ("4f1c9e0a77b24d02", "4f1c9e0a77b24d02"),
        ("0.123456", "0.123456"),
        (("low", 0.25), "low, 0.250"),
        (pd.NA, ""),
        (pd.NaT, ""),
        (None, ""),
    ],
)
def test_other_values_by_their_kind(value: object, expected: str) -> None:
    assert shown("value", value) == [expected]


def test_whole_numbers_stay_whole_where_one_is_missing() -> None:
    frame = pd.DataFrame({"df": [2, None], "q": [2.0, 3.0]})
    assert rounded(frame).to_dict("list") == {"df": ["2", ""], "q": ["2.000", "3.000"]}


def test_order_names_and_the_given_frame_stay() -> None:
    frame = pd.DataFrame([[0.5, "b"], [0.25, "a"]], columns=["q", "q"])
    before = frame.copy(deep=True)
    assert rounded(frame).to_numpy().tolist() == [["0.500", "b"], ["0.250", "a"]]
    assert list(rounded(frame).columns) == ["q", "q"]
    pd.testing.assert_frame_equal(frame, before)


def test_a_named_index_becomes_columns_and_a_nameless_one_goes() -> None:
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.Index(["gpt", "llama"], name="model"))
    assert rounded(frame).to_dict("list") == {"model": ["gpt", "llama"], "n": ["1", "2"]}
    assert numeric(frame) == [False, True]
    assert list(rounded(frame.rename_axis(None)).columns) == ["n"]


def test_an_empty_frame_keeps_its_columns() -> None:
    frame = pd.DataFrame({"p": [], "note": []})
    assert list(rounded(frame).columns) == ["p", "note"]
    assert rounded(frame).empty
    assert numeric(frame) == [False, False]


def test_categories_are_shown_by_name() -> None:
    frame = pd.DataFrame({"level": pd.Categorical(["low", None], ["low", "high"])})
    assert rounded(frame)["level"].tolist() == ["low", ""]


def test_columns_of_numbers_are_known_by_what_is_there() -> None:
    frame = pd.DataFrame({"a": [1, None], "b": ["1", "2"], "c": [True, False], "d": [0.5, "x"], "e": [None, None]})
    assert numeric(frame) == [True, False, False, False, False]
