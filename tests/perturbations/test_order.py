"""Word order: what moves, and what keeps its place."""

from random import Random

import pytest
from samples import at, reached, words

from noisyhealth.perturbations.engine import Change, disturb, quota, ranked, replay
from noisyhealth.perturbations.order import Order
from noisyhealth.records import Word


def change(text: str, start: int = 0) -> Change | None:
    found = next(word for word in words(text) if word.start == start)
    return Order()(found, text, Random(0))


@pytest.mark.parametrize(
    ("text", "start", "before", "after"),
    [
        ("severe chest pain", 0, "severe chest", "chest severe"),
        ("severe chest pain", 7, "chest pain", "pain chest"),
        ("Severe pain.", 0, "Severe pain", "pain Severe"),  # the spelling stays, and the stop its place
        ("chest  pain", 0, "chest  pain", "pain  chest"),
        ("chest\u00a0pain", 0, "chest\u00a0pain", "pain\u00a0chest"),
        ("no follow-up planned)", 3, "follow-up planned", "planned follow-up"),
        (
            "nai\u0308ve cafe\u0301.",
            0,
            "nai\u0308ve cafe\u0301",
            "cafe\u0301 nai\u0308ve",
        ),  # an accent goes with its letter
    ],
)
def test_a_word_moves_past_the_next_and_all_else_keeps_its_place(
    text: str, start: int, before: str, after: str
) -> None:
    assert change(text, start) == Change(start, before, after, "move")


@pytest.mark.parametrize(
    "text", ["pain", "pain.", "pain, today", "pain\ntoday", "pain\ttoday", "pain (today)", "pain 😩"]
)
def test_no_word_moves_past_a_mark_a_line_or_the_end(text: str) -> None:
    assert change(text) is None


@pytest.mark.parametrize("text", ["very very", "10 10"])
def test_two_of_the_same_word_cannot_change_places(text: str) -> None:
    assert change(text) is None
    assert list(ranked(text, words(text), Order(), Random(0))) == []


def test_a_moved_word_counts_as_one_word_that_is_disturbed() -> None:
    text = "severe chest pain since early morning without clear cause"
    variant = reached(at(text, 0.2, change=Order()))
    assert len(variant.edits) == quota(9, 0.2) == 2
    assert variant.dose.words == pytest.approx(2 / 9)
    assert sorted(variant.text.split()) == sorted(text.split())


def test_a_number_and_its_unit_stay_together() -> None:
    text = "gave aspirin 300 mg daily"
    for seed in range(20):
        edits = list(ranked(text, words(text), Order(), Random(seed)))
        assert replay(text, edits) == "aspirin gave 300 mg daily"


def test_a_dose_of_one_edit_is_one_moved_word_also_where_it_passes_a_medical_one() -> None:
    found = [Word("mild", 0, "ADJ", True, False), Word("asthma", 5, "NOUN", True, True)]
    edits = ranked("mild asthma", found, Order(), Random(1))
    variant = reached(disturb("mild asthma", found, edits, rates={"it": 0.5})["it"])
    assert [(e.word, e.medical) for e in variant.edits] == [(0, False)]
    assert variant.dose.medical == 0.0
