"""What a disturbance really was: the dose that goes with each variant, counted by hand."""

import pytest
from rapidfuzz.distance import OSA
from samples import CHANGES, RATES, TEXTS, levels, osa

from noisyhealth.perturbations.engine import Unit, distance, disturb
from noisyhealth.records import Dose, Edit, Variant, Word

TEXT = "mild chest pain 4/10"  # 20 characters, 4 words, 3 valid, 2 medical
WORDS = [
    Word("mild", 0, "ADJ", True, False),
    Word("chest", 5, "NOUN", True, True),
    Word("pain", 11, "NOUN", True, True),
    Word("4/10", 16, "NUM", False, False),
]
MILD = Edit(0, "mild", "midl", "transpose", "ADJ", False, 0)  # 1
CHEST = Edit(5, "chest ", "", "remove", "NOUN", True, 1)  # 6: the blank goes too
PAIN = Edit(11, "pain", "pane", "near", "NOUN", True, 2)  # 2


@pytest.mark.parametrize(
    ("edits", "text", "expected"),
    [
        ((), "mild chest pain 4/10", Dose(0, 0, 0, 0, 0, 4, 3)),
        ((MILD,), "midl chest pain 4/10", Dose(1 / 4, 1 / 3, 1 / 20, 1, 0.0, 4, 3)),
        ((CHEST,), "mild pain 4/10", Dose(1 / 4, 1 / 3, 6 / 20, 6, 1.0, 4, 3)),
        ((PAIN, MILD), "midl chest pane 4/10", Dose(2 / 4, 2 / 3, 3 / 20, 3, 1 / 2, 4, 3)),
        ((CHEST, PAIN, MILD), "midl pane 4/10", Dose(3 / 4, 1.0, 9 / 20, 9, 2 / 3, 4, 3)),
    ],
)
def test_a_dose_says_what_was_done(edits: tuple[Edit, ...], text: str, expected: Dose) -> None:
    made = disturb(TEXT, WORDS, iter(edits), rates={"it": len(edits) / 4}, example="7")["it"]
    assert made == Variant("7", text, tuple(sorted(edits)), expected)


@pytest.mark.parametrize("unit", Unit)
def test_the_dose_of_the_same_edits_is_the_same_in_every_unit(unit: Unit) -> None:
    rate = {Unit.WORDS: 1 / 4, Unit.VALID_WORDS: 1 / 3, Unit.CHARS: 1 / 20}[unit]
    made = disturb(TEXT, WORDS, iter([MILD]), rates={"it": rate}, unit=unit)["it"]
    assert isinstance(made, Variant)
    assert made.dose == Dose(1 / 4, 1 / 3, 1 / 20, 1, 0.0, 4, 3)


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("", [], Dose()),
        ("…", [], Dose()),
        ("500", [Word("500", 0, "NUM", False, False)], Dose(total_words=1)),
    ],
)
def test_a_text_without_words_has_a_dose_of_zero(text: str, found: list[Word], expected: Dose) -> None:
    assert disturb(text, found, iter(()), rates={"it": 0.0})["it"] == Variant("", text, (), expected)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("pain", "pain", 0),
        ("pain", "apin", 1),
        ("pain", "pan", 1),
        ("ca", "abc", 3),  # 2 if a swapped pair might be changed again
        ("", "abc", 3),
        ("abc", "", 3),
        ("heel", "heal", 1),
        ("disease", "decease", 2),
        ("kitten", "sitting", 3),
    ],
)
def test_an_edit_distance_counts_a_swap_as_one(one: str, other: str, expected: int) -> None:
    assert distance(Edit(0, one, other, "op", "X", False, 0)) == expected
    assert distance(Edit(0, one.upper(), other, "op", "X", False, 0)) == expected  # case aside
    assert osa(one, other) == osa(other, one) == OSA.distance(one, other) == expected


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("name", TEXTS)
def test_every_dose_is_what_its_edits_amount_to_by_a_second_source(name: str, how: str) -> None:
    for variant in levels(TEXTS[name], RATES, change=CHANGES[how]).values():
        if isinstance(variant, Variant):
            far = sum(osa(e.before.lower(), e.after.lower()) for e in variant.edits)
            dose = variant.dose
            assert dose.edit_distance == far
            assert dose.characters * len(TEXTS[name]) == pytest.approx(far)
            assert dose.words * dose.total_words == pytest.approx(len(variant.edits))
            assert dose.valid_words * dose.total_valid_words == pytest.approx(len(variant.edits))
