"""What is mended in a text: traces of how it was stored, never its wording."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from html.entities import html5

from noisyhealth.errors import ConfigError

BYTE_ORDER_MARK = "byte order mark"  # at a file's start; skipped by the decoder, so never a choice

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|([a-zA-Z][a-zA-Z0-9]{1,31}));")
_LOST_AFTER = re.compile(r"""(\b[A-Z]{2}[A-Z0-9 /&#()'".-]{0,80}:[ \t]*),""")
_LOST_BEFORE = re.compile(r"""(?<=[.!?:])([ \t]*),(?=[ \t]*[A-Z]{2}[A-Z0-9 ,/&#()'".-]{0,80}:)""")
_BLANK_CONTROL = re.compile("[\x0b\x0c\x1c-\x1f]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\ufeff]")


@dataclass(frozen=True, slots=True)
class Mended:
    """A text after its repairs, with the names of those that changed it."""

    text: str
    repairs: tuple[str, ...]


def mend(text: str, repairs: Sequence[str]) -> Mended:
    """Return a text after the repairs that are asked for, in the order of `REPAIRS`.

    >>> mend("AT&T &amp;quot;well&amp;quot;", ["entities"])
    Mended(text='AT&T "well"', repairs=('entities',))
    """
    done = []
    for name, repair in REPAIRS.items():
        if name in repairs and (mended := repair(text)) != text:
            text = mended
            done.append(name)
    return Mended(text, tuple(done))


def checked(repairs: Sequence[str]) -> tuple[str, ...]:
    """Return the names of repairs. Raises ConfigError for one that is none."""
    if isinstance(repairs, str) or (unknown := [name for name in repairs if name not in REPAIRS]):
        wrong = repairs if isinstance(repairs, str) else ", ".join(map(str, unknown))
        raise ConfigError(f"data.source.repair has {wrong}: give a list of some of {', '.join(REPAIRS)}, or []")
    return tuple(repairs)


def _entities(text: str) -> str:
    """Decode HTML's entities until none is left, those stored twice (`&amp;quot;`) too.

    An entity has its semicolon and a name of the HTML standard: "AT&T", "R&D;" and "&copy that" stay.
    """
    while "&" in text and (decoded := _ENTITY.sub(_decoded, text)) != text:
        text = decoded
    return text


def _decoded(entity: re.Match[str]) -> str:
    if (name := entity[1]) is not None:
        return html5.get(f"{name};", entity[0])
    char = unescape(entity[0])
    return entity[0] if char in ("", "\ufffd") else char  # a number that stands for no character


def _headings(text: str) -> str:
    r"""Make the comma that stands for a lost line break, after and before an upper-case heading, a line break.

    So MTSamples' notes have them ("PLAN:,  Rest.,FOLLOW-UP: , Friday."); nothing else changes, blanks and length
    stay. A comma before a heading counts only in a text that has one after a heading.

    >>> _headings("PLAN:,  Rest.,FOLLOW-UP: , Friday.")
    'PLAN:\n  Rest.\nFOLLOW-UP: \n Friday.'
    """
    mended, lost = _LOST_AFTER.subn(r"\1\n", text)
    return _LOST_BEFORE.sub(r"\1\n", mended) if lost else text


def _controls(text: str) -> str:
    r"""Remove control characters and byte order marks but tab and line breaks; those that part words become blanks."""
    return _CONTROL.sub("", _BLANK_CONTROL.sub(" ", text))


REPAIRS: Mapping[str, Callable[[str], str]] = {"entities": _entities, "headings": _headings, "controls": _controls}
