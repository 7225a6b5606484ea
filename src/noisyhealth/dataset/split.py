"""How kept examples are divided, so that no note, no text and no near copy of one stands in two splits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from zlib import crc32

from datasketch import MinHash, MinHashLSH

from noisyhealth.dataset.design import Split
from noisyhealth.errors import DataError
from noisyhealth.records import Example

PROMPT, VALIDATION, TEST, TRAIN = "prompt", "validation", "test", "train"

_WORD = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(r"@\w+|https?://\S+|www\.\S+")  # the same message to two people is one message
_ALIKE = 0.7  # share of word pairs that two texts have in common (Jaccard) from which one is a near copy of the other
_HASHES = 128
_MISSED = (0.1, 0.9)  # finding too many candidates weighs less than missing one: each is looked at again


@dataclass(frozen=True, slots=True)
class Splits:
    """The split of each example by id, for generative models and for fine-tuned ones; both test on the same."""

    generative: Mapping[str, str]
    encoder: Mapping[str, str]


class Families:
    """Which examples belong together: those of one group, and near copies.

    Near copies are found by MinHash (Broder 1997) over pairs of neighbouring words, case and punctuation aside.
    """

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._common: dict[bytes, str] = {}
        self._empty = MinHash(num_perm=_HASHES, seed=1, hashfunc=crc32)
        self._near = MinHashLSH(threshold=_ALIKE, num_perm=_HASHES, weights=_MISSED)
        self._sketches: dict[str, MinHash] = {}

    def add(self, example: Example) -> None:
        """Put an example with those it belongs to."""
        self._parent[example.id] = example.id
        words = _words(example.text)
        # "do not go" and "#donotgo"; and the same message to two people, wherever its link ends
        bare = {"".join(words), "".join(_WORD.findall(example.text.casefold()))} - {""}
        for common in (*(f"text {text}" for text in sorted(bare)), f"group {example.group}" if example.group else ""):
            if common:
                key = blake2b(common.encode(), digest_size=16).digest()
                self._join(example.id, self._common.setdefault(key, example.id))
        sketch = self._empty.copy()
        sketch.update_batch(_pairs(words))
        for other in self._near.query(sketch):
            if sketch.jaccard(self._sketches[other]) >= _ALIKE:
                self._join(example.id, other)
        self._near.insert(example.id, sketch)
        self._sketches[example.id] = sketch

    def members(self) -> Iterator[list[str]]:
        """Yield the ids of each family."""
        families: dict[str, list[str]] = {}
        for example in self._parent:
            families.setdefault(self._head(example), []).append(example)
        yield from families.values()

    def _head(self, example: str) -> str:
        while (parent := self._parent[example]) != example:
            self._parent[example] = example = self._parent[parent]
        return example

    def _join(self, one: str, other: str) -> None:
        self._parent[self._head(one)] = self._head(other)


def _words(text: str) -> list[str]:
    """Return the words that make a text the same as another: case, marks, names it is sent to and links aside."""
    return _WORD.findall(_ADDRESS.sub(" ", text.casefold()))


def _pairs(words: Sequence[str]) -> list[bytes]:
    return sorted({f"{a} {b}".encode() for a, b in pairwise(words)} or {" ".join(words).encode()})


def assign(families: Iterable[Sequence[str]], split: Split, *, seed: int, task: str) -> Splits:
    """Return the splits of all examples (Joshi et al. 2026, Methods, "Training and Testing Splits").

    A family goes whole into the first split with room for it. The order is that of a hash of seed, task and ids.

    Raises DataError when there are too few examples for every split to have one.
    """
    known = [sorted(members) for members in families]
    count = sum(map(len, known))
    prompts = round(count * split.prompt)
    generative = _fill(_shuffled(known, f"split {seed} {task}"), {PROMPT: prompts, TEST: split.test})
    _check(generative, (PROMPT, TEST, VALIDATION), known, split, task)
    others = [members for members in known if generative[members[0]] != TEST]
    left = sum(map(len, others))
    trained = _fill(
        _shuffled(others, f"encoder split {seed} {task}"), {TRAIN: min(round(left * split.train), left - 1)}
    )
    encoder = {**dict.fromkeys(generative, TEST), **trained}
    _check(encoder, (TRAIN, VALIDATION), known, split, task)
    return Splits(generative, encoder)


def _check(
    found: Mapping[str, str], names: Sequence[str], known: Sequence[Sequence[str]], split: Split, task: str
) -> None:
    """Raise DataError where a split has no example."""
    if empty := [name for name in names if name not in found.values()]:
        count, largest = len(found), max(map(len, known), default=0)
        room = count - round(count * split.prompt) - 1
        cure = f"lower data.split.test to at most {room}" if room > 0 and largest == 1 else "give more texts"
        alike = f"; {largest} of them are near copies or of one group, and stay together" if largest > 1 else ""
        raise DataError(
            f"task {task!r}: {count} kept texts are too few for data.split.prompt={split.prompt}, test={split.test} "
            f"and train={split.train}, nothing is left for {empty[0]!r}{alike}: {cure}"
        )


def _fill(families: Iterable[Sequence[str]], room: Mapping[str, int]) -> dict[str, str]:
    """Put each family into the first split with room for all of it; what has no room validates."""
    left = dict(room)
    found: dict[str, str] = {}
    for members in families:
        name = next((name for name, free in left.items() if free >= len(members)), VALIDATION)
        if name in left:
            left[name] -= len(members)
        found |= dict.fromkeys(members, name)
    return found


def _shuffled(families: Iterable[Sequence[str]], seed: str) -> list[Sequence[str]]:
    """Return the families in an order that depends on nothing but the seed and the ids.

    Not `random.shuffle`, whose order may differ in another version of Python.
    """
    return sorted(families, key=lambda members: blake2b(f"{seed}\x1f{members[0]}".encode(), digest_size=16).digest())
