"""Perturbations that break a rule each, as a user's may, and one that keeps to all."""

import random
import time
import unicodedata
from random import Random

from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word


class Kept:
    """Doubles the first letter of a word: what the others do but for their fault."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        rng.random()
        return self.changed(word, word.text[0] + word.text if word.text[0].isalpha() else "")

    def changed(self, word: Word, after: str) -> Change | None:
        return Change(word.start, word.text, after, "broken") if after else None


class Same(Kept):
    """Gives a long word back as it was."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, word.text) if len(word.text) > 6 else super().__call__(word, text, rng)


class Wordy(Kept):
    """Makes two words of one."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, f"very {word.text}")


class Seldom(Kept):
    """Knows no word: no text reaches a level."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return None


class Lower(Kept):
    """Says that a capital was a small letter."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        made = super().__call__(word, text, rng)
        return made and made._replace(before=word.text.lower())


class Elsewhere(Kept):
    """Counts from 1."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        made = super().__call__(word, text, rng)
        return made and made._replace(start=word.start + 1)


class Part(Kept):
    """Names a part of its word."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return Change(word.start, word.text[:1], word.text[:1] * 2, "broken")


class Greedy(Kept):
    """Takes the next word along, protected or not."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        end = word.end + len(text[word.end :].split(" ", 2)[1] if text[word.end :].startswith(" ") else "") + 1
        return Change(word.start, text[word.start : end], word.text[:1] + word.text, "broken")


class Emoji(Kept):
    """Takes a picture along."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        end = word.end + 2 if text.startswith(" 😩", word.end) else word.end
        return Change(word.start, text[word.start : end], word.text[:1] + word.text, "broken")


class Counting(Kept):
    """Remembers how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        self.calls += 1
        return self.changed(word, word.text + "abcdefg"[self.calls % 7])


class Chance(Kept):
    """Draws from a random source of its own."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, word.text + random.choice("abcdefg"))


class Worn(Kept):
    """Works the first few hundred times."""

    def __init__(self) -> None:
        self.left = 300

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("worn out")
        return super().__call__(word, text, rng)


class Choice(Kept):
    """Draws by a method whose numbers another version of Python may change."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, word.text + rng.choice("abcdefg"))


class Unordered(Kept):
    """Takes the first of a set, which depends on PYTHONHASHSEED."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, word.text + next(iter({f"{letter}{word.text[:1]}" for letter in "abcdefghijklm"})))


class Choking(Kept):
    """Knows the letters of English alone."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, {chr(n): chr(n) for n in range(128)}[word.text[0]] + word.text)


class Torn(Kept):
    """Loses the first letter, and leaves its accent."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, word.text[1:] if len(word.text) > 1 else "")


class Unseen(Kept):
    """Writes a word in another form of Unicode."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        after = unicodedata.normalize("NFD", word.text)
        return self.changed(word, after) if after != word.text else super().__call__(word, text, rng)


class Control(Kept):
    """Writes what is no character of a text."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, word.text + "\x08")


class Slow(Kept):
    """Takes its time."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        time.sleep(0.002)
        return super().__call__(word, text, rng)


class Line(Kept):
    """Removes a word with the line's end behind it."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        if not text.startswith("\n", word.end):
            return super().__call__(word, text, rng)
        return Change(word.start, f"{word.text}\n", "", "broken")


class Glue(Kept):
    """Takes the blank along that keeps a word from the next."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        behind = " " if text.startswith(" ", word.end) else ""
        return Change(word.start, word.text + behind, word.text[0] + word.text, "broken")


class Listed(Kept):
    """Makes two words of one without a blank."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, f"{word.text},bad" if word.text.isalpha() else "")


class Dash(Kept):
    """Writes a mark for a word."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, "—" if len(word.text) > 1 else "")


class Invisible(Kept):
    """Adds what no reader sees."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, f"{word.text}\u200b")


class Filler(Kept):
    """Adds a letter that is blank."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, f"{word.text}\u3164")


class Selector(Kept):
    """Adds a mark that only chooses a form."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return self.changed(word, f"{word.text[0]}\ufe0f{word.text[1:]}")


class Seeding(Kept):
    """Forgets the study's seed."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        rng.seed(1)
        return super().__call__(word, text, rng)


class Text(Kept):
    """Gives the new word instead of a change."""

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        return word.text[0] + word.text  # type: ignore[return-value]
