"""The same key gives the same text: in any order, alone, in another process, on another version of Python."""

import os
import subprocess
import sys
from hashlib import sha256
from random import Random

import pytest
from samples import CHANGES, KEY, OWN, RATES, TEXTS, at, levels, words

from noisyhealth.perturbations.engine import Key, disturb, ranked
from noisyhealth.perturbations.typo import Typo
from noisyhealth.text.flags import flags

HOW = list(OWN)


def golden(how: str) -> str:
    """Hash what seed 0 makes of every text: no other seed, machine, process or order gives it."""
    digest = sha256()
    for name, text in TEXTS.items():
        found = words(text)
        edits = ranked(text, found, CHANGES[how], Key(0, "qa", name, how).rng(), flags)
        for variant in disturb(text, found, edits, rates=RATES).values():
            digest.update(repr(variant).encode())
    return digest.hexdigest()


GOLDEN = {
    "typo": "1615cf87581ebbf8e4873f664ee3f2ab1b50b4c651ead6bdd50170a55cb2144e",
    "redact": "1f42b10f41c2b5bae8f55c9f34ebfdf350a54fff8bff157e011a3c460de2e83c",
    "homophone": "acc35a5eef6d30b168ceaf8359cbe4d5b0ff93c6c2acf314cd62cdf7fe2f4d6e",
    "abbreviation": "576d49ea73c531f2b55fa31db786f0812159ddd7a6097d1f5459da8d2604de98",
    "order": "eb990a2f4e7df18be50127f96be28b53975c2633548dc56e98b9d4a63c96b5d2",
    "ocr": "686507843533ff349f9f52142d7bc0199dafcb71543bb84842da90fa749b4f67",
    "dictation": "03756610e3ed858a6786d967b9133a58bd0ba4f40f21c62e87bb14b164c13da6",
    "plain": "58780977021c86448261153a87c47e0118e8eaa99aeaf6ec4b9829ab504218dc",
    "mixture": "2163609b0754e4c39cc674d2d0f1d878aaa9be4a1f8773ecbdb0bf3cbac48a96",
}


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_another_process_with_another_hash_seed_gives_the_golden_texts(hash_seed: str) -> None:
    found = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == list(GOLDEN.values())


@pytest.mark.parametrize("how", HOW)
def test_this_process_gives_the_golden_texts_also_a_second_time(how: str) -> None:
    assert golden(how) == golden(how) == GOLDEN[how]


@pytest.mark.parametrize("how", HOW)
def test_a_text_comes_out_the_same_in_any_order_of_the_texts_and_alone(how: str) -> None:
    def made(name: str) -> object:
        return levels(TEXTS[name], RATES, change=CHANGES[how], key=Key(0, "qa", name, how))

    forth = {name: made(name) for name in TEXTS}
    back = {name: made(name) for name in reversed(TEXTS)}
    assert forth == back
    assert made("note") == forth["note"]


class OnlyRandom(Random):
    """A random source that has nothing but `random()`, whose numbers are those of every Python."""


def _refuses(self: Random, *_: object, **__: object) -> None:
    raise AssertionError("a draw that another version of Python may make otherwise")


for _name in set(dir(Random)) - {"random", "seed"}:
    if not _name.startswith("_"):
        setattr(OnlyRandom, _name, _refuses)


def test_the_source_that_refuses_refuses_all_but_one_draw() -> None:
    for name in ("choice", "sample", "shuffle", "randrange", "randint", "uniform", "getrandbits"):
        with pytest.raises(AssertionError, match="another version"):
            getattr(OnlyRandom(0), name)([1], 1)
    assert OnlyRandom(7).random() == Random(7).random()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", TEXTS)
def test_chance_comes_from_random_alone(name: str, how: str) -> None:
    text, found = TEXTS[name], words(TEXTS[name])
    strict = list(ranked(text, found, CHANGES[how], OnlyRandom(42)))
    assert strict
    assert strict == list(ranked(text, found, CHANGES[how], Random(42)))


def test_the_numbers_of_a_key_are_fixed() -> None:
    draws = [KEY.rng().random(), Key(0, "sentiment", "é", "typo", "low", 2).rng().random()]
    assert draws == [0.5211739489377344, 0.7176415747518903]


def test_seed_zero_is_a_seed_like_any_other() -> None:
    def drawn(seed: int) -> object:
        return at(TEXTS["abstract"], 0.3, key=Key(seed, "qa", "1", "p"))

    assert drawn(0) == drawn(0)
    assert len({repr(drawn(seed)) for seed in (-1, 0, 1, 2, 10)}) == 5


@pytest.mark.parametrize(
    "other",
    [
        Key(1, "qa", "1", "typo"),
        Key(-1, "qa", "1", "typo"),
        Key(0, "sentiment", "1", "typo"),
        Key(0, "qa", "2", "typo"),
        Key(0, "qa", "1", "redact"),
        Key(0, "qa", "1", "typo", "low"),
        Key(0, "qa", "1", "typo", draw=1),
        Key(0, "q", "a1", "typo"),
    ],
)
def test_another_key_is_another_random_source(other: Key) -> None:
    key = Key(0, "qa", "1", "typo")
    assert key.rng().random() == key.rng().random() != other.rng().random()
    assert levels(TEXTS["abstract"], RATES, change=Typo(), key=key) != levels(
        TEXTS["abstract"], RATES, change=Typo(), key=other
    )


if __name__ == "__main__":
    print(*map(golden, HOW), sep="\n")
