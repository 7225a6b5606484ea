"""Capitals and punctuation lost: what goes and what stays."""

from random import Random

import pytest
from samples import OWN, TEXTS, at, possible, reached

from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import replay
from noisyhealth.perturbations.plain import Plain
from noisyhealth.records import Word


@pytest.mark.parametrize(
    ("text", "both", "marks_alone", "capitals_alone"),
    [
        ("Pain, again.", "pain again", "Pain again", "pain, again."),
        ("I'm tired", "im tired", "Im tired", "i'm tired"),
        ("couldn’t sleep...", "couldnt sleep", "couldnt sleep", "couldn’t sleep..."),
        ("Why?! Nobody knows…", "why nobody knows", "Why Nobody knows", "why?! nobody knows…"),
        ("ECG normal", "ecg normal", "ECG normal", "ecg normal"),
        ("sick,tired", "sick,tired", "sick,tired", "sick,tired"),  # two words must not become one
        ("Pain)", "pain)", "Pain)", "pain)"),  # brackets stay
        ("(pain).", "(pain).", "(pain).", "(pain)."),  # a mark that hangs on a bracket too
        ("follow-up: none", "follow-up none", "follow-up none", "follow-up: none"),
        ("good :)", "good :)", "good :)", "good :)"),
        ("pain.\r\nNext", "pain\r\nnext", "pain\r\nNext", "pain.\r\nnext"),
        ("BP 120/80, took 2.5 mg.", "bp 120/80, took 2.5 mg.", "BP 120/80, took 2.5 mg.", "bp 120/80, took 2.5 mg."),
    ],
)
def test_what_a_word_loses(text: str, both: str, marks_alone: str, capitals_alone: str) -> None:
    def without(change: Plain) -> str:
        return replay(text, possible(text, change))

    assert without(Plain(capitals=True, marks=True)) == both
    assert without(Plain(capitals=False, marks=True)) == marks_alone
    assert without(Plain(capitals=True, marks=False)) == capitals_alone


@pytest.mark.parametrize(
    ("word", "behind", "op"),
    [
        ("I'm", "…", "capitals+apostrophe+marks"),
        ("Pain", "", "capitals"),
        ("pain", ".", "marks"),
        ("it's", "", "apostrophe"),
    ],
)
def test_the_operation_says_what_was_lost(word: str, behind: str, op: str) -> None:
    made = Plain(capitals=True, marks=True)(Word(word, 0, "NOUN", True, False), word + behind, Random(0))
    assert made is not None
    assert made.op == op


@pytest.mark.parametrize("word", ["pain", "頭痛", "50-year-old"])
def test_a_word_with_nothing_to_lose_cannot_change(word: str) -> None:
    assert Plain(capitals=True, marks=True)(Word(word, 0, "NOUN", True, False), f"{word} left", Random(0)) is None


@pytest.mark.parametrize("name", TEXTS)
def test_letters_stay_but_for_their_case(name: str) -> None:
    text = TEXTS[name]
    made = replay(text, possible(text, OWN["plain"]))
    assert [c for c in made.lower() if c.isalnum()] == [c for c in text.lower() if c.isalnum()]


def test_a_lost_capital_is_a_word_changed_and_no_character() -> None:
    dose = reached(at("Pain again", 0.5, change=Plain(capitals=True, marks=True))).dose
    assert (dose.words, dose.edit_distance) == (0.5, 0)


def test_a_choice_that_loses_nothing_is_an_error() -> None:
    with pytest.raises(ConfigError, match="set one to true"):
        Plain(capitals=False, marks=False)
