"""Capitals and punctuation lost, as in hurried typing and unpunctuated dictation ("Pain, again." - "pain again")."""

import re
from dataclasses import dataclass
from random import Random

from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word

_MARKS = re.compile(r"[.,;:!?…]+(?=\s|\Z)")  # before a blank alone: no word may grow together with the next
_APOSTROPHES = str.maketrans("", "", "'’")


@dataclass(frozen=True, slots=True)
class Plain:
    """Takes from a word its capitals, its apostrophes and the sentence marks behind it; hyphens and brackets stay.

    `capitals`, `marks`: whether these go. Raises ConfigError where neither does.
    """

    capitals: bool
    marks: bool

    def __post_init__(self) -> None:
        """Check that something goes."""
        if not (self.capitals or self.marks):
            raise ConfigError("perturb.change: capitals=false and marks=false leave nothing to lose; set one to true")

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the plain word, or None when it has nothing to lose."""
        after, end, ops = word.text, word.end, []
        if self.capitals and after != after.lower():
            after = after.lower()
            ops.append("capitals")
        if self.marks and (plain := after.translate(_APOSTROPHES)) != after:
            after = plain
            ops.append("apostrophe")
        if self.marks and (found := _MARKS.match(text, end)):
            end = found.end()
            ops.append("marks")
        return Change(word.start, text[word.start : end], after, "+".join(ops)) if ops else None
