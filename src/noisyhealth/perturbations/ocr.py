"""Misreadings of optical character recognition: a letter or two are read as others of the same shape (burn, bum)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from unicodedata import category

from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word


@dataclass(frozen=True, slots=True)
class Ocr:
    """Misreads one place of a word.

    `shapes`: what is printed and what may be read instead, letters as they look: capitals are letters of their own.
    Each place and reading is as likely as another. Raises ConfigError for shapes that are empty or read as blanks.
    """

    shapes: Mapping[str, Sequence[str]]
    _longest: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the shapes."""
        for printed, readings in self.shapes.items():
            if not printed or not readings or any(not read.isalnum() or read == printed for read in readings):
                raise ConfigError(
                    f"perturb.change.shapes[{printed!r}]={list(readings)}: give letters or digits that are others"
                )
        object.__setattr__(self, "_longest", max(map(len, self.shapes), default=0))

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return the word as misread, or None when no shape in it is confused."""
        found = self._places(word.text)
        if not found:
            return None
        at, printed, read = found[int(rng.random() * len(found))]
        after = word.text[:at] + read + word.text[at + len(printed) :]
        return Change(word.start, word.text, after, f"{printed}>{read}")

    def _places(self, word: str) -> list[tuple[int, str, str]]:
        """List where what may be read as what, from the left; never a letter with an accent of its own behind it."""
        return [
            (at, printed, read)
            for at in range(len(word))
            for size in range(1, self._longest + 1)
            if (printed := word[at : at + size]) in self.shapes and at + size <= len(word)
            if not category(word[at + size : at + size + 1] or " ").startswith("M")
            for read in self.shapes[printed]
        ]
