"""Numbers with units, and negations, of an answer against its reference."""

import pytest

from noisyhealth.errors import DataError
from noisyhealth.metrics.clinical import negated, negation_agreement, number_agreement, quantities, scores


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.5 mg", [("2.5", "mg")]),
        ("2.50mg and .5 MG", [("0.5", "mg"), ("2.5", "mg")]),
        ("5 \u00b5g, 5 \u03bcg, 5 mcg, 5 micrograms", [("5", "mcg")]),
        ("1,000 mL or 2,5 l", [("1000", "ml"), ("2.5", "l")]),
        ("BP 120/80 mmHg at 10:30", [("10:30", ""), ("120/80", "mmhg")]),
        ("a 72-year-old for 3 days", [("3", "day"), ("72", "year")]),
        ("5-10 mg", [("10", "mg"), ("5", "")]),
        ("base excess -4", [("-4", "")]),
        ("two tablets, one on the left", [("2", "tablet")]),
        ("one tablet", [("1", "tablet")]),
        ("vitamin B12 q6h", [("b12", ""), ("q6h", "")]),
        ("COVID-19", [("19", "")]),
        ("5 mg/kg per day", [("5", "mg/kg")]),
        ("20 mg per day is 20 mg/day", [("20", "mg/day")]),
        ("97 % or 97 percent", [("97", "%")]),
        ("38.5 °C", [("38.5", "°c")]),
        ("0 to 100", [("0", ""), ("100", "")]),
        ("Call 3. Then rest.", [("3", "")]),
        ("no numbers", []),
        ("", []),
    ],
)
def test_quantities_are_read_in_one_spelling(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(found.number, found.unit) for found in quantities(text)] == expected


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        ("2.5 mg", "2.5 mg", 1.0),
        ("2.5 mg", "5.2 mg", 0.0),
        ("2.5 mg", "2.5 mL", 0.0),
        ("2.5 mg", "2.50 milligrams", 1.0),
        ("2.5 mg", "2.5", 1.0),
        ("5 mg", "5, that is 5 mg", 2 / 3),
        ("40 mg for 10 days", "40 mg for 7 days", 0.5),
        ("40 mg", "", 0.0),
        ("aspirin", "aspirin 81 mg", 0.0),
        ("aspirin", "ibuprofen", None),
        ("120/80", "80/120", 0.0),
        ("two weeks", "2 weeks", 1.0),
    ],
)
def test_numbers_agree_as_the_share_of_quantities_of_both(
    reference: str, candidate: str, expected: float | None
) -> None:
    assert number_agreement(reference, candidate) == expected
    assert number_agreement(candidate, reference) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no chest pain", {"chest", "pain"}),
        ("No fever, chills or cough. Takes aspirin.", {"fever", "chills", "cough"}),
        ("No fever, takes aspirin", {"fever"}),
        ("denies fever but reports cough", {"fever"}),
        ("doesn\u2019t smoke", {"smoke"}),
        ("chest x-ray was negative", {"chest", "x", "ray"}),
        ("Chest pain: absent", {"chest", "pain"}),
        ("negative for malaria", {"malaria"}),
        ("MI was ruled out", {"mi"}),
        ("No.", set()),
        ("not only fever", None),
        ("no doubt a fracture", None),
        ("patient no. 3 has pain", None),
        ("a notable nose and knot", None),
        ("", None),
    ],
)
def test_a_negation_reaches_to_the_end_of_its_clause(text: str, expected: set[str] | None) -> None:
    assert negated(text) == expected


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        ("no chest pain", "no chest pain", 1.0),
        ("no chest pain", "denies chest pain", 1.0),
        ("no chest pain", "chest pain", 0.0),
        ("no fever, has chest pain", "no chest pain, has fever", 0.0),
        ("no fever or cough", "no fever", 1.0),
        ("no fever and no cough", "no fever, has cough", 0.5),
        ("No.", "No, she doesn't.", 1.0),
        ("No.", "Yes.", 0.0),
        ("never smoked", "without tobacco", 1.0),
        ("chest pain", "chest pain", None),
        ("no chest pain", "", 0.0),
    ],
)
def test_negations_agree_on_the_words_both_sides_have(reference: str, candidate: str, expected: float | None) -> None:
    assert negation_agreement(reference, candidate) == expected
    assert negation_agreement(candidate, reference) == expected


def test_means_run_over_the_examples_that_have_a_number_or_a_negation() -> None:
    found = scores(["2.5 mg", "5 mg", "no pain", "aspirin"], ["2.5 mg", "6 mg", "pain", "aspirin"])
    assert found == {"number_n": 2.0, "number_agreement": 0.5, "negation_n": 1.0, "negation_agreement": 0.0}


def test_without_numbers_or_negations_there_is_an_n_of_zero_and_no_mean() -> None:
    assert scores(["aspirin"], ["aspirin"]) == {"number_n": 0.0, "negation_n": 0.0}


def test_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="0 answers"):
        scores([], [])
