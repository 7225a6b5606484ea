"""Words left out, as people do when they hide something or hurry."""

from dataclasses import dataclass
from random import Random

from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word

_BLANKS = " \u00a0"  # line breaks and tabs never go


@dataclass(frozen=True, slots=True)
class Redact:
    """Removes a word, or puts `mask` in its place.

    A removed word takes the blanks after it along where blanks stand before it too, so that none is left
    double that was not; nothing else around it moves. Raises ConfigError for a mask that is not one word.
    """

    mask: str = ""

    def __post_init__(self) -> None:
        """Check the mask: a word stands for a word."""
        if any(char.isspace() for char in self.mask):
            raise ConfigError(f"perturb.change.mask={self.mask!r} has a blank: give one word, as ___")

    def __call__(self, word: Word, text: str, rng: Random) -> Change:
        """Return the removal of the word."""
        end = word.end
        if not self.mask and (word.start == 0 or text[word.start - 1].isspace()):
            while end < len(text) and text[end] in _BLANKS:
                end += 1
        return Change(word.start, text[word.start : end], self.mask, "mask" if self.mask else "remove")
