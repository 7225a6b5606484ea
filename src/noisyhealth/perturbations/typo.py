"""Typing errors: letters inserted, deleted, substituted or transposed within a word.

The study changes 20 to 50 % of the letters of a chosen word (Joshi et al. 2026, Methods,
"Perturbation Techniques").
"""

import math
import string
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from itertools import accumulate, combinations, pairwise
from random import Random
from typing import NamedTuple
from unicodedata import category, name

from rapidfuzz.distance import OSA

from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word

_OPERATIONS = ("insert", "delete", "substitute", "transpose")
_SUBSTITUTE, _TRANSPOSE = 2, 3
_TRIES = 50  # a draw whose operations partly cancel (a letter swapped there and back) is drawn anew
_OSA = OSA.distance
_MOST_WAYS = 5_000  # those of 5 out of 16 letters


@dataclass(frozen=True)
class Typo:
    """Disturbs the letters of a word.

    `low_share` and `high_share`: fraction of the word's letters that change, 0 to 1, at least
    one letter; the drawn number is the edit distance (optimal string alignment) of the word and its typo.
    `mix`: relative weight of each operation. What is typed by mistake are the `neighbours` of the letter meant;
    for a letter without neighbours, any of `letters`.

    Raises ConfigError for shares, weights or letters that cannot be used.
    """

    low_share: float = 0.2
    high_share: float = 0.5
    mix: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(_OPERATIONS, 1.0))
    letters: str = string.ascii_lowercase
    neighbours: Mapping[str, str] = field(default_factory=dict)
    _edges: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _typed: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the settings and prepare the draws."""
        _check(self)
        weights = [float(self.mix.get(operation, 0.0)) for operation in _OPERATIONS]
        self._edges.extend(edge / sum(weights) for edge in list(accumulate(weights))[:-1])
        self._typed.update((letter, self._instead(letter)) for letter in (*self.letters, *self.neighbours))

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the word with typing errors, or None when no draw of letters can change it so."""
        plan, draw = _plan(word.text, self.low_share, self.high_share), rng.random
        for _ in range(_TRIES if plan.most else 0):
            size = plan.least + int(draw() * (plan.most - plan.least + 1))
            after, ops = self._draw(plan, size, draw)
            # One operation alone cancels nothing.
            if after and (size == 1 or _OSA(plan.plain, after) == size) and (plan.small or _stays(plan, after)):
                return Change(word.start, word.text, plan.case(after), ops)
        return None

    def _draw(self, plan: "_Plan", size: int, draw: Callable[[], float]) -> tuple[str, str]:
        """Return one draw of `size` operations: the new spelling, and the operations from the left."""
        chars, ops, edges, latin = list(plan.plain), [], self._edges, plan.latin
        for at in _picked(plan.places, size, draw):
            meant = chars[at]
            operation = bisect(edges, draw()) if latin or _script(meant) == "LATIN" else _TRANSPOSE
            if operation == _TRANSPOSE and (beside := plan.beside[at]):
                other = beside[int(draw() * len(beside))]
                chars[at], chars[other] = chars[other], meant
            else:
                if operation == _TRANSPOSE:  # a letter between twins, which cannot be transposed, is substituted
                    operation = _SUBSTITUTE
                instead = (self._typed.get(meant) or self._instead(meant))[operation]
                chars[at] = instead[int(draw() * len(instead))]
            ops.append(_OPERATIONS[operation])
        return "".join(chars), "+".join(ops)

    def _instead(self, meant: str) -> tuple[tuple[str, ...], ...]:
        """Return what may stand in place of a letter, each as likely as another: for insert, delete, substitute."""
        others = (self.neighbours.get(meant.lower()) or self.letters).replace(meant.lower(), "")
        if meant.lower() != meant:
            others = "".join(c.upper() for c in others if len(c.upper()) == 1)
        typed = (*others, meant)  # also the letter itself: "painn"
        return (*(c + meant for c in typed), *(meant + c for c in typed)), ("",), tuple(others)


class _Plan(NamedTuple):
    """What of a word can change: its spelling before any, where, and how many letters at least and at most."""

    plain: str
    places: tuple[int, ...]
    beside: tuple[tuple[int, ...], ...]  # with which places each of its letters can be transposed
    least: int
    most: int  # 0: the word cannot change
    case: Callable[[str], str]
    small: bool  # all its letters are; so is what is typed
    latin: bool


@lru_cache(maxsize=2**16)  # words come again and again
def _plan(word: str, low: float, high: float) -> _Plan:
    case, plain = _case_of(word), _lower(word)
    if plain.isascii() and plain.isalpha():
        letters, scripts = len(plain), ("LATIN",) * len(plain)
    else:
        # One that has a mark of its own may not change: the mark would move to another letter.
        letters = sum(map(str.isalpha, word))
        scripts = tuple("" if _is_marked(plain, at) else _script(c) for at, c in enumerate(plain))
    places, beside, latin = _where(scripts, tuple(at for at, (c, d) in enumerate(pairwise(plain)) if c == d))
    least, most = bounds(letters, low, high)
    most = min(most, len(places)) if least <= len(places) else 0
    return _Plan(plain, places, beside, least, most, case, case is _as_it_is, latin)


