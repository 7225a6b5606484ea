"""Words abbreviated: the table, the case, and what has no entry."""

from importlib.resources import files
from random import Random

import pytest
from samples import possible

from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.abbreviation import Abbreviation
from noisyhealth.perturbations.engine import Change, replay
from noisyhealth.records import Word
from noisyhealth.text.abbreviations import GRADES, Abbreviations
from noisyhealth.text.words import spans

ROWS = [
    line.split("\t")
    for line in files("noisyhealth").joinpath("data", "tables", "abbreviations.tsv").read_text().splitlines()
    if not line.startswith("#")
]


def change(word: str, start: int = 0) -> Change | None:
    return Abbreviation(Abbreviations())(Word(word, start, "NOUN", True, False), word, Random(0))


@pytest.mark.parametrize(
    ("word", "after", "grade"),
    [
        ("patient", "pt", "clinical"),
        ("Patient", "Pt", "clinical"),
        ("PATIENT", "PT", "clinical"),
        ("history", "hx", "clinical"),
        ("treatment", "tx", "clinical"),
        ("diagnosis", "dx", "clinical"),
        ("symptoms", "sx", "clinical"),
        ("fracture", "fx", "clinical"),
        ("hypertension", "HTN", "clinical"),  # one with capitals of its own keeps them
        ("Hypertension", "HTN", "clinical"),
        ("HAEMOGLOBIN", "Hb", "clinical"),
        ("follow-up", "f/u", "clinical"),
        ("tomorrow", "tmrw", "everyday"),
        ("Thanks", "Thx", "everyday"),
    ],
)
def test_a_word_becomes_its_abbreviation_in_its_case(word: str, after: str, grade: str) -> None:
    assert change(word, 3) == Change(3, word, after, grade)


@pytest.mark.parametrize("word", ["", "kettle", "pt", "HTN", "patient's", "頭痛", "pati\u00ebnt"])
def test_a_word_without_an_entry_cannot_change(word: str) -> None:
    assert change(word) is None


def test_all_of_a_text_that_has_an_entry_is_abbreviated_and_nothing_else() -> None:
    text = "Patient with a history of hypertension, 500 mg daily; follow-up in weeks."
    after = "Pt with a hx of HTN, 500 mg daily; f/u in wks."
    assert replay(text, possible(text, Abbreviation(Abbreviations()))) == after


def test_a_grade_that_is_left_out_answers_for_no_word() -> None:
    clinical, everyday = Abbreviations(["clinical"]), Abbreviations(["everyday"])
    assert (clinical("tomorrow"), everyday("patient")) == (None, None)
    assert clinical("patient") == Abbreviations()("patient")


@pytest.mark.parametrize("grades", [[], ["medical"], ["clinical", "medical"]])
def test_a_grade_that_does_not_exist_is_an_error_that_says_which_do(grades: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"grades=.*clinical.*everyday"):
        Abbreviations(grades)


def test_the_table_has_one_row_a_word_in_order_and_enough_of_them() -> None:
    listed = [word for word, _, _ in ROWS]
    assert listed == sorted(set(listed))
    assert sum(grade == "clinical" for _, grade, _ in ROWS) >= 400
    assert {grade for _, grade, _ in ROWS} == set(GRADES)


@pytest.mark.parametrize(("word", "grade", "short"), ROWS, ids=lambda part: part)
def test_an_abbreviation_is_one_word_shorter_than_its_own(word: str, grade: str, short: str) -> None:
    assert word == word.lower()
    assert len(short) < len(word)
    assert [span.text for span in spans(short)] == [short]
    assert [span.text for span in spans(word)] == [word]
