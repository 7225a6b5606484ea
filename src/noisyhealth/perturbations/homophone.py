"""Words that sound alike: a word is replaced by its first sound-alike ("disease", "decease").

The study asked Datamuse for the first homophone of each word (Joshi et al. 2026, Methods,
"Perturbation Techniques"); here the source of sounds is a setting.
"""

from dataclasses import dataclass
from random import Random
from typing import Protocol

from noisyhealth.perturbations.case import in_case_of
from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word


class SoundAlike(Protocol):
    """A word that sounds like another, with how near it is ("exact" or "near")."""

    @property
    def word(self) -> str:
        """The other word, in lower case."""
        ...

    @property
    def grade(self) -> str:
        """How near it sounds."""
        ...


class Sounds(Protocol):
    """A source of sound-alikes."""

    def __call__(self, word: str) -> SoundAlike | None:
        """Return the first sound-alike of a word given in any case, or None."""
        ...


@dataclass(frozen=True, slots=True)
class Homophone:
    """Replaces a word by the first word of `sounds` that sounds like it."""

    sounds: Sounds

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the sound-alike in the word's case, or None when there is none."""
        found = self.sounds(word.text)
        if found is None or found.word.lower() == word.text.lower():
            return None
        return Change(word.start, word.text, in_case_of(word.text, found.word), found.grade)
