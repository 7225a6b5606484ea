"""The dose: how many words of a text change, which ones, and the text that results.

A perturbation only knows how to change one word. The engine alone counts, chooses and
rebuilds, so "mid" means the same number of words for every perturbation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Protocol

from noisyhealth.records import Edit, Variant, Word


@dataclass(frozen=True, slots=True)
class Change:
    """What one word becomes. `before` and `after` are spans of the text, `start` where they begin."""

    start: int
    before: str
    after: str
    op: str


class Perturbation(Protocol):
    """How one word is disturbed: a pure function of the word, its text and a random source."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the change, or None when this word cannot be changed."""
        ...


@dataclass(frozen=True, slots=True)
class Key:
    """Where randomness comes from: the same key gives the same text, alone or in any order.

    `draw` tells repeated draws of one design apart; `level` is empty when levels nest.
    """

    seed: int
    task: str
    example: str
    perturbation: str
    level: str = ""
    draw: int = 0

    def rng(self, *parts: object) -> Random:
        """Return the random source for one purpose, independent of every other.

        >>> key = Key(seed=0, task="qa", example="7", perturbation="typo")
        >>> key.rng("word", 3).random() == key.rng("word", 3).random()
        True
        """
        fields = (self.seed, self.task, self.example, self.perturbation, self.level, self.draw)
        text = "\x1f".join(map(str, (*fields, *parts)))
        return Random(int.from_bytes(blake2b(text.encode(), digest_size=8).digest()))


def quota(words: int, rate: float) -> int:
    """Return how many words a rate asks for, a half rounded up.

    `rate` is a fraction of all words, 0 to 1.

    >>> quota(10, 0.1), quota(5, 0.1), quota(4, 0.1), quota(15, 0.3)
    (1, 1, 0, 5)
    """
    # 15 x 0.3 is 4.5 on paper and 4.499... in floats: round before the half is looked at.
    return math.floor(round(words * rate, 9) + 0.5)


def ranked(text: str, words: Sequence[Word], change: Perturbation, key: Key) -> list[Edit]:
    """Return an edit for every word that can change, in the order in which a dose takes them.

    A level is a prefix of this list, so a higher level contains a lower one.
    """
    order = [index for index, word in enumerate(words) if word.valid]
    key.rng("order").shuffle(order)
    edits = []
    for index in order:
        word = words[index]
        if found := change(word, text, key.rng("word", index)):
            edits.append(
                Edit(
                    start=found.start,
                    before=found.before,
                    after=found.after,
                    op=found.op,
                    pos=word.pos,
                    medical=word.medical,
                    word=index,
                )
            )
    return edits


def replay(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with the edits applied; every character outside them stays.

    Raises ValueError when an edit does not fit the text.

    >>> replay("heel,", [Edit(0, "heel", "heal", "exact", "NOUN", False, 0)])
    'heal,'
    """
    parts, at = [], 0
    for edit in sorted(edits, key=lambda e: e.start):
        if edit.start < at or not text.startswith(edit.before, edit.start):
            raise ValueError(f"edit {edit} does not fit the text at character {edit.start}")
        parts += [text[at : edit.start], edit.after]
        at = edit.start + len(edit.before)
    return "".join([*parts, text[at:]])


def disturb(text: str, words: Sequence[Word], *, edits: Sequence[Edit], rate: float, example: str) -> Variant | None:
    """Return the text at one rate, or None when it cannot reach it exactly.

    `edits` are those of `ranked`. A text is out of reach when the rate asks for no word at all
    or for more words than can change; it is never silently given less.
    """
    count = quota(len(words), rate)
    if rate > 0 and not 0 < count <= len(edits):
        return None
    chosen = tuple(sorted(edits[:count], key=lambda e: e.start))
    valid = sum(word.valid for word in words)
    return Variant(example, replay(text, chosen), chosen, len(words), valid)
