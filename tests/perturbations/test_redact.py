"""Words left out: what goes with them and what stays."""

from random import Random

import pytest
from samples import RATES, TEXTS, levels, reached

from noisyhealth.perturbations.engine import replay
from noisyhealth.perturbations.redact import Redact
from noisyhealth.records import Edit, Word
from noisyhealth.text.words import spans


def without(text: str, gone: list[str], mask: str = "") -> str:
    """Return the text with each word in `gone` redacted."""
    words = [Word(s.text, s.start, "NOUN", True, False) for s in spans(text)]
    assert set(gone) <= {w.text for w in words}
    changes = [(i, Redact(mask)(w, text, Random(0))) for i, w in enumerate(words) if w.text in gone]
    return replay(text, [Edit(c.start, c.before, c.after, c.op, "NOUN", False, i) for i, c in changes])


@pytest.mark.parametrize(
    ("text", "gone", "after"),
    [
        ("mild chest pain", ["chest"], "mild pain"),  # the double space goes
        ("mild chest pain today", ["chest", "pain"], "mild today"),  # two neighbours
        ("a b c d e", ["b", "c", "d"], "a e"),
        ("mild chest pain", ["mild"], "chest pain"),  # the start of the text
        ("mild chest pain", ["mild", "chest"], "pain"),
        ("mild chest pain", ["pain"], "mild chest "),  # the end: nothing is left double
        ("mild chest pain", ["chest", "pain"], "mild "),
        ("mild chest pain", ["mild", "chest", "pain"], ""),
        ("pain", ["pain"], ""),
        ("no pain, no fever.", ["pain"], "no , no fever."),  # punctuation stays
        ("no pain, no fever.", ["fever"], "no pain, no ."),
        ("felt (very) sick", ["very"], "felt () sick"),
        ("felt (very sick)", ["very"], "felt ( sick)"),
        ("“Good” news", ["Good"], "“” news"),
        ("S:\tslept well\nO: fine", ["slept"], "S:\twell\nO: fine"),  # after a tab
        ("S: fine\nslept well", ["slept"], "S: fine\nwell"),  # after a line break
        ("S: fine\r\nslept well", ["slept"], "S: fine\r\nwell"),
        ("ends here\nnext", ["here"], "ends \nnext"),  # line breaks never go
        ("one\ttwo\tthree", ["two"], "one\t\tthree"),
        ("two  spaces  before", ["spaces"], "two  before"),  # the two before it stay
        ("no\u00a0break\u00a0space", ["break"], "no\u00a0space"),
        ("pain😩 again", ["pain"], "😩 again"),
        ("so 😩 tired now", ["tired"], "so 😩 now"),
    ],
)
def test_a_redacted_word_goes_with_the_space_that_would_be_left_double(text: str, gone: list[str], after: str) -> None:
    assert without(text, gone) == after


@pytest.mark.parametrize(
    ("text", "gone", "after"),
    [
        ("mild chest pain", ["chest"], "mild [X] pain"),
        ("mild chest pain", ["mild", "pain"], "[X] chest [X]"),
        ("no pain, no fever.", ["pain", "fever"], "no [X], no [X]."),
    ],
)
def test_a_mask_takes_the_place_of_the_word_alone(text: str, gone: list[str], after: str) -> None:
    assert without(text, gone, "[X]") == after


@pytest.mark.parametrize(("mask", "op"), [("", "remove"), ("___", "mask")])
def test_the_operation_says_whether_a_mask_was_left(mask: str, op: str) -> None:
    assert Redact(mask)(Word("pain", 0, "NOUN", True, False), "pain", Random(0)).op == op


@pytest.mark.parametrize("word", ["I", "頭痛", "Señora", "x", "50-year-old"])
def test_every_word_can_be_redacted(word: str) -> None:
    change = Redact()(Word(word, 0, "NOUN", True, False), f"{word} left", Random(0))
    assert (change.start, change.before, change.after) == (0, f"{word} ", "")


@pytest.mark.parametrize("mask", ["", "[X]"])
@pytest.mark.parametrize("name", TEXTS)
def test_the_words_that_are_left_are_neither_merged_nor_split(name: str, mask: str) -> None:
    text = TEXTS[name]
    every = [s.text for s in spans(text)]
    for made in levels(text, RATES, change=Redact(mask)).values():
        gone = {edit.word for edit in reached(made).edits}
        left = ["X" if i in gone else word for i, word in enumerate(every) if mask or i not in gone]
        assert [s.text for s in spans(reached(made).text)] == left
