"""Words abbreviated, as in clinical notes and in messages ("patient", "pt"; "hypertension", "HTN")."""

from dataclasses import dataclass
from random import Random
from typing import Protocol

from noisyhealth.perturbations.case import in_case_of
from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word


class Short(Protocol):
    """How a word is abbreviated, with the habit of writing it belongs to."""

    @property
    def text(self) -> str:
        """The abbreviation; with a capital in it, it is written so always."""
        ...

    @property
    def grade(self) -> str:
        """Where it is used ("clinical" or "everyday")."""
        ...


class Shorts(Protocol):
    """A source of abbreviations."""

    def __call__(self, word: str) -> Short | None:
        """Return the abbreviation of a word given in any case, or None."""
        ...


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """Replaces a word by the abbreviation that `shorts` has for it."""

    shorts: Shorts

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the abbreviation, in the word's case where it has none of its own, or None when there is none."""
        if (found := self.shorts(word.text)) is None:
            return None
        own = found.text != found.text.lower()
        return Change(word.start, word.text, found.text if own else in_case_of(word.text, found.text), found.grade)
