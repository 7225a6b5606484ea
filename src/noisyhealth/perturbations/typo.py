"""Typing errors: letters inserted, deleted, substituted or transposed within a word.

The study changes 20 to 50 % of the letters of a chosen word (Joshi et al. 2026, Methods,
"Perturbation Techniques").
"""

import string
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from itertools import accumulate, combinations, pairwise
from math import ceil, comb, floor, isfinite
from random import Random
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
_MOST_PLANS = 2**16  # words come again and again


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
    _plans: dict[str, "_Plan"] = field(default_factory=dict, init=False, repr=False, compare=False)
    _typed: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the settings and prepare the draws."""
        _check(self)
        weights = [float(self.mix.get(operation, 0.0)) for operation in _OPERATIONS]
        self._edges.extend(edge / sum(weights) for edge in list(accumulate(weights))[:-1])
        self._typed.update((letter, self._instead(letter)) for letter in (*self.letters, *self.neighbours))

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the word with typing errors, or None when no draw of letters can change it so."""
        plan, draw = self._plans.get(word.text) or self._planned(word.text), rng.random
        for _ in range(_TRIES if plan.shape.ways else 0):
            after, ops = self._draw(plan, draw)
            if not after or (len(ops) > 1 and _OSA(plan.plain, after) != len(ops)):  # one alone cancels nothing
                continue
            if shown := _shown(plan.case, after) if plan.case else after:
                return tuple.__new__(Change, (word.start, word.text, shown, "+".join(ops)))  # sooner than Change(...)
        return None

    def _draw(self, plan: "_Plan", draw: Callable[[], float]) -> tuple[str, list[str]]:
        """Return one draw of letters: the new spelling, and the operations from the left."""
        shape, chars, ops = plan.shape, list(plan.plain), []
        edges, typed, latin = self._edges, self._typed, shape.latin
        for at in _picked(shape, draw):
            meant = chars[at]
            operation = bisect(edges, draw()) if latin or _script(meant) == "LATIN" else _TRANSPOSE
            if operation == _TRANSPOSE and (beside := shape.beside[at]):
                other = beside[floor(draw() * len(beside))]
                chars[at], chars[other] = chars[other], meant
            else:
                if operation == _TRANSPOSE:  # a letter between twins, which cannot be transposed, is substituted
                    operation = _SUBSTITUTE
                instead = (typed.get(meant) or self._instead(meant))[operation]
                chars[at] = instead[floor(draw() * len(instead))]
            ops.append(_OPERATIONS[operation])
        return "".join(chars), ops

    def _planned(self, word: str) -> "_Plan":
        """Return what of a word can change, and keep it."""
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        return self._plans.setdefault(word, _plan(word, self.low_share, self.high_share))

    def _instead(self, meant: str) -> tuple[tuple[str, ...], ...]:
        """Return what may stand in place of a letter, each as likely as another: for insert, delete, substitute."""
        others = (self.neighbours.get(meant.lower()) or self.letters).replace(meant.lower(), "")
        if meant.lower() != meant:
            others = "".join(c.upper() for c in others if len(c.upper()) == 1)
        typed = (*others, meant)  # also the letter itself: "painn"
        return (*(c + meant for c in typed), *(meant + c for c in typed)), ("",), tuple(others)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What of a word can change: its spelling in small letters, which of them, and how its case is put back."""

    plain: str
    shape: "_Shape"
    case: Callable[[str], str] | None  # None: all its letters are small; so is what is typed


@dataclass(frozen=True, slots=True)
class _Shape:
    """What words have in common whose letters can change alike."""

    places: tuple[int, ...]
    beside: tuple[tuple[int, ...], ...]  # with which places each letter can be transposed
    least: int  # how many letters change at least
    ways: tuple[Sequence[tuple[int, ...]], ...]  # for that number and each above: all choices; (): no word can change
    latin: bool  # the places are all of Latin letters
    whole: bool  # the places are those of all letters


def _plan(word: str, low: float, high: float) -> _Plan:
    case, plain = _case_of(word), _lower(word)
    if plain.isascii() and plain.isalpha():
        letters, scripts = len(plain), ("LATIN",) * len(plain)
    else:
        # One that has a mark of its own may not change: the mark would move to another letter.
        letters = sum(map(str.isalpha, word))
        scripts = tuple("" if _is_marked(plain, at) else _script(c) for at, c in enumerate(plain))
    twins = tuple(at for at, (c, d) in enumerate(pairwise(plain)) if c == d)
    return _Plan(plain, _shape(scripts, twins, bounds(letters, low, high)), case)


@lru_cache(maxsize=2**12)
def _shape(scripts: tuple[str, ...], twins: tuple[int, ...], bounds: tuple[int, int]) -> _Shape:
    """Return which letters can change and how.

    `twins`: where a letter is followed by itself. `bounds`: how many letters may change at least and at most.
    """
    swaps = [one == other != "" and at not in twins for at, (one, other) in enumerate(pairwise(scripts))]
    beside = tuple(
        ((at - 1,) if before else ()) + ((at + 1,) if after else ())
        for at, (before, after) in enumerate(zip([False, *swaps], [*swaps, False], strict=True))
    )
    places = tuple(at for at, script in enumerate(scripts) if script == "LATIN" or (script and beside[at]))
    least, most = bounds
    ways = tuple(_ways(len(places), size) for size in range(least, min(most, len(places)) + 1))
    latin = all(scripts[at] == "LATIN" for at in places)
    return _Shape(places, beside, least, ways, latin, whole=len(places) == len(scripts))


@cache
def bounds(letters: int, low: float, high: float) -> tuple[int, int]:
    """Return the least and the greatest number of letters that change in a word of so many letters.

    >>> bounds(10, 0.2, 0.5), bounds(3, 0.2, 0.5), bounds(1, 0.2, 0.5)
    ((2, 5), (1, 1), (1, 1))
    """
    least = max(1, ceil(round(letters * low, 9)))
    return least, max(least, floor(round(letters * high, 9)))


def _picked(shape: _Shape, draw: Callable[[], float]) -> Sequence[int]:
    """Return places from the left: each number of them is as likely as another, and each choice of so many."""
    more = floor(draw() * len(shape.ways))
    if ways := shape.ways[more]:
        picked = ways[floor(draw() * len(ways))]
        return picked if shape.whole else [shape.places[at] for at in picked]
    some: set[int] = set()
    while len(some) < shape.least + more:
        some.add(shape.places[floor(draw() * len(shape.places))])
    return sorted(some)


@lru_cache(maxsize=2**10)
def _ways(among: int, size: int) -> Sequence[tuple[int, ...]]:
    """Return every choice of so many among the first numbers, none where they are too many to keep."""
    return list(combinations(range(among), size)) if comb(among, size) <= _MOST_WAYS else []


def _is_marked(word: str, at: int) -> bool:
    return category(word[at + 1 : at + 2] or " ").startswith("M")


@cache
def _script(char: str) -> str:
    """Return the script of a letter by its Unicode name, "" for what is no letter of an alphabet with capitals."""
    return name(char, "").partition(" ")[0] if char.isalpha() and char.lower() != char.upper() else ""


def _case_of(word: str) -> Callable[[str], str] | None:
    """Return what puts a spelling in small letters in the case of a word; mixed case goes by the place of the letter.

    None where the word is in small letters.

    >>> [_case_of(word)(typo) for word, typo in (("Pain", "apin"), ("ECG", "egc"), ("mRNA", "mnra"))]
    ['Apin', 'EGC', 'mNRA']
    """
    if word == (plain := _lower(word)):
        return None
    if word == _capitalised(plain):
        return _capitalised
    return _upper if word == _upper(word) else partial(_patterned, tuple(char != _lower(char) for char in word))


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


def _shown(case: Callable[[str], str], after: str) -> str:
    """Return a typo in the case of its word, "" where it cannot be read back, or is no more of mixed case.

    "ß" has no capital of its own.
    """
    shown = case(after)
    if isinstance(case, partial) and shown in (_upper(after), _capitalised(after)):
        return ""
    return shown if shown != after and _lower(shown) == after else ""


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
    if not all(isfinite(weight) and weight >= 0 for weight in weights) or sum(weights) <= 0:
        raise ConfigError(f"{where}.mix={dict(typo.mix)}: give weights of 0 or more, one of them above 0")
    if len(set(typo.letters)) < 2 or not _small(typo.letters):
        raise ConfigError(f"{where}.letters={typo.letters!r}: give at least two letters, in lower case")
    if odd := [near for near in typo.neighbours.values() if not _small(near)]:
        raise ConfigError(f"{where}.neighbours has {odd[0]!r}: give letters, in lower case")
    if alone := [c for c, near in typo.neighbours.items() if not set(near) - {c}]:
        raise ConfigError(f"{where}.neighbours: {', '.join(alone)} has no neighbour but itself")


def _small(letters: str) -> bool:
    return all(char.isalpha() and char == char.lower() for char in letters)
