"""Every byte outside the edits stays, and the edits alone give the text again."""

import unicodedata
from collections.abc import Sequence

import pytest
from samples import CHANGES, RATES, TEXTS, at, levels, reached

from noisyhealth.perturbations.engine import replay
from noisyhealth.perturbations.redact import Redact
from noisyhealth.records import Edit, Variant


def untouched(text: str, edits: Sequence[Edit]) -> list[str]:
    """List the pieces of the original between the edits."""
    bounds = [0, *(x for e in edits for x in (e.start, e.start + len(e.before))), len(text)]
    return [text[a:b] for a, b in zip(bounds[::2], bounds[1::2], strict=True)]


@pytest.mark.parametrize("text", ["", "x", *TEXTS.values()])
@pytest.mark.parametrize("how", CHANGES)
def test_rate_zero_gives_the_same_bytes_and_no_edit(text: str, how: str) -> None:
    variant = reached(at(text, 0.0, change=CHANGES[how]))
    assert variant.text.encode() == text.encode()
    assert variant.edits == ()


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("name", TEXTS)
def test_every_byte_outside_the_edits_stays(name: str, how: str) -> None:
    text = TEXTS[name]
    variants = [
        v for v in levels(text, {"least": 0.05, **RATES}, change=CHANGES[how]).values() if isinstance(v, Variant)
    ]
    assert variants
    for variant in variants:
        assert [e.start for e in variant.edits] == sorted(e.start for e in variant.edits)
        pieces = untouched(text, variant.edits)
        rebuilt = [x for piece, e in zip(pieces, variant.edits, strict=False) for x in (piece, e.after)]
        assert variant.text.encode() == "".join([*rebuilt, pieces[-1]]).encode()
        assert all(text[e.start : e.start + len(e.before)] == e.before for e in variant.edits)


@pytest.mark.parametrize("kept", ["\r\n\r\n", ":\t", "\n\n  ", " 120/80, ", " 37.2 °C; ", "  ", " 1 g q8h,\t", ".  \n"])
@pytest.mark.parametrize("how", ["always", "typo"])
def test_newlines_tabs_doses_and_double_spaces_of_a_note_survive(how: str, kept: str) -> None:
    assert kept in reached(at(TEXTS["note"], 0.5, change=CHANGES[how])).text


def test_an_accent_that_stands_for_itself_goes_with_its_letter() -> None:
    text = unicodedata.normalize("NFD", "le café fermé")
    assert reached(at(text, 1.0, change=Redact())).text == ""


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("level", RATES)
def test_replaying_the_edits_on_the_original_gives_the_variant(level: str, how: str) -> None:
    for text in TEXTS.values():
        variant = at(text, RATES[level], change=CHANGES[how])
        if isinstance(variant, Variant):
            assert replay(text, variant.edits) == replay(text, variant.edits[::-1]) == variant.text


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(0, "hell", "heal", "op", "NOUN", False, 0)],
        [Edit(1, "heel", "heal", "op", "NOUN", False, 0)],
        [Edit(9, "x", "y", "op", "NOUN", False, 0)],
        [Edit(0, "heel", "a", "op", "NOUN", False, 0), Edit(3, "l", "b", "op", "NOUN", False, 1)],
        [Edit(0, "heel", "a", "op", "NOUN", False, 0), Edit(0, "heel", "b", "op", "NOUN", False, 0)],
    ],
)
def test_an_edit_that_does_not_fit_the_text_is_an_error(edits: list[Edit]) -> None:
    with pytest.raises(ValueError, match="does not fit the text at character"):
        replay("heel,", edits)
