"""What became of each answer."""

import math

import pytest

from noisyhealth.analysis.flips import FLIPS, flip_counts, flips
from noisyhealth.errors import DataError


@pytest.mark.parametrize(
    ("clean", "now", "clean_right", "right", "expected"),
    [
        ("a", "b", 1, 0, "right to wrong"),
        ("b", "a", 0, 1, "wrong to right"),
        ("b", "c", 0, 0, "wrong to other"),
        ("b", "", 0, 0, "wrong to other"),
        ("a", "a", 1, 1, "same"),
        ("b", "b", 0, 0, "same"),
        ("", "", 0, 0, "same"),
        # Free answers: ROUGE-L.
        ("aspirin 75 mg", "aspirin", 0.8, 0.5, "right to wrong"),
        ("aspirin", "aspirin 75 mg", 0.5, 0.8, "wrong to right"),
        ("the left knee", "the right knee", 0.5, 0.5, "wrong to other"),
        ("knee", "Knee", 1.0, 1.0, "wrong to other"),
        ("knee", "knee", 0.3, 0.1 + 0.2, "same"),
        ("knee", "hip", 0.3, 0.3 + 9e-10, "wrong to other"),
        ("knee", "hip", 0.3, 0.3 + 2e-9, "wrong to right"),
    ],
)
def test_a_flip_is_named_by_how_right_the_answer_is_and_then_by_the_answer(
    clean: str, now: str, clean_right: float, right: float, expected: str
) -> None:
    assert flips([clean], [now], [clean_right], [right]).tolist() == [expected]


def test_counts_name_every_flip_and_add_up() -> None:
    found = flips([*"aabb"], [*"baaa"], [1, 1, 0, 0], [0, 1, 1, 1])
    assert flip_counts(found) == dict(zip(FLIPS, [1, 2, 0, 1], strict=True))
    assert flip_counts(flips([], [], [], [])) == dict.fromkeys(FLIPS, 0)


@pytest.mark.parametrize(
    ("clean", "now", "before", "after", "message"),
    [
        (["a"], ["a", "b"], [1], [1], "1 clean and 2 disturbed values"),
        (["a"], ["a"], [1, 0], [1], "2 and 1 rights"),
        (["a", "b"], ["a", "b"], [1, math.nan], [1, 1], "answer 1 is right by nan"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    clean: list[str], now: list[str], before: list[float], after: list[float], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        flips(clean, now, before, after)
