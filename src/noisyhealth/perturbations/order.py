"""Word order: a word stands behind the word that should follow it ("chest severe pain")."""

import re
from dataclasses import dataclass
from random import Random
from unicodedata import category

from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word

_NEXT = re.compile(r"([ \u00a0]+)([^\W_](?:\S*[^\W_])?)")  # no line break, tab or mark lies between


@dataclass(frozen=True, slots=True)
class Order:
    """Moves a word past the next; both keep their spelling, and marks and blanks keep their places.

    One word counts as disturbed, the one that moves. The engine makes the change only where the next word is a valid
    one that no other edit touches.
    """

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the word and the next exchanged, or None where no other word follows behind blanks alone."""
        if (found := _NEXT.match(text, word.end)) is None:
            return None
        end = found.end()
        while end < len(text) and category(text[end]).startswith("M"):
            end += 1  # an accent that stands for itself goes with its letter
        blanks, other = found[1], text[found.start(2) : end]
        if other == word.text:
            return None
        return Change(word.start, text[word.start : end], f"{other}{blanks}{word.text}", "move")
