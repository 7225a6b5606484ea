"""Mishearings within a word: endings and affixes, and only words come out."""

from random import Random

import pytest

from noisyhealth.perturbations.dictation import Dictation
from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word
from noisyhealth.text.lexicon import Lexicon


def heard(word: str, known: str) -> dict[str, str]:
    """Map what 300 draws make of a word to its operation."""
    rng, change = Random(0), Dictation(known.split().__contains__)
    drawn = [change(Word(word, 0, "NOUN", True, False), word, rng) for _ in range(300)]
    return {made.after: made.op for made in drawn if made}


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("weeks", "week weeks", {"week": "ending"}),
        ("week", "week weeks", {"weeks": "ending"}),
        ("biopsies", "biopsy", {"biopsy": "ending"}),
        ("biopsy", "biopsies", {"biopsies": "ending"}),
        ("stopped", "stop stopping", {"stop": "ending"}),
        ("treated", "treat", {"treat": "ending"}),
        ("used", "us use", {"use": "ending"}),  # three letters stay
        ("carried", "carry", {"carry": "ending"}),
        ("bleeding", "bleed", {"bleed": "ending"}),
        ("slowly", "slow", {"slow": "ending"}),
        ("daily", "day dai", {"day": "ending"}),
        ("days", "day", {"day": "ending"}),
        ("week", "weeked", {}),  # no noun
        ("mother's", "mother", {"mother": "ending"}),
        ("mother’s", "mother", {"mother": "ending"}),
        ("hypertension", "hypotension hypertension", {"hypotension": "affix"}),
        ("Hypotension", "hypertension", {"Hypertension": "affix"}),
        ("INTRAVENOUS", "intervenous", {"INTERVENOUS": "affix"}),
        ("abduction", "adduction", {"adduction": "affix"}),
        ("colectomy", "colostomy colotomy", {"colostomy": "affix", "colotomy": "affix"}),
        ("anterior", "antirior", {"antirior": "affix"}),  # what is known alone decides
        ("weeks", "", {}),
        ("is", "i is", {}),
        ("", "s", {}),
    ],
)
def test_a_word_is_misheard_as_each_known_word_that_an_ending_or_affix_makes_of_it(
    word: str, known: str, expected: dict[str, str]
) -> None:
    assert heard(word, known) == expected


@pytest.mark.parametrize(
    ("pos", "expected"), [("NOUN", {"walks"}), ("VERB", {"walks", "walked"}), ("ADJ", set()), ("PROPN", set())]
)
def test_an_ending_is_put_on_where_the_part_of_speech_has_it(pos: str, expected: set[str]) -> None:
    rng, change = Random(0), Dictation(["walks", "walked"].__contains__)
    drawn = [change(Word("walk", 0, pos, True, False), "walk", rng) for _ in range(100)]
    assert {made.after for made in drawn if made} == expected


def test_each_known_word_is_as_likely_as_another() -> None:
    rng, change = Random(0), Dictation(["walks", "walked"].__contains__)
    drawn = [change(Word("walk", 0, "VERB", True, False), "walk", rng) for _ in range(3000)]
    counts = [sum(made is not None and made.after == word for made in drawn) for word in ("walks", "walked")]
    assert sum(counts) == 3000
    assert all(1350 < count < 1650 for count in counts)


@pytest.mark.parametrize(
    ("word", "known"),
    [("hypotension", True), ("hypertension", True), ("week", True), ("weeks", True), ("diagnosi", False), ("", False)],
)
def test_the_lexicon_knows_words_of_daily_life_and_of_medicine(word: str, known: bool) -> None:
    assert Lexicon()(word) is known


def test_with_the_lexicon_of_the_package_a_pressure_that_was_high_is_heard_as_low() -> None:
    made = Dictation(Lexicon())(Word("hypertension", 4, "NOUN", True, True), "her hypertension", Random(0))
    assert made == Change(4, "hypertension", "hypotension", "affix")
