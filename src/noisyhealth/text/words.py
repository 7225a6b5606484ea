"""What counts as a word.

A word is a run of characters between white space that holds a letter or a digit, without the
punctuation around it, so that a reader who counts words gets the same number. Where the blank
was forgotten, punctuation inside a run ends a word too: , ; ! ? … or several marks in a row, with a
letter behind, and several marks with a digit behind ("yes!I", "wait...what", "EXAM:,1" are two words
each), and a dash, — or --, with a letter behind ("units--were"). One stop or colon does not ("e.g.", "8:30"),
nor a mark in a number, a formula or an address ("1,000", "N,N-", "t(4;11)").
An emoticon, a link and an e-mail address are words of their own; an HTML entity (&quot;) is punctuation.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import category

from noisyhealth.errors import ConfigError
from noisyhealth.text.protection import PROTECTIONS, Part, judge, protections

__all__ = ["PROTECTIONS", "Span", "spans"]


@dataclass(frozen=True, slots=True)
class Span:
    """A word before tagging: its text, where it starts, and the kind of rule that protects it.

    `protection` is one of PROTECTIONS, or "" where none protects the word.
    """

    text: str
    start: int
    protection: str


def spans(text: str, protect: frozenset[str] = PROTECTIONS) -> list[Span]:
    """Return the words of a text in order, each with the first kind in `protect` that protects it.

    number: a word with a digit, and the unit after one. dose: Latin dosing abbreviations. name: @name.
    tag: #tag. emoji: a word that holds an emoji, or an emoticon with a letter or a 3 in it.

    Raises ConfigError for a kind that is not in PROTECTIONS.

    >>> [(s.text, s.protection) for s in spans("Took 2.5 mg at 8:30,then rest!")][1:5]
    [('2.5', 'number'), ('mg', 'number'), ('at', ''), ('8:30', 'time')]
    """
    if unknown := protect - PROTECTIONS:
        raise ConfigError(
            f"{sorted(unknown)} in the key `protect` is no kind of protection: use any of {sorted(PROTECTIONS)}"
        )
    words = [(part, run.start() + part.offset) for run in _RUN.finditer(text) for part in _parts(run[0])]
    kinds = protections(text, words, protect)
    return [Span(part.text, start, kind) for (part, start), kind in zip(words, kinds, strict=True)]


_RUN = re.compile(r"\S+")
_CORE = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<email>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+)
    | (?P<link>(?:(?:https?|ftp)://|(?<![^\W_])www\.)\S+)
    | (?P<emoji>(?<!\w)(?:[:;=]['’]?-?(?:D+|P+|p+|O+|o+|S+|[dsXxLlBb])|[xX]D+|[oO][._]+[oO0]|T_+T)
            (?!\w)
        | (?<=[^\W\d_]{2})(?<!&amp)[:;]-?(?:D+|P+|p+|O+|o+|S)(?!\w)  # glued: "good:D"
        | (?:&lt;|(?<![^\W_])<)3+(?![\w%]|[.,]\d))
    | (?P<cut>&(?:quot|lt|gt|nbsp|apos);|(?<![^\W_])&amp;|&amp;(?![^\W_])
        | [.,;:!?…]{2,}(?=[)\]"'“”‘’(\[@\#]*[^\W_]) | [!?…](?=[)\]"'“”‘’(\[@\#]*[^\W\d_])(?!['’]s\b)
        | (?:-{2,}|—+)(?=[)\]"'“”‘’(\[@\#]*[^\W\d_])
        | (?<=\d)[,;](?=[^\W\d_]{3})
        | (?<=[^\d])(?<!&amp)[,;](?=[)\]"'“”‘’(\[@\#]*[^\W\d_](?!\d))(?!['’]?[ts]\b)
          (?<!(?<![^\W_])[^\W_].(?=[^\W_](?![^\W_])))  # N,N
    )""",
    re.VERBOSE,
)


@lru_cache(maxsize=1 << 16)
def _parts(run: str) -> tuple[Part, ...]:
    """Return the words of a run, which may be none."""
    return tuple(judge(run, *piece) for piece in _pieces(run))


def _pieces(run: str) -> Iterator[tuple[int, int, int, str]]:
    """Yield of each word where its piece of the run, the word and the word's end are, and what it is by form."""
    marks, at = [], 0
    if not run.isalnum() or run[0] in "xX":  # xD
        for token in _TOKEN.finditer(run):
            marks += [(at, token.start(), ""), (token.start(), token.end(), token.lastgroup or "")]
            at = token.end()
    for left, right, form in [*marks, (at, len(run), "")]:
        if run.startswith("&lt;", left) and form == "emoji":
            left += len("&lt;")  # noqa: PLW2901
        if form != "cut" and (core := _CORE.search(run, left, right)):
            end = core.end()
            while end < right and category(run[end]).startswith("M"):
                end += 1  # an accent that stands for itself belongs to the letter before it
            yield left, core.start(), end, form
