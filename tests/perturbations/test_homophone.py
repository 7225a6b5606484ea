"""Words that sound alike: the case and everything around them stay."""

from dataclasses import dataclass
from random import Random

import pytest
from samples import possible

from noisyhealth.perturbations.engine import Change, replay
from noisyhealth.perturbations.homophone import Homophone
from noisyhealth.records import Word
from noisyhealth.text.homophones import SoundAlike, Table

TABLE = {
    "heel": SoundAlike("heal", "exact"),
    "disease": SoundAlike("decease", "near"),
    "i": SoundAlike("eye", "exact"),
    "us": SoundAlike("us", "exact"),
    "weak": SoundAlike("week", "exact"),
}


def sounds(word: str) -> SoundAlike | None:
    return TABLE.get(word.lower())


@dataclass(frozen=True)
class Shouting:
    """A sound-alike as a careless source may write it."""

    word: str = "HEEL"
    grade: str = "exact"


def change(word: str, start: int = 0) -> Change | None:
    return Homophone(sounds)(Word(word, start, "NOUN", True, False), word, Random(0))


def whole(text: str, homophone: Homophone) -> str:
    """Return the text with every word replaced that can be."""
    return replay(text, possible(text, homophone))


@pytest.mark.parametrize(
    ("word", "after"),
    [
        ("heel", "heal"),
        ("Heel", "Heal"),
        ("HEEL", "HEAL"),
        ("hEEL", "heal"),
        ("HeeL", "Heal"),
        ("Disease", "Decease"),
        ("DISEASE", "DECEASE"),
        ("I", "Eye"),
        ("i", "eye"),
    ],
)
def test_the_sound_alike_takes_the_case_of_its_word(word: str, after: str) -> None:
    found = change(word, 5)
    assert found is not None
    assert (found.start, found.before, found.after) == (5, word, after)


@pytest.mark.parametrize(("word", "grade"), [("heel", "exact"), ("disease", "near")])
def test_the_operation_is_the_grade_of_the_sound(word: str, grade: str) -> None:
    found = change(word)
    assert found is not None
    assert found.op == grade


@pytest.mark.parametrize("word", ["liver", "us", "Us", "US", "", "頭痛", "heel's", "2.5"])
def test_a_word_with_no_other_word_for_its_sound_cannot_change(word: str) -> None:
    assert change(word) is None


def test_a_word_is_never_replaced_by_itself_in_another_case() -> None:
    assert Homophone(lambda _: Shouting())(Word("heel", 0, "NOUN", True, False), "heel", Random(0)) is None


@pytest.mark.parametrize("seed", range(5))
def test_chance_does_not_touch_which_word_it_is(seed: int) -> None:
    found = Homophone(sounds)(Word("heel", 0, "NOUN", True, False), "heel", Random(seed))
    assert found == Change(0, "heel", "heal", "exact")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("Heel,", "Heal,"),
        ("my (heel) hurts", "my (heal) hurts"),
        ("“Heel!” he said", "“Heal!” he said"),
        ("heel…\n\theel?", "heal…\n\theal?"),
        ("HEEL: sore;\r\nweak.", "HEAL: sore;\r\nweek."),
        ("*heel* _heel_ heel😩", "*heal* _heal_ heal😩"),
        ("heel-toe heel", "heel-toe heal"),  # a compound is one word
        ("@heel #heel heel", "@heel #heel heal"),
    ],
)
def test_punctuation_and_white_space_around_a_word_stay(text: str, after: str) -> None:
    assert whole(text, Homophone(sounds)) == after


def test_the_table_of_this_package_serves_as_a_source_of_sounds() -> None:
    assert whole("Heel, disease!", Homophone(Table())) == "Heal, decease!"
