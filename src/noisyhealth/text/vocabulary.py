"""Which words are known, how common each is, and which known word an unknown one was most likely meant to be.

The words are those of the offline tables in `noisyhealth/data/tables`: English with how common each is (`words.tsv`),
words with a sound-alike, medical terms word by word, drug names, abbreviations and what they stand for.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from noisyhealth.text.medical import MedicalTerms, forms, has_affix
from noisyhealth.text.words import spans

_LETTERS = re.compile(r"[a-z]+")
_PIECE = re.compile(r"[^\W\d_]+")
_APOSTROPHES = frozenset("'’")
_BEGINS = re.compile(r"(?:^|[.!?:;\n…])[^\w\n]*$")  # what stands before a word that begins a sentence or a line
_BEFORE = 20  # characters in which that is looked for
# Before a known word of five letters or more they make a word that lists lack: infrarenal, fibromuscular, reoperated.
_PREFIX = re.compile(
    r"(?:anti|auto|cardio|endo|extra|fibro|gastro|hemi|hyper|hypo|infra|inter|intra|macro|micro|multi|myelo|neuro|over"
    r"|para|peri|poly|post|pre|pseudo|radio|re|sub|super|supra|thrombo|trans|ultra|under|un|non)(?=[a-z]{5})"
)
_UNRANKED = 35  # of words that books' list lacks: below its rarest, as ten times the common logarithm of a count


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of the offline tables, read once per process at the first question; all in small letters."""

    def __contains__(self, word: str) -> bool:
        """Tell whether a word in small letters is known: itself, inflected, in British spelling, or but for a prefix.

        >>> words = ("hypotension", "weeks", "metformin", "haemangiomas", "analyzed", "infrarenal", "weekks")
        >>> [word in Vocabulary() for word in words]
        [True, True, True, True, True, True, False]
        """
        return any(form in _common() for form in _related(word))

    def nearest(self, word: str, least: Sequence[int]) -> str:
        """Return the known word that an unknown one is most likely a misspelling of, "" where there is none.

        It is the one with the fewest insertions, deletions, substitutions and transpositions of neighbours between them
        (optimal string alignment), of several the commonest in books, then the first by name. `least`: how common a
        word over one error must be, over two, and so on (10 times the common logarithm of its count); over more there
        is none. Over one error any medical word will do; for a word built from medical parts, which is likely to be
        right and on no list, nothing else than a medical term that is no drug.

        >>> [Vocabulary().nearest(word, [60, 70]) for word in ("hospitl", "mteformin", "qqqqqq")]
        ['hospital', 'metformin', '']
        """
        return _nearest(word, tuple(least))


class Piece(NamedTuple):
    """A run of letters ("back-pain" has two): its text, where it starts, and the index of its word in the text."""

    text: str
    start: int
    word: int


def judged(text: str) -> Iterator[Piece]:
    """Yield the runs of letters whose spelling can be judged by a list of words.

    Not those of a word of a protected kind (numbers, doses, dates, links, @names) or with an apostrophe, with a capital
    inside (abbreviations), with a first capital within a sentence (names), or with a letter beyond a to z.

    >>> [piece.text for piece in judged("Seen by Dr Okafor, COPD and back-pian. Didn't take 2 mg of Aspirin on 3 May")]
    ['Seen', 'by', 'and', 'back', 'pian', 'take', 'of', 'on']
    """
    for at, word in enumerate(spans(text)):
        if not word.protection and not _APOSTROPHES.intersection(word.text):
            for found in _PIECE.finditer(word.text):
                start = word.start + found.start()
                begins = _BEGINS.search(text[max(0, start - _BEFORE) : start])
                if found[0].isascii() and (found[0].islower() or (begins and found[0][1:].islower())):
                    yield Piece(found[0], start, at)


@lru_cache(maxsize=1 << 16)
def _nearest(word: str, least: tuple[int, ...]) -> str:
    affixed, most = has_affix(word), len(least)
    found: list[tuple[int, int, str]] = []
    for size in range(len(word) - most, len(word) + most + 1):
        if words := _by_length(min(least, default=0)).get(size):
            [row] = cdist([word], words, scorer=OSA.distance, score_cutoff=most)
            for at in (row <= most).nonzero()[0]:
                near, far = words[at], int(row[at])
                # Another drug's name is no repair of what may be a drug's name.
                medical = far == 1 and near in (_terms() if affixed else _medical())
                if medical or (not affixed and _common()[near] >= least[far - 1]):
                    found.append((far, -_common()[near], near))
    return min(found)[2] if found else ""


def _related(word: str) -> Iterator[str]:
    """Yield a word and those of which a known one makes it known too."""
    british = word.replace("ae", "e").replace("oe", "e"), word.replace("z", "s")
    for spelled in dict.fromkeys((word, *british)):
        yield from forms(spelled)
        if found := _PREFIX.match(spelled):
            yield from forms(spelled[found.end() :])


@cache
def _common() -> Mapping[str, int]:
    """Return how common each known word is."""
    words = dict.fromkeys((*_sounding(), *_medical(), *_shortened()), _UNRANKED)
    return words | {word: int(rank) for word, rank in _rows("words.tsv")}


@cache
def _by_length(least: int) -> Mapping[int, Sequence[str]]:
    """Return the words that a misspelling may stand for, by their number of letters."""
    found: dict[int, list[str]] = {}
    for word, rank in sorted(_common().items()):
        if rank >= least or word in _medical():
            found.setdefault(len(word), []).append(word)
    return found


@cache
def _terms() -> frozenset[str]:
    """Return the words of the medical terms."""
    return frozenset(word for term in MedicalTerms.load().terms for word in _LETTERS.findall(term))


@cache
def _medical() -> frozenset[str]:
    """Return the same with the words of drug names."""
    return _terms().union(word for name in MedicalTerms.load().drugs for word in _LETTERS.findall(name))


def _sounding() -> Iterator[str]:
    for word, _, candidates in _rows("homophones.tsv"):
        yield from (word, *candidates.split(","))


def _shortened() -> Iterator[str]:
    for row in _rows("abbreviations.tsv"):
        yield from _LETTERS.findall(" ".join(row).lower())


def _rows(name: str) -> Iterator[list[str]]:
    table = files("noisyhealth").joinpath("data", "tables", name)
    for line in table.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t")
