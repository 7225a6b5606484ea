"""What a single word touches that a clinical reader must not lose."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisyhealth.text.flags import FLAGS, flags


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("negation", "no Not NEVER none without denies denied deny nor neither nothing nobody cannot negative absent"),
        ("negation", "lack lacks unable w/o can't Don’t isn't dont cant WONT non-smoker HIV-negative no/mild"),
        ("number", "5 2.5 HbA1c ½ 10³ q6h one Twenty twenty-one thirty hundred half twice once first third two-thirds"),
        ("number", "mg mL µg/kg hours days' week's percent year-old"),
        ("laterality", "left Right left-sided right-handed LEFT/right rightward leftmost bilateral bilaterally"),
        ("laterality", "unilateral ipsilateral Contralaterally bilat"),
        ("drug", "warfarin Metformin Aspirin warfarin-induced metformin's"),
    ],
)
def test_a_word_touches_what_it_or_a_part_of_it_says(flag: str, words: str) -> None:
    assert {word: flags(word) for word in words.split()} == dict.fromkeys(words.split(), (flag,))


PLAIN = (
    "pain know another note knot unlikely unstable under anyone tone in foot times 十 lateral bright cleft lt RT ï¿½"
)


@pytest.mark.parametrize("word", ["", *PLAIN.split()])
def test_a_word_that_only_looks_like_it_touches_nothing(word: str) -> None:
    assert flags(word) == ()


def test_several_flags_come_in_their_order() -> None:
    assert flags("left-2-warfarin-no") == FLAGS


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=30))
def test_any_word_has_flags_that_exist_each_once_and_a_digit_is_a_number(word: str) -> None:
    found = flags(word)
    assert list(found) == [flag for flag in FLAGS if flag in found]
    assert "number" in found or not any(map(str.isdigit, word))
