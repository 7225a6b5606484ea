"""What counts as a word, and which words are left alone by rule.

A word is a run of characters between white space that holds a letter or a digit, without the
punctuation around it, so that a reader who counts words gets the same number.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_CHUNK = re.compile(r"\S+")
_CORE = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)

_UNIT = (
    r"(?:mg|mcg|µg|μg|ug|ng|g|kg|lbs?|oz|ml|mL|dl|dL|l|L|cc|mmol|mol|mEq|meq|IU|iu|units?|U|mm|cm|m|km|ft|in|"
    r"mmHg|mmhg|kPa|bpm|Hz|Gy|cGy|kcal|cal|kJ|hrs?|h|hours?|mins?|minutes?|secs?|s|days?|wks?|weeks?|mos?|months?|yrs?|"
    r"years?|am|pm|AM|PM|a\.m|p\.m|tabs?|tablets?|caps?|capsules?|puffs?|drops?|sprays?|pills?|doses?|times|"
    r"C|F|°C|°F|percent|mg/kg|mg/dl|mg/dL|mmol/l|mmol/L|g/dl|g/dL|ml/min|mL/min)"
)
_DOSE = re.compile(r"(?:b\.?i\.?d|t\.?i\.?d|q\.?i\.?d|q\.?d|q\.?h\.?s|p\.?r\.?n|q\d+h?|po|iv|im|sc)", re.IGNORECASE)
_MONTH = re.compile(
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)",
    re.IGNORECASE,
)
_IS_UNIT = re.compile(_UNIT)
_LINK = re.compile(r"(?:https?://|www\.)|[\w.+-]+@[\w-]+\.\w|\b[\w-]+\.(?:com|org|net|gov|edu|io|uk)\b", re.IGNORECASE)


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
            yield chunk[0], core[0], chunk.start() + core.start()


def _is_protected(chunk: str, core: str, before: str, after: str) -> bool:
    if any(char.isdigit() for char in core) or _LINK.search(chunk):
        return True
    if chunk.lstrip("(\"'[.“‘").startswith(("@", "#")) or _DOSE.fullmatch(core):
        return True
    if before[-1:].isdigit() and (_IS_UNIT.fullmatch(core) or _MONTH.fullmatch(core)):
        return True
    return bool(_MONTH.fullmatch(core) and after[:1].isdigit())
