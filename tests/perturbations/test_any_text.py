"""Any text at all: what holds of a disturbance whatever it is given."""

import re
from bisect import bisect_left
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CHANGES, OWN, RATES, at, levels, osa, possible, reached, words

from noisyhealth.perturbations.engine import Key, OutOfReach, Unit, quota, replay, total
from noisyhealth.records import Variant
from noisyhealth.text.words import spans

_PIECES = """
    pain Heel, DISEASE; weak. I'm (COPD) mRNA 2.5 mg 8:30 120/80 @nurse #tag b.i.d. https://a.org/b x@y.org yes!I its
    cafe\u0301 naïve Straße İstanbul ﬁnger боль какао καρδιά 頭痛 कमी 😩 👩‍⚕️ :D &quot; &lt;3 … — o'clock it's
"""
PIECES = st.sampled_from(_PIECES.split())
BLANKS = st.sampled_from([" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2028", ""])
WRITTEN = st.lists(st.tuples(st.one_of(PIECES, st.text(max_size=6)), BLANKS).map("".join), max_size=25).map("".join)
TEXT = st.one_of(st.text(max_size=120), WRITTEN)
HOW = st.sampled_from(sorted(CHANGES))
UNIT = st.sampled_from(Unit)
SETTINGS = settings(max_examples=120, deadline=None, derandomize=True)


@SETTINGS
@given(TEXT, HOW, UNIT)
def test_any_text_is_the_same_at_rate_zero(text: str, how: str, unit: Unit) -> None:
    variant = reached(at(text, 0.0, change=CHANGES[how], unit=unit))
    assert (variant.text, variant.edits, variant.dose.edit_distance) == (text, (), 0)


@SETTINGS
@given(TEXT, HOW, st.floats(0.01, 1.0), st.integers(), st.sampled_from([Unit.WORDS, Unit.VALID_WORDS]))
def test_any_text_is_disturbed_exactly_as_asked_or_not_at_all(
    text: str, how: str, rate: float, seed: int, unit: Unit
) -> None:
    key = Key(seed, "qa", "1", how)
    variant = at(text, rate, change=CHANGES[how], key=key, unit=unit)
    wanted = quota(total(text, words(text), unit), rate)
    if isinstance(variant, OutOfReach):
        short = variant is OutOfReach.TOO_SHORT
        assert wanted == 0 if short else wanted > len(possible(text, CHANGES[how], key))
        return
    assert len(variant.edits) == len({e.word for e in variant.edits}) == wanted > 0


@SETTINGS
@given(TEXT, HOW, st.floats(0.01, 0.6), st.integers())
def test_any_text_comes_as_near_to_a_share_of_its_characters_as_whole_words_can(
    text: str, how: str, rate: float, seed: int
) -> None:
    key, wanted, sums = Key(seed, "qa", "1", how), quota(len(text), rate), [0]
    for edit in possible(text, CHANGES[how], key):
        sums.append(sums[-1] + osa(edit.before.lower(), edit.after.lower()))
    variant = at(text, rate, change=CHANGES[how], key=key, unit=Unit.CHARS)
    if isinstance(variant, OutOfReach):
        nothing_is_nearest = wanted == 0 or wanted < sums[min(1, len(sums) - 1)] - wanted
        assert nothing_is_nearest if variant is OutOfReach.TOO_SHORT else sums[-1] < wanted
        return
    assert variant.dose.edit_distance == sums[len(variant.edits)]
    assert abs(variant.dose.edit_distance - wanted) == min(abs(amount - wanted) for amount in sums)


@SETTINGS
@given(TEXT, HOW, st.floats(0.01, 1.0), st.integers(), UNIT)
def test_any_text_is_replayed_by_its_edits_and_drawn_the_same_again(
    text: str, how: str, rate: float, seed: int, unit: Unit
) -> None:
    key = Key(seed, "qa", "1", how)
    variant = at(text, rate, change=CHANGES[how], key=key, unit=unit)
    assert variant == at(text, rate, change=CHANGES[how], key=key, unit=unit)
    if isinstance(variant, Variant):
        assert variant.text == replay(text, variant.edits)
        assert all(edit.before != edit.after for edit in variant.edits)


@SETTINGS
@given(TEXT, HOW, st.integers(), UNIT)
def test_the_levels_of_any_text_nest(text: str, how: str, seed: int, unit: Unit) -> None:
    made = levels(text, RATES, change=CHANGES[how], key=Key(seed, "qa", "1", how), unit=unit)
    reached_ones = [set(v.edits) for v in made.values() if isinstance(v, Variant)]
    assert all(low <= high for low, high in pairwise(reached_ones))
    lost = [level for level, v in made.items() if v is OutOfReach.TOO_FEW]
    assert lost == list(RATES)[len(RATES) - len(lost) :]  # what a level cannot reach, no higher can


@SETTINGS
@given(TEXT, HOW, st.integers())
def test_no_edit_touches_what_is_protected(text: str, how: str, seed: int) -> None:
    kept = [(s.start, s.start + len(s.text)) for s in spans(text) if s.protection]
    for edit in possible(text, CHANGES[how], Key(seed, "qa", "1", how)):
        assert not [1 for start, end in kept if start < edit.start + len(edit.before) and edit.start < end]


BEHIND = {"redact": " \u00a0", "plain": ".,;:!?…", "mixture": " \u00a0.,;:!?…"}


@pytest.mark.parametrize("how", sorted(OWN))
@SETTINGS
@given(text=TEXT, seed=st.integers())
def test_an_edit_is_of_its_word_alone_with_what_it_may_take_along_or_moves_it_past_the_next(
    how: str, text: str, seed: int
) -> None:
    found = words(text)
    for edit in possible(text, OWN[how], Key(seed, "qa", "1", how)):
        word = found[edit.word]
        assert edit.start == word.start
        if edit.op in ("move", "order:move"):
            passed = found[edit.word + 1]
            blanks = text[word.end : passed.start]
            assert (edit.before, edit.after) == (word.text + blanks + passed.text, passed.text + blanks + word.text)
            assert blanks.strip(" \u00a0") == ""
            assert passed.valid
            continue
        assert edit.before.removeprefix(word.text).strip(BEHIND.get(how, "")) == ""
        assert not re.search(r"\s", edit.after) or re.search(r"\s", word.text)


@pytest.mark.parametrize("how", ["abbreviation", "homophone", "order", "ocr", "dictation", "plain"])
@SETTINGS
@given(text=WRITTEN, seed=st.integers())
def test_no_edit_makes_words_grow_together_or_apart(how: str, text: str, seed: int) -> None:
    for edit in possible(text, OWN[how], Key(seed, "qa", "1", how)):
        assert len(replay(text, [edit]).split()) == len(text.split())


@SETTINGS
@given(TEXT, st.floats(0.05, 0.3), st.integers())
def test_a_rate_of_order_is_the_share_of_words_that_stand_out_of_order(text: str, rate: float, seed: int) -> None:
    """The fewest words to be taken out and put in elsewhere, so that all stand in order again (Ulam's distance)."""
    variant = at(text, rate, change=OWN["order"], key=Key(seed, "qa", "1", "order"))
    if isinstance(variant, Variant):
        places = list(range(len(words(text))))
        for edit in variant.edits:
            places[edit.word : edit.word + 2] = [edit.word + 1, edit.word]
        tails: list[int] = []  # of rising runs, by their length (Schensted 1961)
        for place in places:
            tails[bisect_left(tails, place) : bisect_left(tails, place) + 1] = [place]
        assert len(places) - len(tails) == quota(len(places), rate)
