"""Spelling repair: what it undoes, and what it must leave alone."""

import pytest

from noisyhealth.errors import ConfigError
from noisyhealth.mitigations.mitigation import Input
from noisyhealth.mitigations.spelling import Spelling
from noisyhealth.perturbations.engine import replay
from noisyhealth.records import Dose, Edit, Variant

REPAIR = Spelling("spelling", shortest=4, letters_per_error=3, commonness=[50, 60, 70])


def repaired(text: str) -> Variant:
    [[copy]] = REPAIR.ask([Input("1", text)])
    return copy


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("I have a headahce all weeek", "I have a headache all week"),
        ("Hospitl, then hmoe.", "Hospital, then home."),
        ("a back-paiin diarry", "a back-pain diary"),
        ("mteformin was stpoped", "metformin was stopped"),
    ],
)
def test_a_misspelt_word_becomes_the_nearest_known_one(text: str, meant: str) -> None:
    assert repaired(text).text == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\t  ",
        "Metformin raised to 1 g b.i.d., 2.5 mg of bisoprolol at 8:30, BP 120/80",
        "Hepatomegaly, cholangiocarcinoma and pheochromocytoma",  # medical words
        "omeprazole and pantoprazole",  # drugs that are near another drug's name
        "seen by Dr Okafor with Ms Svensson",  # names
        "COPD, eGFR and HbA1c",  # abbreviations
        "didn't, isn’t, o'clcok",
        "@drjhon #helath https://exmaple.org/helth a.b@exmaple.org",
        "xqzvw kjhgfd",  # nothing is near
        "Ü ärger 痛い 😀 naïve",
    ],
)
def test_what_must_not_be_repaired_is_left_as_it_is_to_the_byte(text: str) -> None:
    assert repaired(text).text == text


def test_its_edits_replayed_on_the_text_as_it_came_give_what_is_asked() -> None:
    text = "Hospitl  at 8:30,\nheadahce (sevree) 2.5mg"
    copy = repaired(text)
    assert replay(text, copy.edits) == copy.text == "Hospital  at 8:30,\nheadache (severe) 2.5mg"
    assert [edit.word for edit in copy.edits] == [0, 3, 4]


def test_a_repair_that_touches_a_negation_says_so() -> None:
    [edit] = repaired("she neverr smoked").edits
    assert (edit.after, edit.flags) == ("never", ("negation",))


def edit(start: int, before: str, after: str) -> Edit:
    return Edit(start, before, after, "typo", "NOUN", False, 0)


def test_an_edit_counts_as_undone_only_where_the_word_is_what_it_was_and_a_clean_word_changed_as_damaged() -> None:
    original = "my headache and the rash on hands xylograf"
    came = Variant(
        "1",
        "my headahce and the rahs on hadns xylograf",
        (edit(3, "headache", "headahce"), edit(20, "rash", "rahs"), edit(28, "hands", "hadns")),
        Dose(),
    )
    repairs = (edit(3, "headahce", "headache"), edit(28, "hadns", "hides"), edit(34, "xylograf", "xylograph"))
    copy = Variant("1", replay(came.text, repairs), repairs, Dose())
    assert REPAIR.look(original, came, [copy]) == {
        "edits": 3,
        "undone": 1,
        "otherwise": 1,
        "words": 5,
        "damaged": 1,
    }


def test_an_edit_after_one_that_changed_the_length_is_looked_for_where_it_now_stands() -> None:
    came = Variant("1", "hd rash", (edit(0, "head", "hd"), edit(5, "rsah", "rash")), Dose())
    assert REPAIR.look("head rsah", came, [Variant("1", "hd rsah", (edit(3, "rash", "rsah"),), Dose())])["undone"] == 1


def test_a_removed_word_cannot_be_undone_and_is_no_word_that_could_be_damaged() -> None:
    came = Variant("1", "the  hurts", (edit(4, "head", ""),), Dose())
    found = REPAIR.look("the head hurts", came, REPAIR.ask([Input("1", came.text)])[0])
    assert found == {"edits": 1, "undone": 0, "otherwise": 0, "words": 2, "damaged": 0}


@pytest.mark.parametrize("name", ["shortest", "letters_per_error"])
def test_a_setting_below_one_is_an_error_that_names_it(name: str) -> None:
    given = {"shortest": 4, "letters_per_error": 3, "commonness": [50], name: 0}
    with pytest.raises(ConfigError, match=rf"mitigate\.{name}=0: give a whole number of 1 or more"):
        Spelling("spelling", **given)
