"""The dose: how many words of a text change, which ones, and the text that results.

A perturbation only knows how to change one word. The engine alone counts, chooses and
rebuilds, so "mid" means the same share for every perturbation.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from itertools import islice
from operator import attrgetter
from random import Random
from typing import NamedTuple, Protocol
from unicodedata import category

import regex
from rapidfuzz.distance import OSA

from noisyhealth.errors import DataError
from noisyhealth.records import Dose, Edit, Variant, Word

_OSA = OSA.distance
_START = attrgetter("start")
_PAIR = re.compile(r"(\S+)([^\S\r\n]+)(\S+)")  # two words of one line

_UNSEEN = regex.compile(r"[\p{Cf}\p{Default_Ignorable_Code_Point}]")


class Change(NamedTuple):
    """What one word becomes. `before` and `after` are spans of the text, `start` where they begin.

    `before` is the word, and may take along marks and blanks behind it; `after` is one word or nothing. Or both are the
    word and the next with the blanks between, exchanged: then the word has moved, and counts as the one disturbed.
    """

    start: int
    before: str
    after: str
    op: str


class Perturbation(Protocol):
    """How one word is disturbed: a pure function of the word, its text and a random source.

    Of the random source only `random()` may be used: its numbers are the same in every version of
    Python, those of `choice`, `sample` or `shuffle` are not.
    """

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the change, or None when this word cannot be changed."""
        ...


class Unit(StrEnum):
    """What a rate is a share of: all words, valid words, or characters."""

    WORDS = "words"
    VALID_WORDS = "valid_words"
    CHARS = "chars"


class OutOfReach(StrEnum):
    """Why a text cannot be given a dose."""

    TOO_SHORT = "too short"
    TOO_FEW = "too few words can change"
    TOO_FEW_OF_EITHER = "too few medical words or too few others can change"


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

    def rng(self) -> Random:
        """Return the key's random source.

        >>> key = Key(seed=0, task="qa", example="7", perturbation="typo")
        >>> key.rng().random() == key.rng().random()
        True
        """
        fields = (self.seed, self.task, self.example, self.perturbation, self.level, self.draw)
        text = "\x1f".join(map(str, fields))
        return Random(int.from_bytes(blake2b(text.encode(), digest_size=8).digest()))


def quota(total: int, rate: float) -> int:
    """Return how many words (or characters) a rate asks for, a half rounded up.

    `rate` is a fraction of `total`, 0 to 1.

    >>> quota(10, 0.1), quota(5, 0.1), quota(4, 0.1), quota(15, 0.3)
    (1, 1, 0, 5)
    """
    # 15 x 0.3 is 4.5 on paper and 4.499... in floats: round before the half is looked at.
    return math.floor(round(total * rate, 9) + 0.5)


def ranked(
    text: str,
    words: Sequence[Word],
    change: Perturbation,
    rng: Random,
    flag: Callable[[str], tuple[str, ...]] | None = None,
) -> Iterator[Edit]:
    """Yield an edit for every valid word that can change, in the order in which a dose takes them.

    A level is a prefix of this order, so a higher level contains a lower one; only what is taken is
    made. `flag` names what a word is that can change a reading; both the old and the new word are asked.
    """
    valid = [index for index, word in enumerate(words) if word.valid]
    place = {index: rng.random() for index in valid}
    valid.sort(key=place.__getitem__)
    inside: set[int] = set()  # words in the span of an edit
    for index in valid:
        word = words[index]
        if index not in inside and (made := change(word, text, rng)) and made.after != made.before:
            became = made.after
            if made.before != word.text or not (became.isascii() and became.isalpha()):
                if became and (passed := _passed(made, word, text)):
                    if not _is_free(words, index, made, inside):
                        continue
                    inside.add(index + 1)
                    became = passed
                else:
                    _check(made, word, text)
            inside.add(index)
            flags = _flags(flag, word.text, became) if flag else ()
            # In half the time of Edit(*made, ...): an edit is made for every second word.
            yield tuple.__new__(Edit, made + (word.pos, word.medical, index, flags))  # noqa: RUF005


def _check(made: Change, word: Word, text: str) -> None:
    """Raise DataError where a change is not of its word alone, or makes several words of it: the dose would not hold.

    A word may take along the marks and blanks after it, never a line's end or a tab; where it leaves a word, no blank,
    which would join that to the next.
    """
    fits = made.start == word.start and text.startswith(made.before, made.start)
    joins = made.after and made.before[-1:].isspace()
    one = made.after.split() in ([], [made.after])
    if not (fits and one and _is_alone(made.before, word.text)) or joins or _hides(made):
        raise DataError(
            f"the perturbation turned {word.text!r} at character {word.start} into {made}: it must change that word, "
            "into one word or nothing that a reader sees, or move it past the next"
        )


def _hides(made: Change) -> bool:
    """Tell whether a change brings in what no reader sees: a zero-width blank, a mark of direction, a filler."""
    return not made.after.isascii() and not set(_UNSEEN.findall(made.after)) <= set(made.before)


