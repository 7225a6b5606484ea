"""What counts as a word, and which words are left alone by rule.

A word is a run of characters between white space that holds a letter or a digit, without the
punctuation around it, so that a reader who counts words gets the same number.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from unicodedata import category

_CHUNK = re.compile(r"\S+")
_CORE = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)

_UNIT = (
    r"(?:mg|mcg|µg|μg|ug|ng|pg|g|kg|lbs?|oz|ml|dl|l|cc|[mµμ]?mol|meq|iu|units?|u|mm|cm|m|km|ft|in|mmhg|kpa|bpm|hz|c?gy|"
    r"k?cal|kj|hrs?|h|hours?|mins?|minutes?|secs?|seconds?|s|days?|d|nights?|wks?|weeks?|mos?|months?|yrs?|y|years?|am|pm|"
    r"a\.m|p\.m|o['’]clock|tabs?|tablets?|caps?|capsules?|puffs?|drops?|sprays?|pills?|doses?|times|beats|breaths|c|f|"
    r"degrees?|percent|(?:micro|milli|kilo)?grams?|kilos?|pounds?|(?:milli)?lit(?:re|er)s?|(?:milli|centi)?met(?:re|er)s?)"
)
_DOSE = re.compile(
    r"(?:b\.?i\.?d|t\.?i\.?d|q\.?i\.?d|q\.?d|q\.?h\.?s|p\.?r\.?n|b\.?d|t\.?d\.?s|q\.?d\.?s|o\.?d|nocte|mane|stat|"
    r"p\.?o|i\.?v|i\.?m|s\.?c)",
    re.IGNORECASE,
)
_MONTH = re.compile(
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)",
    re.IGNORECASE,
)
_IS_UNIT = re.compile(rf"{_UNIT}(?:/{_UNIT})*(?:-old)?", re.IGNORECASE)
_LINK = re.compile(
    r"(?:https?://|www\.)|[\w.+-]+@[\w-]+\.\w|\b[\w-]+\.(?:com|org|net|gov|edu|io|uk)\b|\b[\w-]+\.[a-z]{2,}/\w",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Span:
    """A word before tagging: its text, where it starts, and whether a rule protects it."""

    text: str
    start: int
    protected: bool


def spans(text: str) -> list[Span]:
    """Return the words of a text in order, each with its protection.

    Protected are numbers with the unit after them, doses, times, dates, links, e-mail addresses,
    @names and #tags.

    >>> [s.text for s in spans("Took 2.5 mg at 8:30, @nurse said: relax!") if not s.protected]
    ['Took', 'at', 'said', 'relax']
    """
    found: list[Span] = []
    cores = list(_cores(text))
    for i, (chunk, core, start) in enumerate(cores):
        before = cores[i - 1][1] if i else ""
        after = cores[i + 1][1] if i + 1 < len(cores) else ""
        found.append(Span(core, start, _is_protected(chunk, core, before, after)))
    return found


def _cores(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield each chunk that holds a word, the word without outer punctuation, and its start."""
    for chunk in _CHUNK.finditer(text):
        if core := _CORE.search(chunk[0]):
            end = core.end()
            while end < len(chunk[0]) and category(chunk[0][end]).startswith("M"):
                end += 1  # an accent that stands for itself belongs to the letter before it
            yield chunk[0], chunk[0][core.start() : end], chunk.start() + core.start()


def _has_number(core: str) -> bool:
    return any(char.isdigit() or char in "½¼¾⅓⅔" for char in core)


def _is_protected(chunk: str, core: str, before: str, after: str) -> bool:
    if _has_number(core) or _LINK.search(chunk):
        return True
    if chunk.lstrip("(\"'[.“‘").startswith(("@", "#")) or _DOSE.fullmatch(core):
        return True
    if _has_number(before) and (_IS_UNIT.fullmatch(core) or _MONTH.fullmatch(core)):
        return True
    return bool(_MONTH.fullmatch(core) and after[:1].isdigit())
