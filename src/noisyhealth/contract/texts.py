"""The texts that a perturbation is checked on: those of its tasks, and some that are hard to get right."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from noisyhealth.dataset import clean
from noisyhealth.dataset.attrition import Attrition
from noisyhealth.dataset.design import QUESTION, Design, Disturbance
from noisyhealth.records import Example, Word
from noisyhealth.text.words import spans

SENTENCE = (
    "The patient was admitted on Monday with severe chest pain; her doctor suspected a pulmonary embolism, and the "
    "scan confirmed it. She couldn't sleep for weeks, received 5 mg of warfarin daily and was discharged after "
    "treatment."
)
"""What a card shows disturbed."""

_DIACRITICS = "Étourdie après la césarienne, naïve café drinkers slept better — Señora Núñez too."
HARD = (
    *("", " ", "x", "…", "@", "500", "😩", "\u0301pain", "pain\x00less relief"),
    "@nurse_jo Day 3 of metformin 500 mg b.i.d. and my stomach is STILL in knots 😩😩 see https://example.org/a #tag",
    "NOTE\r\n\r\nS:\tPt reports less pain (4/10).\n\n  O: BP 120/80, T 37.2 °C; wound dry\nA/P: cefazolin 1 g q8h.  \n",
    unicodedata.normalize("NFC", _DIACRITICS),
    unicodedata.normalize("NFD", _DIACRITICS),
    "頭痛 since Monday, боль сильная, καρδιά, कमी, ألم شديد, ปวดหัว, 👩‍⚕️ better 次の日 honestly",
    "İstanbul Straße ﬁnger ŉ ǅ ʼn Ⅷ ½ µg Å",
    "no\u00a0break thin\u2009space line\u2028end soft\u00adhyphen zero\u200bwidth",
    "I'm (very) \"ill\", she said: o'clock, half-empty; yes!I 'quoted' [bracketed] mRNA COPD d'Artagnan's",
    "pneumono" * 40,
)
"""What breaks programs: no text, one letter, no neighbours on a keyboard, marks of their own, doses, other scripts."""


@dataclass(frozen=True)
class Text:
    """One text with the words of the field that is disturbed. `design`: that of its task, which draws it."""

    design: Design
    example: Example
    field: str
    words: tuple[Word, ...]

    @property
    def body(self) -> str:
        """What is disturbed."""
        return str(getattr(self.example, self.field))


def hard(design: Design, disturbance: Disturbance) -> list[Text]:
    """Return the hard texts; every word that no rule protects may be disturbed, so that each kind of word is met."""
    return [
        Text(design, Example(f"hard {at}", text, "", text), disturbance.field, tuple(_words(text, design)))
        for at, text in enumerate(HARD)
    ]


def _words(text: str, design: Design) -> Iterator[Word]:
    for span in spans(text, design.tagger.protect):
        yield Word(span.text, span.start, "NOUN", not span.protection, False)


def given(design: Design, fields: Sequence[str]) -> list[dict[str, Text]]:
    """Return every usable text of a task, with the words of each field."""
    examples = list(clean.usable(design.source, design.task, Attrition(), design.labels))
    tagged = {field: _tagged(design, examples, field) for field in fields}
    return [dict(zip(tagged, texts, strict=True)) for texts in zip(*tagged.values(), strict=True)]


def _tagged(design: Design, examples: Sequence[Example], field: str) -> list[Text]:
    words = design.tagger.tag(example.question if field == QUESTION else example.text for example in examples)
    return [Text(design, example, field, tuple(found)) for example, found in zip(examples, words, strict=True)]
