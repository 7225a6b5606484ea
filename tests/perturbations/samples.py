"""What the tests of the disturbances share: texts, ways to change a word, and second sources."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from noisyhealth.perturbations.abbreviation import Abbreviation
from noisyhealth.perturbations.dictation import Dictation
from noisyhealth.perturbations.engine import Change, Key, OutOfReach, Perturbation, Unit, disturb, ranked
from noisyhealth.perturbations.homophone import Homophone
from noisyhealth.perturbations.mixture import Mixture
from noisyhealth.perturbations.ocr import Ocr
from noisyhealth.perturbations.order import Order
from noisyhealth.perturbations.plain import Plain
from noisyhealth.perturbations.redact import Redact
from noisyhealth.perturbations.typo import Typo
from noisyhealth.records import Edit, Variant, Word
from noisyhealth.text.abbreviations import Abbreviations
from noisyhealth.text.homophones import Table
from noisyhealth.text.lexicon import Lexicon
from noisyhealth.text.shapes import shapes
from noisyhealth.text.words import spans

TEXTS = {
    "message": (
        "@nurse_jo Day 3 of metformin 500 mg b.i.d. and my stomach is STILL in knots 😩😩 Couldn't finish dinner, "
        "couldn't sleep… see https://example.org/my-diary #diabetes"
    ),
    "note": (
        "PROGRESS NOTE\r\n\r\nS:\tPt reports less pain (4/10), slept well.\n\n  O: BP 120/80, T 37.2 °C; wound dry\n"
        "A/P: continue  cefazolin 1 g q8h,\tdrain out tomorrow.  \n"
    ),
    "abstract": (
        "Gastric emptying after truncal vagotomy. Forty-two patients were studied (mean age 51.4 years) and "
        "half-emptying was delayed in 38% (p<0.001); symptoms did not correlate with the measured delay."
    ),
    "decomposed": unicodedata.normalize(
        "NFD", "Après la césarienne, naïve café drinkers slept better — Señora Núñez too."
    ),
    "composed": unicodedata.normalize(
        "NFC", "Après la césarienne, naïve café drinkers slept better — Señora Núñez too."
    ),
    "mixed scripts": "頭痛 since Monday, боль сильная, took ibuprofen 👩‍⚕️ and felt better 次の日 honestly",
}
RATES = {"low": 0.1, "mid": 0.3, "high": 0.5}
KEY = Key(0, "qa", "1", "p")


def always(word: Word, text: str, rng: Random) -> Change:
    """Change every word, so that only the words' validity bounds a dose."""
    return Change(word.start, word.text, f"<{int(rng.random() * 10)}>", "always")


def only_long(word: Word, text: str, rng: Random) -> Change | None:
    return always(word, text, rng) if len(word.text) > 4 else None


OWN: dict[str, Perturbation] = {
    "typo": Typo(),
    "redact": Redact(),
    "homophone": Homophone(Table()),
    "abbreviation": Abbreviation(Abbreviations()),
    "order": Order(),
    "ocr": Ocr(shapes()),
    "dictation": Dictation(Lexicon()),
    "plain": Plain(capitals=True, marks=True),
}


@dataclass(frozen=True)
class Part:
    """A part of a mixture, with nothing but its change."""

    change: Perturbation | None


OWN["mixture"] = Mixture({name: Part(change) for name, change in OWN.items()}, dict.fromkeys(OWN, 1.0))
CHANGES: dict[str, Perturbation] = {"always": always, "only long": only_long, **OWN}


def words(text: str) -> list[Word]:
    return [Word(s.text, s.start, "NOUN", not s.protection, False) for s in spans(text)]


def levels(
    text: str,
    rates: Mapping[str, float],
    *,
    change: Perturbation = always,
    key: Key = KEY,
    unit: Unit = Unit.WORDS,
) -> dict[str, Variant | OutOfReach]:
    """Return the text at each of the rates, nested."""
    found = words(text)
    return disturb(text, found, ranked(text, found, change, key.rng()), rates=rates, unit=unit, example="1")


def at(
    text: str, rate: float, *, change: Perturbation = always, key: Key = KEY, unit: Unit = Unit.WORDS
) -> Variant | OutOfReach:
    return levels(text, {"it": rate}, change=change, key=key, unit=unit)["it"]


def reached(found: Variant | OutOfReach) -> Variant:
    assert isinstance(found, Variant)
    return found


def possible(text: str, change: Perturbation, key: Key = KEY) -> list[Edit]:
    """List all edits of a text in the order of a dose."""
    return list(ranked(text, words(text), change, key.rng()))


def counted(text: str) -> int:
    """Count words without the package: chunks between white space that hold a letter or a digit."""
    return sum(any(char.isalnum() for char in chunk) for chunk in text.split())


def asked(n: int, rate: float) -> int:
    """Count what a rate asks for in whole numbers, a half rounded up."""
    return int(n * Fraction(str(rate)) + Fraction(1, 2))


def osa(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the insertions, deletions, substitutions and swaps of neighbours, no place changed twice.

    The optimal string alignment distance, by the recurrence of Boytsov 2011, doi:10.1145/1963190.1963191.
    """
    table = [[max(i, j) if not i * j else 0 for j in range(len(other) + 1)] for i in range(len(one) + 1)]
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            costs = [table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (one[i - 1] != other[j - 1])]
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                costs.append(table[i - 2][j - 2] + 1)
            table[i][j] = min(costs)
    return table[-1][-1]
