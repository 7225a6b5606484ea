"""Typing errors: how much of a word changes, and what of it stays."""

import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA
from samples import osa
from scipy.stats import chisquare

from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import Change
from noisyhealth.perturbations.typo import Typo
from noisyhealth.records import Word

_LATIN = """
    a I at Pain ECG swallowed electroencephalography Metformin can't didn't I'm well-being O'Brien McDonald mRNA pH HbA
    naïve Señora café ÉCOLE aa oooh BP iPhone follow-up breast/ovarian the mississippi B12 HbA1c x4y Straße ﬁnger
    STRAßE İstanbul
"""
_OTHERS = "боль какао БОЛЬ Головная καρδιά ΚΑΡΔΙΑ βblocker x頭痛 боль-pain αβγ-interferon"
LATIN, OTHERS = _LATIN.split(), _OTHERS.split()
MARKED = [unicodedata.normalize("NFD", word) for word in ("café", "naïve", "Señora", "Nguyễn", "й́огурт")]
WORDS = [*LATIN, *OTHERS, *MARKED]
SEEDS = range(60)
OPERATIONS = ("insert", "delete", "substitute", "transpose")
KEYBOARD = yaml.safe_load((Path(__file__).parents[2] / "conf/letters/qwerty.yaml").read_text(encoding="utf-8"))
NEAR: dict[str, str] = KEYBOARD["neighbours"]
GERMAN = string.ascii_lowercase + "äöüß"
TYPOS = {
    "alphabet": Typo(),
    "qwerty": Typo(**KEYBOARD),
    "german": Typo(letters=GERMAN),
    **{operation: Typo(mix={operation: 1.0}) for operation in OPERATIONS},
}
ONE = {"low_share": 0.01, "high_share": 0.01}  # one letter of any word


def tried(word: str, seed: object, typo: Typo | None = None) -> Change | None:
    return (typo or Typo())(Word(word, 7, "NOUN", True, False), f"Before {word} after", Random(f"{seed} {word}"))


def made(word: str, seed: object, typo: Typo | None = None) -> Change:
    change = tried(word, seed, typo)
    assert change is not None
    return change