@lru_cache(maxsize=2**12)
def _where(
    scripts: tuple[str, ...], twins: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], bool]:
    """Return which letters can change, with which others each can be transposed, and whether all are Latin.

    `twins`: where a letter is followed by itself.
    """
    swaps = [one == other != "" and at not in twins for at, (one, other) in enumerate(pairwise(scripts))]
    beside = tuple(
        ((at - 1,) if before else ()) + ((at + 1,) if after else ())
        for at, (before, after) in enumerate(zip([False, *swaps], [*swaps, False], strict=True))
    )
    places = tuple(at for at, script in enumerate(scripts) if script == "LATIN" or (script and beside[at]))
    return places, beside, all(scripts[at] == "LATIN" for at in places)


@cache
def bounds(letters: int, low: float, high: float) -> tuple[int, int]:
    """Return the least and the greatest number of letters that change in a word of so many letters.

    >>> bounds(10, 0.2, 0.5), bounds(3, 0.2, 0.5), bounds(1, 0.2, 0.5)
    ((2, 5), (1, 1), (1, 1))
    """
    least = max(1, math.ceil(round(letters * low, 9)))
    return least, max(least, math.floor(round(letters * high, 9)))


def _picked(places: tuple[int, ...], size: int, draw: Callable[[], float]) -> Sequence[int]:
    """Return so many of the places from the left, each choice as likely as another."""
    if ways := _ways(places, size):
        return ways[int(draw() * len(ways))]
    picked: set[int] = set()
    while len(picked) < size:
        picked.add(places[int(draw() * len(places))])
    return sorted(picked)


@lru_cache(maxsize=2**10)
def _ways(places: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    """Return every choice of so many of the places, none where they are too many to keep."""
    return list(combinations(places, size)) if math.comb(len(places), size) <= _MOST_WAYS else []


def _is_marked(word: str, at: int) -> bool:
    return category(word[at + 1 : at + 2] or " ").startswith("M")


@cache
def _script(char: str) -> str:
    """Return the script of a letter by its Unicode name, "" for what is no letter of an alphabet with capitals."""
    return name(char, "").partition(" ")[0] if char.isalpha() and char.lower() != char.upper() else ""


def _case_of(word: str) -> Callable[[str], str]:
    """Return what puts a spelling in small letters in the case of a word; mixed case goes by the place of the letter.

    >>> [_case_of(word)(typo) for word, typo in (("Pain", "apin"), ("ECG", "egc"), ("mRNA", "mnra"))]
    ['Apin', 'EGC', 'mNRA']
    """
    if word == _lower(word):
        return _as_it_is
    if word == _capitalised(_lower(word)):
        return _capitalised
    return _upper if word == _upper(word) else partial(_patterned, tuple(char != _lower(char) for char in word))


def _as_it_is(word: str) -> str:
    return word


def _lower(word: str) -> str:
    """Return the word in small letters, but for capitals whose small letter is two ("İ")."""
    if word.isascii():
        return word.lower()
    # Letter by letter: a sigma at the end of a word has a small letter of its own.
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in word)


def _upper(word: str) -> str:
    """Return the word in capitals, but for letters whose capital is two letters ("ß")."""
    found = word.upper()
    return found if len(found) == len(word) else "".join(c.upper() if len(c.upper()) == 1 else c for c in word)


def _capitalised(word: str) -> str:
    """Return the word with its first letter as its only capital: "I'm" less its "i" is "'M"."""
    first = next((at for at, char in enumerate(word) if char.isalpha()), 0)
    return word[:first] + _upper(word[first : first + 1]) + word[first + 1 :]


def _patterned(capitals: tuple[bool, ...], word: str) -> str:
    """Return the word with capitals where another has them; letters beyond it are like its last."""
    return "".join(_upper(c) if capitals[min(at, len(capitals) - 1)] else c for at, c in enumerate(word))


def _stays(plan: _Plan, after: str) -> bool:
    """Tell whether a typo in the case of its word can be read back, and is still of mixed case if that was."""
    shown = plan.case(after)  # "ß" has no capital of its own
    mixed = shown not in (_upper(after), _capitalised(after))
    return _lower(shown) == after != shown and (mixed or not isinstance(plan.case, partial))


def _check(typo: Typo) -> None:
    """Raise ConfigError for a setting that cannot be used."""
    where = "perturb.change"
    if not 0 < typo.low_share <= typo.high_share <= 1:
        raise ConfigError(
            f"{where}.low_share={typo.low_share}, high_share={typo.high_share}: give two shares above 0 and up to 1, "
            "the lower first"
        )
    if unknown := set(typo.mix) - set(_OPERATIONS):
        raise ConfigError(f"{where}.mix has {', '.join(sorted(unknown))}: it may have {', '.join(_OPERATIONS)}")
    weights = list(typo.mix.values())
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or sum(weights) <= 0:
        raise ConfigError(f"{where}.mix={dict(typo.mix)}: give weights of 0 or more, one of them above 0")
    if len(set(typo.letters)) < 2 or not _small(typo.letters):
        raise ConfigError(f"{where}.letters={typo.letters!r}: give at least two letters, in lower case")
    if odd := [near for near in typo.neighbours.values() if not _small(near)]:
        raise ConfigError(f"{where}.neighbours has {odd[0]!r}: give letters, in lower case")
    if alone := [c for c, near in typo.neighbours.items() if not set(near) - {c}]:
        raise ConfigError(f"{where}.neighbours: {', '.join(alone)} has no neighbour but itself")


def _small(letters: str) -> bool:
    return all(char.isalpha() and char == char.lower() for char in letters)
