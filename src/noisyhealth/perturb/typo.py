"""Typing errors: letters inserted, deleted, substituted or swapped within a word.

The study changes 20 to 50 % of the letters of a chosen word (Joshi et al. 2026, Methods,
"Perturbation Techniques").
"""

import math
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from noisyhealth.perturb.engine import Change
from noisyhealth.records import Word

_TRIES = 25  # a draw that gives the word back (a swap of twins, two swaps that cancel) is drawn anew


@dataclass(frozen=True, slots=True)
class Typo:
    """Disturbs the letters of a word.

    `low_share` and `high_share`: fraction of the word's letters that change, 0 to 1, at least
    one letter. `mix`: relative weight of each operation. `letters`: what is typed by mistake.
    """

    low_share: float = 0.2
    high_share: float = 0.5
    mix: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(_OPERATIONS, 1.0))
    letters: str = string.ascii_lowercase

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the word with typing errors, or None when it has no letter to change."""
        before = word.text
        places = [i for i, char in enumerate(before) if _is_latin(char)]
        if not places:
            return None
        for _ in range(_TRIES):
            drawn, ops = self._attempt(before, places, rng)
            after = _with_case_of(before, drawn)  # "Pain" drawn as "pain" is no typo once its case is back
            if after and after != before:
                return Change(word.start, before, after, "+".join(ops))
        return None

    def _attempt(self, before: str, places: list[int], rng: Random) -> tuple[str, list[str]]:
        """Return one draw: the new spelling, in lower case where the word was, and its operations."""
        chars: list[str] = list(before)
        names, weights = list(self.mix), list(self.mix.values())
        picked = sorted(rng.sample(places, _how_many(len(places), self.low_share, self.high_share, rng)))
        ops = rng.choices(names, weights, k=len(picked))
        # From the right, so that an insertion or deletion leaves the places to its left alone.
        for at, op in zip(reversed(picked), reversed(ops), strict=True):
            _OPERATIONS[op](chars, at, self.letters, rng)
        return "".join(chars), ops


def _how_many(letters: int, low: float, high: float, rng: Random) -> int:
    """Return a number of letters within the two shares, at least one."""
    least = max(1, math.ceil(round(letters * low, 9)))
    most = max(least, math.floor(round(letters * high, 9)))
    return rng.randint(least, most)


def _other(letters: str, than: str, rng: Random) -> str:
    return rng.choice([c for c in letters if c != than.lower()])


def _insert(chars: list[str], at: int, letters: str, rng: Random) -> None:
    chars.insert(at + rng.randint(0, 1), rng.choice(letters))


def _delete(chars: list[str], at: int, letters: str, rng: Random) -> None:
    del chars[at]


def _substitute(chars: list[str], at: int, letters: str, rng: Random) -> None:
    chars[at] = _other(letters, chars[at], rng)


def _transpose(chars: list[str], at: int, letters: str, rng: Random) -> None:
    """Swap with a neighbour that differs; with none, substitute."""
    beside = [i for i in (at - 1, at + 1) if 0 <= i < len(chars) and chars[i].isalpha()]
    beside = [i for i in beside if chars[i].lower() != chars[at].lower()]
    if beside:
        other = rng.choice(beside)
        chars[at], chars[other] = chars[other], chars[at]
    else:
        _substitute(chars, at, letters, rng)


_OPERATIONS: dict[str, Callable[[list[str], int, str, Random], None]] = {
    "insert": _insert,
    "delete": _delete,
    "substitute": _substitute,
    "transpose": _transpose,
}


def _is_latin(char: str) -> bool:
    return char.isascii() and char.isalpha()


def _with_case_of(before: str, after: str) -> str:
    """Return `after` in the case pattern of `before`.

    >>> _with_case_of("Pain", "apin"), _with_case_of("ECG", "egc"), _with_case_of("pain", "Pian")
    ('Apin', 'EGC', 'pian')
    """
    if before.isupper() and len(before) > 1:
        return after.upper()
    if before[:1].isupper() and before[1:] == before[1:].lower():
        return after[:1].upper() + after[1:].lower()
    return after.lower() if before.islower() else after