def _is_alone(before: str, word: str) -> bool:
    """Tell whether a span is a word with nothing but blanks and punctuation behind it, on its line."""
    behind = before[len(word) :]
    return before.startswith(word) and all(category(char).startswith(("P", "Zs")) for char in behind)


def _passed(made: Change, word: Word, text: str) -> str:
    """Return what a change moves its word past, "" where it does not move it."""
    pair = _PAIR.fullmatch(made.before)
    if not pair or (made.start, pair[1]) != (word.start, word.text) or not text.startswith(made.before, made.start):
        return ""
    return pair[3] if made.after == f"{pair[3]}{pair[2]}{word.text}" else ""


def _is_free(words: Sequence[Word], index: int, made: Change, inside: Collection[int]) -> bool:
    """Tell whether a word can move past the next: one that may be disturbed too, and that no other edit touches."""
    if index + 1 == len(words) or index + 1 in inside:
        return False
    passed = words[index + 1]
    return passed.valid and passed.end == made.start + len(made.before) and made.before.endswith(passed.text)


def _flags(flag: Callable[[str], tuple[str, ...]], before: str, after: str) -> tuple[str, ...]:
    found, new = flag(before), flag(after)
    return found if not new or new == found else tuple(dict.fromkeys((*found, *new)))


def disturb(
    text: str,
    words: Sequence[Word],
    edits: Iterator[Edit],
    *,
    rates: Mapping[str, float],
    unit: Unit = Unit.WORDS,
    example: str = "",
) -> dict[str, Variant | OutOfReach]:
    """Return the text at each level, or why it cannot reach it.

    `edits` are those of `ranked`; `rates` maps levels to fractions of `unit`, 0 to 1. Words are counted
    exactly. Characters come in whole words: the level is the prefix whose edit distance is nearest
    to what is asked. A text is out of reach when the rate asks for nothing or for more than can change; it
    is never silently given less.
    """
    whole = total(text, words, unit)
    taken: list[Edit] = []
    sums = [0]  # what each prefix amounts to
    found: dict[str, Variant | OutOfReach] = {}
    for level, rate in sorted(rates.items(), key=lambda item: item[1]):
        asked = quota(whole, rate)
        if unit is Unit.CHARS:
            while sums[-1] < asked and (edit := next(edits, None)):
                taken.append(edit)
                sums.append(sums[-1] + distance(edit))
        else:
            taken.extend(islice(edits, asked - len(taken)))
            sums = list(range(len(taken) + 1))
        chosen = _prefix(taken, sums, asked, rate)
        found[level] = chosen if isinstance(chosen, OutOfReach) else _variant(example, text, words, chosen)
    return {level: found[level] for level in rates}


def total(text: str, words: Sequence[Word], unit: Unit) -> int:
    """Return how many units the text has."""
    if unit is Unit.CHARS:
        return len(text)
    return len(words) if unit is Unit.WORDS else sum(word.valid for word in words)


def _prefix(taken: Sequence[Edit], sums: Sequence[int], asked: int, rate: float) -> tuple[Edit, ...] | OutOfReach:
    if not asked:
        return OutOfReach.TOO_SHORT if rate else ()
    if sums[-1] < asked:
        return OutOfReach.TOO_FEW
    size = bisect_left(sums, asked)
    if asked - sums[size - 1] < sums[size] - asked:  # one word less is nearer
        size -= 1
    return tuple(sorted(taken[:size], key=_START)) if size else OutOfReach.TOO_SHORT


def _variant(example: str, text: str, words: Sequence[Word], edits: tuple[Edit, ...]) -> Variant:
    count, valid, far = len(edits), sum(word.valid for word in words), sum(map(distance, edits))
    shares = Dose(
        words=count / len(words) if words else 0.0,
        valid_words=count / valid if valid else 0.0,
        characters=far / len(text) if text else 0.0,
        edit_distance=far,
        medical=sum(edit.medical for edit in edits) / count if count else 0.0,
        total_words=len(words),
        total_valid_words=valid,
    )
    return Variant(example, replay(text, edits), edits, shares)


def distance(edit: Edit) -> int:
    """Return how many characters an edit inserts, deletes, substitutes or transposes, case aside.

    The optimal string alignment distance; an edit keeps the case pattern of its word.

    >>> distance(Edit(0, "pain", "pian", "transpose", "NOUN", True, 0))
    1
    """
    return _OSA(edit.before.lower(), edit.after.lower())


def replay(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with the edits applied; every character outside them stays.

    Raises ValueError when an edit does not fit the text.

    >>> replay("heel,", [Edit(0, "heel", "heal", "exact", "NOUN", False, 0)])
    'heal,'
    """
    parts, at = [], 0
    for edit in sorted(edits, key=_START):
        start, before = edit.start, edit.before
        if start < at or not text.startswith(before, start):
            raise ValueError(f"edit {edit} does not fit the text at character {start}")
        parts.append(text[at:start])
        parts.append(edit.after)
        at = start + len(before)
    return "".join([*parts, text[at:]])
