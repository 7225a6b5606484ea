"""Several perturbations in one text: shares, what a part cannot change, and what refuses."""

from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest
from samples import OWN, TEXTS, Part, always, only_long, possible

from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import Change, Perturbation
from noisyhealth.perturbations.mixture import Mixture
from noisyhealth.records import Word


def never(word: Word, text: str, rng: Random) -> Change | None:
    return None


def gives_back(word: Word, text: str, rng: Random) -> Change | None:
    return Change(word.start, word.text, word.text, "same")


def mixture(parts: Mapping[str, Perturbation | None], shares: Mapping[str, float]) -> Mixture:
    return Mixture({name: Part(change) for name, change in parts.items()}, shares)


def drawn(change: Mixture, word: str = "disease", times: int = 3000) -> Counter[str]:
    """Count which part changed a word; "" where none did."""
    rng = Random(0)
    made = [change(Word(word, 0, "NOUN", True, False), word, rng) for _ in range(times)]
    return Counter(one.op.partition(":")[0] if one else "" for one in made)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({"a": 1, "b": 1, "c": 1}, {"a": 1000, "b": 1000, "c": 1000}),
        ({"a": 1, "b": 3, "c": 2}, {"a": 500, "b": 1500, "c": 1000}),
        ({"a": 0, "b": 0.2, "c": 0.1}, {"b": 2000, "c": 1000}),
        ({"a": 5, "b": 0, "c": 0}, {"a": 3000}),
    ],
)
def test_each_part_gets_its_share_of_the_words_that_all_can_change(
    shares: dict[str, float], expected: dict[str, int]
) -> None:
    found = drawn(mixture(dict.fromkeys("abc", always), shares))
    assert set(found) == set(expected)
    assert all(abs(found[name] - count) < 120 for name, count in expected.items())  # 4 standard deviations


@pytest.mark.parametrize("idle", [never, gives_back, only_long])
def test_what_one_part_cannot_change_another_does(idle: Perturbation) -> None:
    change = mixture({"idle": idle, "a": always, "b": always}, {"idle": 8, "a": 1, "b": 1})
    found = drawn(change, "pain")
    assert set(found) == {"a", "b"}
    assert abs(found["a"] - 1500) < 120


def test_a_word_that_no_part_can_change_stays() -> None:
    assert drawn(mixture({"a": never, "b": gives_back}, {"a": 1, "b": 1}), times=50) == {"": 50}
    assert drawn(mixture({"a": never, "b": always}, {"a": 1, "b": 0}), times=50) == {"": 50}  # no share, no change


def test_an_edit_says_which_part_made_it_and_how() -> None:
    ops = {edit.op for edit in possible("Severe chest pain since the disease began, patient says.", OWN["mixture"])}
    assert all(op.partition(":")[0] in OWN and op.partition(":")[2] for op in ops)
    assert len({op.partition(":")[0] for op in ops}) >= 3


@pytest.mark.parametrize(
    ("parts", "shares", "says"),
    [
        ({"a": always}, {"a": 1, "b": 1}, "b stands in `parts` or in `shares` alone"),
        ({"a": always, "b": always}, {"a": 1}, "b stands in"),
        ({"a": None}, {"a": 1}, r"parts\.a disturbs nothing"),
        ({"a": always}, {"a": 0}, "weights of 0 or more"),
        ({"a": always, "b": always}, {"a": -1, "b": 2}, "weights of 0 or more"),
        ({"a": always}, {"a": float("nan")}, "weights of 0 or more"),
        ({}, {}, "one of them above 0"),
    ],
)
def test_parts_and_shares_that_do_not_fit_are_an_error(
    parts: dict[str, Perturbation | None], shares: dict[str, float], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        mixture(parts, shares)


def test_the_order_in_which_parts_and_shares_are_written_changes_nothing() -> None:
    made = OWN["mixture"]
    assert isinstance(made, Mixture)
    turned = Mixture(dict(reversed(made.parts.items())), dict(reversed(made.shares.items())))
    for text in TEXTS.values():
        assert possible(text, turned) == possible(text, made)
