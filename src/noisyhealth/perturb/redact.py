"""Words left out, as people do when they hide something or hurry."""

from dataclasses import dataclass
from random import Random

from noisyhealth.perturb.engine import Change
from noisyhealth.records import Word


@dataclass(frozen=True, slots=True)
class Redact:
    """Removes a word, or puts `mask` in its place.

    A removed word takes the space after it along where two spaces would be left; nothing else
    around it moves.
    """

    mask: str = ""

    def __call__(self, word: Word, text: str, rng: Random) -> Change:
        """Return the removal of the word."""
        end = word.end
        if not self.mask and text[end : end + 1] == " " and text[: word.start][-1:] in ("", " ", "\n", "\t"):
            end += 1
        return Change(word.start, text[word.start : end], self.mask, "mask" if self.mask else "remove")