def plain(word: str) -> str:
    """Return the word without its case; a letter whose other case is two letters stays."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in word)


def bounds(word: str) -> tuple[int, int]:
    """Count a fifth and a half of all letters of a word, at least one."""
    letters = sum(map(str.isalpha, word))
    least = max(1, ceil(letters * Fraction("0.2")))
    return least, max(least, floor(letters * Fraction("0.5")))


def off(word: str, change: Change) -> str:
    """Say what is wrong with the amount of change: "" where nothing is."""
    ops = change.op.split("+")
    one, other = plain(word), plain(change.after)
    far, second = osa(one, other), OSA.distance(one, other)
    least, most = bounds(word)
    return "" if far == second == len(ops) and least <= far <= most else f"{word} {change} {far} of {least} to {most}"


# --- how much changes


@pytest.mark.parametrize("word", WORDS)
def test_a_typo_stands_where_its_word_stood_and_is_another_spelling(word: str) -> None:
    for seed in SEEDS:
        change = made(word, seed)
        assert (change.start, change.before) == (7, word)
        assert change.after not in ("", word)
        assert not any(char.isspace() for char in change.after)


@pytest.mark.parametrize("how", TYPOS)
@pytest.mark.parametrize("word", WORDS)
def test_the_edit_distance_is_the_number_of_operations_from_a_fifth_to_a_half_of_the_letters(
    word: str, how: str
) -> None:
    changes = [tried(word, seed, TYPOS[how]) for seed in SEEDS]
    assert [wrong for change in changes if change and (wrong := off(word, change))] == []


@pytest.mark.parametrize("word", [word for word in LATIN if "ß" not in word])
def test_every_number_of_letters_from_a_fifth_to_a_half_occurs(word: str) -> None:
    least, most = bounds(word)
    assert {len(made(word, seed).op.split("+")) for seed in range(150)} == set(range(least, most + 1))


@pytest.mark.parametrize(
    ("letters", "expected"),
    [(1, {1}), (2, {1}), (4, {1, 2}), (5, {1, 2}), (6, {2, 3}), (10, {2, 3, 4, 5}), (11, {3, 4, 5})],
)
def test_the_number_of_changed_letters_follows_the_length(letters: int, expected: set[int]) -> None:
    word = string.ascii_lowercase[:letters]
    assert {len(made(word, seed).op.split("+")) for seed in range(200)} == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0.01, 0.01, {1}), (1.0, 1.0, {9}), (0.5, 0.5, {5}), (0.4, 0.6, {4, 5})]
)
def test_the_shares_are_settings(low: float, high: float, expected: set[int]) -> None:
    typo = Typo(low_share=low, high_share=high, mix={"substitute": 1.0})  # half of nine letters: at least 4.5
    assert {len(made("swallowed", seed, typo).op.split("+")) for seed in SEEDS} == expected


@pytest.mark.parametrize("word", ["NOTE", "OTTO", "COPD", "PAIN", "Pain", "Heel", "Anna", "aa", "oooo"])
def test_a_word_whose_case_is_put_back_is_still_a_typo(word: str) -> None:
    # "NOTE" was once drawn as "nOTE" (n typed, N lost) and given back as "NOTE".
    assert [wrong for seed in range(3000) if (wrong := off(word, made(word, seed)))] == []


@pytest.mark.parametrize("word", ["iPhone", "McDonald", "mRNA", "HbA", "eGFR", "oO", "AaAaAa", "McCormick"])
def test_a_letter_in_its_other_case_does_not_count_as_changed(word: str) -> None:
    own = Typo(letters="".join(sorted({*word.lower(), "x"})))  # so that a letter often meets itself
    assert [wrong for seed in range(1500) if (change := tried(word, seed, own)) and (wrong := off(word, change))] == []


# --- case


def lower(word: str) -> bool:
    return word == word.lower()


def upper(word: str) -> bool:
    return word == word.upper()


def capitalised(word: str) -> bool:
    """Tell whether the first letter is the only capital; what has lost all its letters had one."""
    letters = "".join(filter(str.isalpha, word))
    return letters[:1] == letters[:1].upper() and lower(letters[1:])


def mixed(word: str) -> bool:
    return not (lower(word) or upper(word) or capitalised(word))


CASES: dict[Callable[[str], bool], str] = {
    lower: "a pain can't well-being naïve боль straße ﬁnger αβγ x4y",
    upper: "BP ECG COPD DIDN'T ÉCOLE БОЛЬ ΚΑΡΔΙΑ HIV-1 STRAßE",
    capitalised: "I I'm It Metformin Señora Follow-up Élan Боль Καρδιά B12 Straße",
    mixed: "mRNA iPhone McDonald pH HbA O'Brien eGFR HbA1c Anti-TNF",
}


@pytest.mark.parametrize("how", ["alphabet", "qwerty", "german", "transpose", "insert"])
@pytest.mark.parametrize(("keeps", "word"), [(keeps, word) for keeps, words in CASES.items() for word in words.split()])
def test_a_typo_keeps_the_case_pattern_of_its_word(keeps: Callable[[str], bool], word: str, how: str) -> None:
    assert keeps(word) or word == "STRAßE"
    changes = [tried(word, seed, TYPOS[how]) for seed in range(150)]
    # "ß" has no capital of its own: it is of either case.
    assert [c.after for c in changes if c and not (keeps(c.after) or keeps(c.after.replace("ß", "")))] == []


@pytest.mark.parametrize("word", ["PAIN", "Pain", "ECG", "MÜDE", "Straße"])
def test_a_typed_letter_whose_capital_is_two_letters_is_one_change(word: str) -> None:
    typo = Typo(letters="ßſŉıæ", mix={"insert": 1.0, "substitute": 1.0})
    assert [wrong for seed in range(200) if (change := tried(word, seed, typo)) and (wrong := off(word, change))] == []


# --- what stays


@pytest.mark.parametrize(
    "word", ["", "12", "頭痛", "頭", "次の日", "発熱", "б", "\u0301", "…", "😀", "👩‍⚕️", "α-β", "½", "7", "'"]
)
def test_a_word_without_a_letter_to_type_or_to_swap_cannot_change(word: str) -> None:
    assert {tried(word, seed) for seed in SEEDS} == {None}


@pytest.mark.parametrize("word", ["a", "I", "é", "É", "x", "ß", "ø"])
def test_a_word_of_one_latin_letter_changes_by_one(word: str) -> None:
    assert [wrong for seed in SEEDS if (wrong := off(word, made(word, seed)))] == []


@pytest.mark.parametrize("how", TYPOS)
@pytest.mark.parametrize("word", ["боль", "какао", "папа", "абав", "БОЛЬ", "Головная", "καρδιά", "ΚΑΡΔΙΑ", "θάλασσα"])
def test_letters_of_another_script_are_only_transposed(word: str, how: str) -> None:
    changes = [made(word, seed, TYPOS[how]) for seed in SEEDS]
    assert [c.after for c in changes if Counter(plain(c.after)) != Counter(plain(word))] == []
    assert {op for c in changes for op in c.op.split("+")} == {"transpose"}


@pytest.mark.parametrize(
    ("word", "script"), [("боль-pain", "CYRILLIC"), ("αβγ-interferon", "GREEK"), ("βblocker", "GREEK"), ("aбвc", "CYR")]
)
def test_letters_move_within_their_script_alone(word: str, script: str) -> None:
    def foreign(text: str) -> list[str]:
        return [c for c in text if unicodedata.name(c).startswith(script)]

    for seed in range(200):
        after = made(word, seed).after
        assert Counter(foreign(after)) == Counter(foreign(word))
        blocks = "".join("f" if c in foreign(after) else "." for c in after).strip(".")
        assert set(blocks) == {"f"}, after


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("can't", "'"),
        ("can’t", "’"),
        ("well-being", "-"),
        ("B12", "12"),
        ("x4y", "4"),
        ("βblocker", "β"),
        ("x頭痛", "頭痛"),
        ("HbA1c", "1"),
        ("breast/ovarian", "/"),
    ],
)
def test_characters_that_are_no_latin_letters_stay(word: str, kept: str) -> None:
    for seed in SEEDS:
        assert [c for c in made(word, seed).after if c in kept] == list(kept)


def clusters(word: str) -> Iterator[str]:
    """Yield each character with the marks on it."""
    at = 0
    for end in range(1, len(word) + 1):
        if end == len(word) or not unicodedata.category(word[end]).startswith("M"):
            yield word[at:end]
            at = end


@pytest.mark.parametrize("word", [*MARKED, "e\u0301a", "ae\u0301", "हिन्दी", "कमी", "a\u20ddbc", "x\ufe0fyz"])
def test_a_letter_with_a_mark_of_its_own_stays_with_its_mark(word: str) -> None:
    marked = [cluster for cluster in clusters(word.lower()) if len(cluster) > 1]
    changes = [change for seed in range(200) if (change := tried(word, seed))]
    assert [c.after for c in changes if [x for x in clusters(c.after.lower()) if len(x) > 1] != marked] == []


def test_a_composed_letter_is_a_letter_like_another() -> None:
    changes = {made("café", seed, Typo(mix={"delete": 1.0}, **ONE)).after for seed in SEEDS}
    assert changes == {"afé", "cfé", "caé", "caf"}


# --- the operations


def test_a_word_of_twin_letters_that_cannot_swap_is_substituted() -> None:
    assert {made("aaaa", seed, TYPOS["transpose"]).op for seed in SEEDS} <= {
        "substitute",
        "substitute+substitute",
        "substitute+transpose",
        "transpose+substitute",
    }


@pytest.mark.parametrize("word", ["swallowed", "Metformin", "ECG", "pain"])
@pytest.mark.parametrize(("operation", "longer"), [("insert", 1), ("delete", -1), ("substitute", 0), ("transpose", 0)])
def test_each_operation_changes_the_length_by_what_it_is(word: str, operation: str, longer: int) -> None:
    for seed in SEEDS:
        change = made(word, seed, TYPOS[operation])
        ops = change.op.split("+")
        assert set(ops) <= {operation, "substitute"} if operation == "transpose" else {operation}
        assert len(change.after) - len(word) == longer * len(ops)
        if operation == "substitute":
            changed = [a.lower() != b.lower() for a, b in zip(word, change.after, strict=True)]
            assert sum(changed) == len(ops)
        if set(ops) == {"transpose"}:
            assert Counter(change.after.lower()) == Counter(word.lower())


def test_all_operations_are_used_about_equally_by_default() -> None:
    counts = Counter(op for seed in range(800) for op in made("swallowed", seed).op.split("+"))
    assert set(counts) == set(OPERATIONS)
    assert max(counts.values()) < 1.25 * min(counts.values())


@pytest.mark.parametrize("mix", [(1, 1, 1, 1), (1, 2, 3, 4), (0, 1, 3, 0), (0.7, 0.1, 0.1, 0.1), (0, 0, 0, 5)])
def test_operations_come_in_the_proportion_of_their_weights(mix: tuple[float, ...]) -> None:
    weights = dict(zip(OPERATIONS, mix, strict=True))
    typo = Typo(mix=weights, **ONE)
    counts = Counter(made("background", seed, typo).op for seed in range(1500))
    used = {operation: weight for operation, weight in weights.items() if weight}
    assert set(counts) == set(used)
    expected = [1500 * weight / sum(mix) for weight in used.values()]
    assert len(used) == 1 or chisquare([counts[operation] for operation in used], expected).pvalue > 0.001


def test_every_letter_of_a_word_is_as_likely_to_change() -> None:
    typo = Typo(mix={"substitute": 1.0}, **ONE)
    afters = [made("background", seed, typo).after for seed in range(1500)]
    places = Counter(next(i for i in range(10) if after[i] != "background"[i]) for after in afters)
    assert chisquare([places[i] for i in range(10)]).pvalue > 0.001


def test_a_word_is_never_emptied_even_when_every_letter_is_struck() -> None:
    typo = Typo(low_share=1.0, high_share=1.0, mix={"delete": 1.0})
    assert tried("ab", 0, typo) is None
    assert all(made("I", seed).after for seed in range(300))


# --- what is typed


@pytest.mark.parametrize("letters", ["qz", "äöüß", GERMAN])
@pytest.mark.parametrize("word", ["pain", "müde"])
def test_only_the_given_letters_are_typed(word: str, letters: str) -> None:
    typo = Typo(mix={"insert": 1.0, "substitute": 1.0}, letters=letters)
    typed = {char for seed in range(600) for char in made(word, seed, typo).after} - set(word)
    assert typed == set(letters) - set(word)


def test_the_keyboard_has_every_letter_and_what_is_beside_one_is_beside_the_other() -> None:
    assert set(NEAR) == set(string.ascii_lowercase) == set(KEYBOARD["letters"])
    assert {(a, b) for a, near in NEAR.items() for b in near} == {(b, a) for a, near in NEAR.items() for b in near}
    assert all(a not in near and len(set(near)) == len(near) for a, near in NEAR.items())


@pytest.mark.parametrize("word", ["swallowed", "Metformin", "ECG", "iPhone", "can't"])
def test_on_a_keyboard_a_neighbour_is_typed_in_place_of_the_letter(word: str) -> None:
    typo = Typo(**KEYBOARD, mix={"substitute": 1.0})
    for seed in range(200):
        pairs = zip(plain(word), plain(made(word, seed, typo).after), strict=True)
        assert [(a, b) for a, b in pairs if a != b and b not in NEAR[a]] == []


@pytest.mark.parametrize("word", ["swallowed", "Metformin", "ECG", "iPhone", "can't"])
def test_on_a_keyboard_a_neighbour_or_the_letter_itself_is_typed_beside_the_letter(word: str) -> None:
    typo, doubled = Typo(**KEYBOARD, mix={"insert": 1.0}, **ONE), 0
    for seed in range(200):
        before, after = plain(word), plain(made(word, seed, typo).after)
        places = [i for i in range(len(after)) if after[:i] + after[i + 1 :] == before]
        beside = {(after[i], x) for i in places for x in before[max(0, i - 1) : i + 1]}
        assert any(typed == x or typed in NEAR.get(x, "") for typed, x in beside), after
        doubled += any(typed == x for typed, x in beside)
    assert 0 < doubled < 100


def test_a_letter_that_the_keyboard_lacks_is_taken_for_any_letter() -> None:
    typo = Typo(**KEYBOARD, mix={"substitute": 1.0}, **ONE)
    typed = {after[0] for seed in range(1500) if (after := made("éx", seed, typo).after)[1] == "x"}
    assert typed == set(string.ascii_lowercase)


# --- settings that cannot be used


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"letters": "a"}, ["letters='a'", "at least two"]),
        ({"letters": "aa"}, ["letters='aa'", "at least two"]),
        ({"letters": ""}, ["letters=''", "at least two"]),
        ({"letters": "abC"}, ["letters='abC'", "lower case"]),
        ({"letters": "ab1"}, ["letters='ab1'", "letters"]),
        ({"letters": "a b"}, ["letters='a b'", "letters"]),
        ({"neighbours": {"a": "S"}}, ["neighbours", "S", "lower case"]),
        ({"neighbours": {"a": "a"}}, ["neighbours", "a", "itself"]),
        ({"neighbours": {"a": ""}}, ["neighbours", "a", "itself"]),
        ({"mix": {"swap": 1.0, "insert": 1.0}}, ["mix", "swap", "transpose"]),
        ({"mix": {"insert": -1.0, "delete": 2.0}}, ["mix", "-1.0", "0 or more"]),
        ({"mix": {"insert": 0.0, "delete": 0.0}}, ["mix", "0.0", "above 0"]),
        ({"mix": {}}, ["mix={}", "above 0"]),
        ({"mix": {"insert": float("nan"), "delete": 1.0}}, ["mix", "nan"]),
        ({"mix": {"insert": float("inf"), "delete": 1.0}}, ["mix", "inf"]),
        ({"low_share": 0.0}, ["low_share=0.0", "above 0"]),
        ({"low_share": -0.2}, ["low_share=-0.2", "above 0"]),
        ({"low_share": 0.6}, ["low_share=0.6", "high_share=0.5", "the lower first"]),
        ({"high_share": 1.2}, ["high_share=1.2", "up to 1"]),
        ({"high_share": float("nan")}, ["high_share=nan", "up to 1"]),
    ],
)
def test_a_setting_that_cannot_be_used_is_an_error_with_the_value_and_what_to_do(
    wrong: dict[str, object], says: list[str]
) -> None:
    with pytest.raises(ConfigError) as found:
        Typo(**wrong)  # type: ignore[arg-type]
    assert [part for part in ("perturb.change", *says) if part not in str(found.value)] == []


# --- any word

LETTERS = st.sampled_from("abcXYZéÉßİﬁæıſσΣςбвБЖ頭あक'-’4\u0301\u0308\u200d😀")
ANY = st.one_of(st.text(min_size=1, max_size=20), st.text(LETTERS, min_size=1, max_size=12))
EXAMPLES = settings(max_examples=300, deadline=None, derandomize=True)


@EXAMPLES
@given(ANY, st.integers(), st.sampled_from(sorted(TYPOS)))
def test_any_word_changes_by_its_operations_within_its_bounds_or_not_at_all(word: str, seed: int, how: str) -> None:
    change = tried(word, seed, TYPOS[how])
    assert change == tried(word, seed, TYPOS[how])
    assert change is None or (off(word, change) == "" and change.after not in ("", word))


@EXAMPLES
@given(st.text(string.ascii_letters, min_size=1, max_size=20), st.integers(), st.sampled_from(["alphabet", "qwerty"]))
def test_any_word_of_plain_letters_can_change(word: str, seed: int, how: str) -> None:
    assert off(word, made(word, seed, TYPOS[how])) == ""


@EXAMPLES
@given(ANY, st.integers(), st.sampled_from(sorted(TYPOS)))
def test_whatever_is_no_letter_stays_in_any_word(word: str, seed: int, how: str) -> None:
    change = tried(word, seed, TYPOS[how])
    if change:
        others = [c for c in word if not c.isalpha()]
        assert [c for c in change.after if not c.isalpha()] == others
