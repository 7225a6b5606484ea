"""Several perturbations in one text, which share the rate: each chosen word is disturbed by one of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from random import Random
from typing import Protocol

from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import Change, Perturbation
from noisyhealth.records import Word


class Part(Protocol):
    """A perturbation as its own file describes it, of which only the change counts here."""

    @property
    def change(self) -> Perturbation | None:
        """How one word is disturbed."""
        ...


@dataclass(frozen=True, slots=True)
class Mixture:
    """Disturbs a word by one of `parts`, drawn by `shares`; where that cannot change the word, by another of them.

    `shares`: relative weight of each part, 0 or more. So each word that any part can change is within reach, and parts
    that can change few words get less than their share. `op` begins with the part's name.

    Raises ConfigError for shares that do not fit the parts, and for a part that changes nothing.
    """

    parts: Mapping[str, Part]
    shares: Mapping[str, float]

    def __post_init__(self) -> None:
        """Check parts and shares."""
        where = "perturb.change"
        if odd := sorted(set(self.parts) ^ set(self.shares)):
            raise ConfigError(f"{where}: {', '.join(odd)} stands in `parts` or in `shares` alone; name it in both")
        if idle := [name for name, part in self.parts.items() if part.change is None]:
            raise ConfigError(f"{where}.parts.{idle[0]} disturbs nothing: leave it out")
        shares = list(self.shares.values())
        if not all(isfinite(share) and share >= 0 for share in shares) or sum(shares) <= 0:
            raise ConfigError(f"{where}.shares={dict(self.shares)}: give weights of 0 or more, one of them above 0")

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the change of the first part drawn that can change the word, or None when none can."""
        # By name: a configuration that was kept and read again may have another order.
        left = {name: share for name, share in sorted(self.shares.items()) if share}
        while left:
            name = _drawn(left, rng.random())
            change = self.parts[name].change
            if change and (made := change(word, text, rng)) and made.after != made.before:
                return made._replace(op=f"{name}:{made.op}")
            del left[name]
        return None


def _drawn(shares: Mapping[str, float], at: float) -> str:
    """Return the name whose share of the whole holds the place `at`, 0 to 1.

    >>> _drawn({"typo": 1, "redact": 3}, 0.2), _drawn({"typo": 1, "redact": 3}, 0.3)
    ('typo', 'redact')
    """
    left = at * sum(shares.values())
    for name, share in shares.items():
        left -= share
        if left < 0:
            return name
    return name
