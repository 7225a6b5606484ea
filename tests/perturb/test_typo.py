"""Typing errors: how much of a word changes, and what of it stays."""

import string
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisyhealth.perturb.engine import Change
from noisyhealth.perturb.typo import Typo
from noisyhealth.records import Word

_WORDS = (
    "a I at Pain ECG swallowed electroencephalography Metformin can't didn't I'm well-being O'Brien McDonald HbA "
    "naïve Señora café aa oooh BP iPhone follow-up breast/ovarian the mississippi"
)
WORDS = _WORDS.split()
SEEDS = range(60)
OPERATIONS = ("insert", "delete", "substitute", "transpose")


def made(word: str, seed: object, typo: Typo | None = None) -> Change:
    change = (typo or Typo())(Word(word, 7, "NOUN", True, False), f"Before {word} after", Random(f"{seed} {word}"))
    assert change is not None
    return change


def only(*operations: str) -> Typo:
    return Typo(mix=dict.fromkeys(operations, 1.0))


def distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the insertions, deletions, substitutions and swaps of neighbours between two words.

    Lowrance and Wagner 1975, doi:10.1145/321879.321880, unrestricted.
    """
    far = len(one) + len(other)
    table = [[far] * (len(other) + 2) for _ in range(len(one) + 2)]
    for i in range(len(one) + 1):
        table[i + 1][1] = i
    for j in range(len(other) + 1):
        table[1][j + 1] = j
    last: dict[str, int] = {}
    for i, a in enumerate(one, 1):
        match = 0
        for j, b in enumerate(other, 1):
            k, m = last.get(b, 0), match
            match = j if a == b else match
            table[i + 1][j + 1] = min(
                table[i][j] + (a != b),
                table[i + 1][j] + 1,
                table[i][j + 1] + 1,
                table[k][m] + (i - k - 1) + 1 + (j - m - 1),
            )
        last[a] = i
    return table[-1][-1]


def bounds(word: str) -> tuple[int, int]:
    letters = sum(char in string.ascii_letters for char in word)
    least = max(1, ceil(letters * Fraction("0.2")))
    return least, max(least, floor(letters * Fraction("0.5")))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("pain", "pain", 0),
        ("pain", "apin", 1),
        ("pain", "pan", 1),
        ("ca", "abc", 2),
        ("", "abc", 3),
        ("heel", "heal", 1),
    ],
)
def test_the_distance_used_here_counts_a_swap_as_one(one: str, other: str, expected: int) -> None:
    assert distance(one, other) == distance(other, one) == expected


@pytest.mark.parametrize("word", WORDS)
def test_a_typo_stands_where_its_word_stood_and_is_another_spelling(word: str) -> None:
    for seed in SEEDS:
        change = made(word, seed)
        assert (change.start, change.before) == (7, word)
        assert change.after not in ("", word)
        assert not any(char.isspace() for char in change.after)


@pytest.mark.parametrize("word", WORDS)
def test_a_fifth_to_a_half_of_the_letters_change_and_at_least_one(word: str) -> None:
    least, most = bounds(word)
    counts = set()
    for seed in SEEDS:
        change = made(word, seed)
        counts.add(len(change.op.split("+")))
        assert 1 <= distance(word.lower(), change.after.lower()) <= len(change.op.split("+"))
    assert counts == set(range(least, most + 1))


@pytest.mark.parametrize(
    ("letters", "expected"),
    [(1, {1}), (2, {1}), (4, {1, 2}), (5, {1, 2}), (6, {2, 3}), (10, {2, 3, 4, 5}), (11, {3, 4, 5})],
)
def test_the_number_of_changed_letters_follows_the_length(letters: int, expected: set[int]) -> None:
    word = string.ascii_lowercase[:letters]
    assert {len(made(word, seed).op.split("+")) for seed in range(200)} == expected


@pytest.mark.parametrize(
    ("word", "seed"), [("NOTE", 16), ("OTTO", 1356), ("COPD", 1988), ("PAIN", 2429), ("Pain", 3930), ("Heel", 5360)]
)
def test_a_word_whose_case_is_put_back_is_still_a_typo(word: str, seed: int) -> None:
    # At these seeds "NOTE" was drawn as "nOTE" (n typed, N lost) and given back as "NOTE".
    assert made(word, seed).after != word


@pytest.mark.parametrize(
    ("word", "keeps"),
    [
        ("pain", str.islower),
        ("can't", str.islower),
        ("ECG", str.isupper),
        ("COPD", str.isupper),
        ("DIDN'T", str.isupper),
        ("Metformin", lambda after: after[0].isupper() and after[1:].islower()),
        ("It", lambda after: after[0].isupper() and after[1:] == after[1:].lower()),
        ("I", lambda after: after[0].isupper() and after[1:] == after[1:].lower()),
    ],
)
def test_a_typo_keeps_the_case_pattern_of_its_word(word: str, keeps: object) -> None:
    assert callable(keeps)
    wrong = [after for seed in SEEDS if not keeps(after := made(word, seed).after)]
    assert wrong == []


@pytest.mark.parametrize("word", ["", "12", "頭痛", "боль", "é", "…", "😀", "α-β", "½"])
def test_a_word_without_a_latin_letter_cannot_change(word: str) -> None:
    assert Typo()(Word(word, 0, "NOUN", True, False), word, Random(0)) is None


@pytest.mark.parametrize(
    ("word", "kept"), [("naïve", "ï"), ("can't", "'"), ("well-being", "-"), ("βblocker", "β"), ("x頭痛", "頭痛")]
)
def test_characters_other_than_latin_letters_stay(word: str, kept: str) -> None:
    for seed in SEEDS:
        counts = Counter(made(word, seed).after)
        assert all(counts[char] == word.count(char) for char in kept)


def test_a_word_of_twin_letters_that_cannot_swap_is_substituted() -> None:
    assert all(made("aaaa", seed, only("transpose")).after not in ("", "aaaa") for seed in SEEDS)


@pytest.mark.parametrize("word", ["swallowed", "Metformin", "ECG", "pain"])
@pytest.mark.parametrize(("operation", "longer"), [("insert", 1), ("delete", -1), ("substitute", 0), ("transpose", 0)])
def test_each_operation_changes_the_length_by_what_it_is(word: str, operation: str, longer: int) -> None:
    for seed in SEEDS:
        change = made(word, seed, only(operation))
        ops = change.op.split("+")
        assert set(ops) == {operation}
        assert len(change.after) - len(word) == longer * len(ops)
        if operation == "substitute":
            changed = [a.lower() != b.lower() for a, b in zip(word, change.after, strict=True)]
            assert sum(changed) == len(ops)
        if operation == "transpose":
            assert Counter(change.after.lower()) == Counter(word.lower())


def test_all_operations_are_used_about_equally_by_default() -> None:
    counts = Counter(op for seed in range(800) for op in made("swallowed", seed).op.split("+"))
    assert set(counts) == set(OPERATIONS)
    assert max(counts.values()) < 1.25 * min(counts.values())


def test_an_operation_of_weight_zero_is_never_used() -> None:
    typo = Typo(mix={"insert": 0.0, "delete": 1.0, "substitute": 3.0, "transpose": 0.0})
    counts = Counter(op for seed in range(400) for op in made("swallowed", seed, typo).op.split("+"))
    assert set(counts) == {"delete", "substitute"}
    assert 2.4 < counts["substitute"] / counts["delete"] < 3.7


def test_only_the_given_letters_are_typed() -> None:
    typo = Typo(mix={"insert": 1.0, "substitute": 1.0}, letters="qz")
    typed = {char for seed in SEEDS for char in made("pain", seed, typo).after} - set("pain")
    assert typed == {"q", "z"}


@pytest.mark.parametrize(("low", "high", "expected"), [(0.0, 0.0, 1), (1.0, 1.0, 9), (0.5, 0.5, 4), (0.9, 0.1, 9)])
def test_the_shares_are_settings(low: float, high: float, expected: int) -> None:
    typo = Typo(low_share=low, high_share=high, mix={"substitute": 1.0})
    found = len(made("swallowed", 1, typo).op.split("+"))
    assert found == (expected if (low, high) != (0.5, 0.5) else 5)  # half of nine letters: at least 4.5


def test_a_word_is_never_emptied_even_when_every_letter_is_struck() -> None:
    typo = Typo(low_share=1.0, high_share=1.0, mix={"delete": 1.0})
    assert typo(Word("ab", 0, "NOUN", True, False), "ab", Random(0)) is None
    assert all(made("I", seed, Typo()).after for seed in range(300))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(min_size=1, max_size=20), st.integers())
def test_any_word_changes_within_its_bounds_or_not_at_all(word: str, seed: int) -> None:
    change = Typo()(Word(word, 0, "NOUN", True, False), word, Random(seed))
    if change is None:
        assert not any(char in string.ascii_letters for char in word)
        return
    least, most = bounds(word)
    assert change.after not in ("", word)
    assert least <= len(change.op.split("+")) <= most
    assert change == Typo()(Word(word, 0, "NOUN", True, False), word, Random(seed))
