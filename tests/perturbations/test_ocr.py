"""Misread letters: each place and reading, and what cannot be misread."""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pytest

from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.ocr import Ocr
from noisyhealth.records import Word
from noisyhealth.text.shapes import shapes


def readings(word: str, given: Mapping[str, Sequence[str]]) -> Counter[str]:
    """Count what 3,000 draws make of a word."""
    rng, change = Random(0), Ocr(given)
    drawn = [change(Word(word, 0, "NOUN", True, False), word, rng) for _ in range(3000)]
    return Counter(made.after for made in drawn if made)


@pytest.mark.parametrize(
    ("word", "given", "expected"),
    [
        ("burn", {"rn": ["m"]}, {"bum"}),
        ("ill", {"l": ["1", "I"]}, {"i1l", "il1", "iIl", "ilI"}),
        ("ILL", {"l": ["1"]}, set()),  # as they look: a capital is another shape
        ("O", {"O": ["0"]}, {"0"}),
        ("clock", {"cl": ["d"], "c": ["e"]}, {"dock", "elock", "cloek"}),
        ("coccal", {"cc": ["œ"]}, {"coœal"}),
        ("頭痛", {"l": ["1"]}, set()),
        ("", {"l": ["1"]}, set()),
        ("pain", {}, set()),
    ],
)
def test_a_word_is_misread_at_one_place_each_as_likely_as_another(
    word: str, given: Mapping[str, Sequence[str]], expected: set[str]
) -> None:
    found = readings(word, given)
    assert set(found) == expected
    assert all(abs(count - 3000 / len(expected)) < 200 for count in found.values())


def test_an_accent_of_its_own_keeps_its_letter() -> None:
    assert set(readings(unicodedata.normalize("NFD", "né"), {"e": ["c"], "n": ["u"]})) == {"ue\u0301"}


def test_the_operation_says_what_was_read_as_what() -> None:
    made = Ocr({"rn": ["m"]})(Word("burn", 7, "NOUN", True, False), "burn", Random(0))
    assert made is not None
    assert (made.start, made.before, made.after, made.op) == (7, "burn", "bum", "rn>m")


@pytest.mark.parametrize(
    ("printed", "read"), [("rn", "m"), ("m", "rn"), ("l", "1"), ("O", "0"), ("cl", "d"), ("S", "5")]
)
def test_the_table_has_the_confusions_that_everybody_knows(printed: str, read: str) -> None:
    assert read in shapes()[printed]


def test_the_table_reads_letters_and_digits_alone_so_that_a_word_stays_one() -> None:
    Ocr(shapes())  # refuses others
    assert all(len(printed) <= 2 and printed.isalpha() for printed in shapes())
    assert len(shapes()) >= 50


@pytest.mark.parametrize("given", [{"l": ["|"]}, {"l": []}, {"": ["x"]}, {"l": ["l"]}, {"l": ["a b"]}, {"l": [""]}])
def test_shapes_that_cannot_be_used_are_an_error(given: Mapping[str, Sequence[str]]) -> None:
    with pytest.raises(ConfigError, match=r"perturb\.change\.shapes"):
        Ocr(given)
