"""The dose: how many words change, which ones, and what a text that cannot reach it is given."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest
from samples import CHANGES, KEY, RATES, TEXTS, always, asked, at, counted, levels, only_long, possible, reached, words

from noisyhealth.errors import DataError
from noisyhealth.perturbations.engine import (
    Change,
    Key,
    OutOfReach,
    Perturbation,
    Unit,
    disturb,
    quota,
    ranked,
    replay,
    total,
)
from noisyhealth.perturbations.order import Order
from noisyhealth.perturbations.redact import Redact
from noisyhealth.records import Edit, Variant, Word
from noisyhealth.text.flags import flags


@pytest.mark.parametrize(
    ("n", "rate", "expected"),
    [
        (0, 0.5, 0),
        (0, 0.0, 0),
        (10, 0.0, 0),
        (1, 0.1, 0),
        (4, 0.1, 0),
        (5, 0.1, 1),  # 0.5 goes up, also where Python's round would go to the even 0
        (10, 0.1, 1),
        (14, 0.1, 1),
        (15, 0.1, 2),  # 1.5
        (25, 0.1, 3),  # 2.5: round() gives 2
        (170, 0.1, 17),
        (170, 0.3, 51),
        (170, 0.5, 85),
        (15, 0.3, 5),  # 4.5 on paper, 4.499… in floats
        (5, 0.3, 2),  # 1.5
        (35, 0.3, 11),  # 10.5
        (115, 0.3, 35),  # 34.5
        (1, 0.5, 1),
        (3, 0.5, 2),
        (5, 0.7, 4),  # 3.5
        (3, 1.0, 3),
        (1000, 0.0005, 1),
    ],
)
def test_a_rate_asks_for_a_number_of_words_with_a_half_rounded_up(n: int, rate: float, expected: int) -> None:
    assert quota(n, rate) == expected


def test_a_rate_in_hundredths_asks_for_what_whole_numbers_give() -> None:
    wrong = [(n, r) for n in range(400) for r in range(101) if quota(n, r / 100) != (n * r * 2 + 100) // 200]
    assert wrong == []


def test_a_rate_asks_for_what_fractions_give() -> None:
    rates = ["0.1", "0.15", "0.2", "0.3", "0.5", "0.7", "0.125", "1"]
    wrong = [(n, r) for n in range(3000) for r in rates if quota(n, float(r)) != int(n * Fraction(r) + Fraction(1, 2))]
    assert wrong == []


# The text ab c4 de f. has 4 words, one of them protected, and 11 characters.
@pytest.mark.parametrize(("unit", "expected"), [(Unit.WORDS, 4), (Unit.VALID_WORDS, 3), (Unit.CHARS, 11)])
def test_a_rate_is_a_share_of_its_unit(unit: Unit, expected: int) -> None:
    assert total("ab c4 de f.", words("ab c4 de f."), unit) == expected
    assert total("", [], unit) == 0


@pytest.mark.parametrize("how", ["always", "typo", "redact"])
@pytest.mark.parametrize("level", RATES)
@pytest.mark.parametrize("name", TEXTS)
def test_a_level_changes_exactly_its_share_of_the_words(name: str, level: str, how: str) -> None:
    text = TEXTS[name]
    variant = at(text, RATES[level], change=CHANGES[how])
    if isinstance(variant, OutOfReach):  # only where too few of the words can change
        assert len(possible(text, CHANGES[how])) < asked(counted(text), RATES[level])
        assert (name, how) == ("mixed scripts", "typo")
        return
    assert variant.dose.total_words == counted(text)
    assert len(variant.edits) == len({e.word for e in variant.edits}) == asked(counted(text), RATES[level]) > 0


TEN = "a b c d e f g h i j"


@pytest.mark.parametrize(
    ("unit", "rate", "expected"),
    [
        (Unit.WORDS, 0.1, 1),
        (Unit.VALID_WORDS, 0.1, 1),  # 0.5 of five
        (Unit.WORDS, 0.5, 5),
        (Unit.VALID_WORDS, 0.5, 3),  # 2.5 of five
        (Unit.VALID_WORDS, 1.0, 5),
    ],
)
def test_ten_words_of_which_five_are_valid_change_by_the_unit(unit: Unit, rate: float, expected: int) -> None:
    found = [Word(w.text, w.start, "NOUN", i % 2 == 0, False) for i, w in enumerate(words(TEN))]
    edits = ranked(TEN, found, always, KEY.rng())
    variant = reached(disturb(TEN, found, edits, rates={"it": rate}, unit=unit)["it"])
    assert len(variant.edits) == expected
    assert all(edit.word % 2 == 0 for edit in variant.edits)


@pytest.mark.parametrize(
    ("text", "rate", "unit", "why"),
    [
        ("", 0.5, Unit.WORDS, OutOfReach.TOO_SHORT),
        ("", 0.5, Unit.CHARS, OutOfReach.TOO_SHORT),
        (" \n\t", 0.5, Unit.WORDS, OutOfReach.TOO_SHORT),
        ("😀 … !", 0.5, Unit.WORDS, OutOfReach.TOO_SHORT),
        ("one two three four", 0.1, Unit.WORDS, OutOfReach.TOO_SHORT),  # 0.4 of a word
        ("120/80 37.2 500 mg", 0.5, Unit.WORDS, OutOfReach.TOO_FEW),  # only protected words
        ("120/80 37.2 500 mg", 0.5, Unit.VALID_WORDS, OutOfReach.TOO_SHORT),  # half of no word
        ("pain 1 2 3 4 5 6 7 8 9", 0.3, Unit.WORDS, OutOfReach.TOO_FEW),  # one of three
        ("pain", 0.1, Unit.CHARS, OutOfReach.TOO_SHORT),  # 0.4 of a character
        ("a         ", 0.5, Unit.CHARS, OutOfReach.TOO_FEW),  # three characters of five
    ],
)
def test_a_text_that_cannot_reach_a_level_says_why(text: str, rate: float, unit: Unit, why: OutOfReach) -> None:
    assert at(text, rate, unit=unit) is why


def test_a_text_is_never_given_less_than_its_level_asks_for() -> None:
    text = "the cat sat on a mattress and slept"
    found = levels(text, {"two": 0.3, "three": 0.4, "all": 1.0}, change=only_long)
    assert len(reached(found["two"]).edits) == 2  # "mattress", "slept": 2 of 8 is what 0.3 asks for
    assert found["three"] is found["all"] is OutOfReach.TOO_FEW


def test_levels_come_back_in_the_order_in_which_they_were_asked() -> None:
    found = levels(TEXTS["note"], {"high": 0.5, "none": 0.0, "low": 0.1})
    assert list(found) == ["high", "none", "low"]
    assert len(reached(found["none"]).edits) < len(reached(found["low"]).edits) < len(reached(found["high"]).edits)


# --- characters: whole words, as near as they come


@pytest.mark.parametrize(
    ("amounts", "chars", "expected"),
    [
        ((2, 3, 1), 1, 1),  # nothing and 2 are as near: the half goes up
        ((2, 3, 1), 2, 1),
        ((2, 3, 1), 3, 1),  # 2 is nearer to 3 than 5
        ((2, 3, 1), 4, 2),
        ((2, 3, 1), 5, 2),
        ((2, 3, 1), 6, 3),
        ((2, 3, 1), 7, OutOfReach.TOO_FEW),
        ((2, 2), 3, 2),  # 2 and 4 are as near: the half goes up
        ((5,), 2, OutOfReach.TOO_SHORT),  # nothing is nearer to 2 than 5
        ((5,), 3, 1),
        ((5,), 6, OutOfReach.TOO_FEW),  # 5 would be near, but all edits do not reach it
        ((1, 9), 9, 2),
        ((1, 9), 3, 1),
        ((), 1, OutOfReach.TOO_FEW),
    ],
)
def test_a_share_of_the_characters_is_the_number_of_words_that_comes_nearest(
    amounts: Sequence[int], chars: int, expected: int | OutOfReach
) -> None:
    text = "ab " * 30
    edits = (Edit(3 * i, "ab", "ab" + "x" * size, "op", "X", False, i) for i, size in enumerate(amounts))
    made = disturb(text, words(text), edits, rates={"it": chars / len(text)}, unit=Unit.CHARS)["it"]
    if isinstance(expected, OutOfReach):
        assert made is expected
        return
    variant = reached(made)
    assert [edit.word for edit in variant.edits] == list(range(expected))
    assert variant.dose.edit_distance == sum(amounts[:expected])


@pytest.mark.parametrize("how", ["always", "typo", "redact", "homophone"])
@pytest.mark.parametrize("name", TEXTS)
def test_no_other_number_of_words_comes_nearer_to_a_share_of_the_characters(name: str, how: str) -> None:
    text = TEXTS[name]
    for rate in (0.02, 0.05, 0.1, 0.2):
        variant = at(text, rate, change=CHANGES[how], unit=Unit.CHARS)
        sums = [0]
        for edit in possible(text, CHANGES[how]):
            sums.append(sums[-1] + reached(_alone(text, edit)).dose.edit_distance)
        wanted = asked(len(text), rate)
        off = [abs(amount - wanted) for amount in sums]
        if variant is OutOfReach.TOO_SHORT:
            assert off[0] == wanted < off[1]
        elif variant is OutOfReach.TOO_FEW:
            assert sums[-1] < wanted
        else:
            assert abs(reached(variant).dose.edit_distance - wanted) == min(off)


def _alone(text: str, edit: Edit) -> Variant | OutOfReach:
    return disturb(text, words(text), iter([edit]), rates={"it": 1 / counted(text)})["it"]


# --- nesting


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("name", TEXTS)
def test_a_level_is_a_prefix_of_one_order_so_a_higher_contains_a_lower(name: str, how: str, unit: Unit) -> None:
    order = possible(TEXTS[name], CHANGES[how])
    made = levels(TEXTS[name], {str(r): r / 100 for r in (1, 2, 4, *range(5, 60, 3))}, change=CHANGES[how], unit=unit)
    sets = [set(v.edits) for v in made.values() if isinstance(v, Variant)]
    assert sets
    assert all(edits == set(order[: len(edits)]) for edits in sets)
    assert all(low <= high for low, high in pairwise(sets))


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("name", TEXTS)
def test_a_level_is_the_same_alone_and_among_others(name: str, how: str) -> None:
    among = levels(TEXTS[name], RATES, change=CHANGES[how])
    assert among == {level: at(TEXTS[name], rate, change=CHANGES[how]) for level, rate in RATES.items()}


def test_levels_that_do_not_nest_are_drawn_each_anew() -> None:
    text = TEXTS["abstract"]
    drawn = [reached(at(text, 0.3, key=Key(0, "qa", "1", "p", level))) for level in ("", "low", "mid", "high")]
    assert len({frozenset(e.word for e in v.edits) for v in drawn}) == 4
    assert drawn[1] == at(text, 0.3, key=Key(0, "qa", "1", "p", "low"))


# --- which words, and how many of them are looked at


@dataclass
class Counting:
    """A change that counts its calls."""

    change: Perturbation
    asked: list[str] = field(default_factory=list)

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        self.asked.append(word.text)
        return self.change(word, text, rng)


@pytest.mark.parametrize(
    ("rates", "expected"), [({}, 0), ({"none": 0.0}, 0), ({"low": 0.1}, 1), (RATES, 5), ({"all": 1.0}, 10)]
)
def test_only_what_the_highest_level_takes_is_made(rates: dict[str, float], expected: int) -> None:
    counting = Counting(always)
    levels(TEN, rates, change=counting)
    assert len(counting.asked) == expected


def test_no_change_is_made_before_the_first_edit_is_taken() -> None:
    counting = Counting(always)
    edits = ranked(TEN, words(TEN), counting, KEY.rng())
    assert counting.asked == []
    next(edits)
    assert len(counting.asked) == 1


def test_each_valid_word_is_asked_once_and_no_other() -> None:
    text = "Took 2.5 mg of metformin at 8:30 @nurse"
    counting = Counting(lambda word, text, rng: None)
    assert at(text, 1.0, change=counting) is OutOfReach.TOO_FEW
    assert sorted(counting.asked) == ["Took", "at", "metformin", "of"]


def test_a_change_that_gives_the_word_back_is_no_edit() -> None:
    def gives_back(word: Word, text: str, rng: Random) -> Change:
        return Change(word.start, word.text, word.text if word.text in "abc" else "x", "op")

    assert sorted(edit.before for edit in ranked(TEN, words(TEN), gives_back, KEY.rng())) == list("defghij")
    assert at(TEN, 0.8, change=gives_back) is OutOfReach.TOO_FEW


@pytest.mark.parametrize("place", range(10))
def test_every_word_is_as_likely_the_first_as_another(place: int) -> None:
    first = [next(ranked(TEN, words(TEN), always, Key(seed, "t", "1", "p").rng())).word for seed in range(1000)]
    assert 70 < first.count(place) < 130  # 100 ± 3.2 standard deviations


def test_an_edit_carries_the_tags_of_its_word() -> None:
    found = [Word("chest", 0, "ADJ", True, True), Word("pain", 6, "NOUN", False, True)]
    assert list(ranked("chest pain", found, Redact(), KEY.rng())) == [
        Edit(0, "chest ", "", "remove", "ADJ", True, 0, ())
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("pain", "pian", set()),
        ("know", "no", {"negation"}),  # of the new word
        ("no", "now", {"negation"}),  # of the old
        ("no", "not", {"negation"}),  # of both, named once
        ("denies", "", {"negation"}),
        ("left", "no", {"laterality", "negation"}),
        ("for", "four", {"number"}),
        ("warfarin", "", {"drug"}),
        ("Right", "Write", {"laterality"}),
    ],
)
def test_an_edit_is_flagged_for_what_the_word_was_and_for_what_it_became(
    before: str, after: str, expected: set[str]
) -> None:
    def change(word: Word, text: str, rng: Random) -> Change:
        return Change(word.start, word.text, after, "op")

    (edit,) = ranked(before, [Word(before, 0, "NOUN", True, False)], change, KEY.rng(), flags)
    assert (set(edit.flags), len(edit.flags)) == (expected, len(expected))


def test_without_flags_nothing_is_flagged_and_the_edits_are_the_same() -> None:
    text = "No pain, denies fever"
    plain = list(ranked(text, words(text), Redact(), KEY.rng()))
    flagged = list(ranked(text, words(text), Redact(), KEY.rng(), flags))
    assert [edit.flags for edit in plain] == [()] * 4
    assert plain == [edit._replace(flags=()) for edit in flagged]


@pytest.mark.parametrize(
    "change",
    [
        Change(0, "pain", "one two", "split"),
        Change(0, "pain today", "ache", "two words"),
        Change(5, "today", "now", "another word"),
        Change(0, "pai", "b", "a part"),
        Change(0, "pane", "x", "not what stands there"),
        Change(0, "pain", "pain more", "adds a word"),
        Change(0, "pain today", "today  pain", "moves a blank"),
        Change(0, "pain today", "today pains", "moves and changes"),
        Change(0, "pain tomorrow", "tomorrow pain", "moves past what does not stand there"),
        Change(0, "pain t", "ache", "a part of the next"),
        Change(0, "pain ", "ache", "takes the blank and leaves a word"),
        *(Change(0, "pain", f"pa{unseen}in", "is not seen") for unseen in "\u200b\u3164\ufe0f"),
    ],
    ids=lambda change: change.op,
)
def test_a_perturbation_that_changes_more_than_its_word_is_an_error_that_shows_it(change: Change) -> None:
    found = [Word("pain", 0, "NOUN", True, False), Word("today", 5, "NOUN", False, False)]
    with pytest.raises(DataError, match=r"turned 'pain' at character 0 into .* it must change that word"):
        list(ranked("pain today", found, lambda word, text, rng: change, Random(0)))


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [("pain, today", "pain,", "ache"), ("pain?!  today", "pain?!  ", ""), ("pain) today", "pain)", "pain")],
)
def test_a_change_may_take_the_marks_and_blanks_behind_its_word_along(text: str, before: str, after: str) -> None:
    found = [Word("pain", 0, "NOUN", True, False)]
    (edit,) = ranked(text, found, lambda word, text, rng: Change(0, before, after, "op"), Random(0))
    assert (edit.start, edit.before, edit.after) == (0, before, after)


def moved(text: str, valid: str, *, seed: int = 0) -> list[Edit]:
    """Move every word that can be; `valid` has a + for each word that may be disturbed."""
    found = [Word(w.text, w.start, "NOUN", v == "+", False) for w, v in zip(words(text), valid, strict=True)]
    return list(ranked(text, found, Order(), Random(seed), flags))


@pytest.mark.parametrize("seed", range(20))
def test_a_word_moves_only_past_a_valid_word_that_no_other_edit_touches(seed: int) -> None:
    assert moved("chest pain today", "+-+", seed=seed) == []  # past what may not be disturbed
    assert moved("chest pain, today", "-++", seed=seed) == []  # past a mark
    assert moved("chest pain", "++", seed=seed) == [Edit(0, "chest pain", "pain chest", "move", "NOUN", False, 0)]
    spans = [set(range(e.word, e.word + 2)) for e in moved(TEN, "+" * 10, seed=seed)]
    assert 3 <= len(spans) <= 5
    assert len(set().union(*spans)) == 2 * len(spans)


def test_a_moved_word_is_flagged_for_what_it_is_and_for_what_it_passes() -> None:
    (edit,) = moved("denies left", "++")
    assert (edit.word, edit.flags) == (0, ("negation", "laterality"))


@pytest.mark.parametrize("seed", range(10))
def test_a_word_that_another_moved_past_is_changed_no_more(seed: int) -> None:
    def change(word: Word, text: str, rng: Random) -> Change | None:
        return Order()(word, text, rng) or always(word, text, rng)

    edits = list(ranked("chest pain", words("chest pain"), change, Random(seed)))
    assert [e.op for e in edits] == (["move"] if edits[0].op == "move" else ["always"])
    assert replay("chest pain", edits)
