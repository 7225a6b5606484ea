"""Whether an answer states the numbers of its reference and negates the same things.

What BLEU, ROUGE and BERTScore hardly see (2.5 mg against 5.2 mg, "no chest pain" against "chest
pain") and a patient does. Regular expressions only: what they read is what this page says.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from noisyhealth.metrics import pairs
from noisyhealth.records import Scores


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """A number and its unit ("" where none known follows it)."""

    number: str
    unit: str


def scores(references: Sequence[str], candidates: Sequence[str]) -> Scores:
    """Return `number_agreement` and `negation_agreement` (means, 0 to 1), each with its n.

    `number_n` and `negation_n` count the examples where either side has a number, a negation;
    the means run over those alone. Where n is 0 there is no mean and its key is missing.

    Raises DataError for no examples or unequal lengths.

    >>> scores(["2.5 mg", "no chest pain"], ["5.2 mg", "denies chest pain"])
    {'number_n': 1.0, 'number_agreement': 0.0, 'negation_n': 1.0, 'negation_agreement': 1.0}
    """
    pairs.check(references, candidates)
    both = list(zip(references, candidates, strict=True))
    measured = {
        "number": [number_agreement(reference, candidate) for reference, candidate in both],
        "negation": [negation_agreement(reference, candidate) for reference, candidate in both],
    }
    result: Scores = {}
    for name, each in measured.items():
        known = [value for value in each if value is not None]
        result[f"{name}_n"] = float(len(known))
        if known:
            result[f"{name}_agreement"] = sum(known) / len(known)
    return result


def number_agreement(reference: str, candidate: str) -> float | None:
    """Return twice the shared quantities over the quantities of both sides; None where neither has any.

    Two quantities agree when their numbers are equal and their units are, or one has no unit.
    Units are not converted: 0.5 g and 500 mg disagree.

    >>> number_agreement("2.5 mg for 10 days", "2.5 mg")
    0.6666666666666666
    """
    left, right = quantities(reference), quantities(candidate)
    if not left and not right:
        return None
    return 2 * _shared(left, right) / (len(left) + len(right))


def negation_agreement(reference: str, candidate: str) -> float | None:
    """Return how far the two sides negate alike; None where neither negates.

    Of the words that both have and at least one negates: the share that both negate. Where there
    is no such word, 1 if both sides have a negation and 0 if one has.

    >>> negation_agreement("No fever, but chest pain.", "Fever, no chest pain")
    0.0
    """
    left, right = negated(reference), negated(candidate)
    if left is None and right is None:
        return None
    either = (left or set()) | (right or set())
    common = either & set(_words(reference)) & set(_words(candidate))
    if not common:
        return float(left is not None and right is not None)
    return len(common & (left or set()) & (right or set())) / len(common)


def quantities(text: str) -> list[Quantity]:
    """Return the different quantities of a text, sorted.

    Read as one number: 120/80, 10:30, 1,000 (a thousand), 2,5 (a decimal comma). Words count from
    two to twelve, and "one" before a unit. A word with a digit behind letters is kept whole (B12,
    q6h). 2.50 is 2.5. A minus is a sign only behind a space or a bracket (5-10 is 5 and 10).

    >>> [(q.number, q.unit) for q in quantities("Took 2.50 mg of B12 twice, BP 120/80")]
    [('120/80', ''), ('2.5', 'mg'), ('b12', '')]
    """
    found = set()
    for match in _QUANTITY.finditer(text.lower()):
        unit = _unit(match["unit"] or "")
        if match["name"] != "one" or unit:
            found.add(Quantity(_number(match["name"] or match["number"] or match["code"]), unit))
    return sorted(found)


def negated(text: str) -> set[str] | None:
    """Return the words a text negates; None where it holds no negation.

    A negation reaches five content words on, to the end of its clause; "absent", "negative" and
    "ruled out" reach as far back too. After NegEx (Chapman et al. 2001, doi:10.1006/jbin.2001.1029),
    with the cues of `_CUES` and the pseudo-negations of `_PSEUDO` ("not only", "no doubt"). A comma
    ends a clause unless "or" follows in the sentence ("no fever, chills or cough").

    >>> sorted(negated("Denies chest pain but has a fever") or ())
    ['chest', 'pain']
    """
    reach: set[str] | None = None
    for clause in _CLAUSE_END.split(_PSEUDO.sub(" ", _plain(text))):
        for cue in _CUES.finditer(clause):
            behind = _words(clause[cue.end() :])[:_REACH]
            before = _words(clause[: cue.start()])[-_REACH:] if cue["both"] else []
            reach = (reach or set()) | set(behind) | set(before)
    return reach


_REACH = 5  # words, as in NegEx
_CLAUSE_END = re.compile(
    r"[.;!?()\n]|,(?![^.;!?()\n]*\bn?or\b)|\b(?:but|however|although|though|except|yet|still|has)\b"
)
_PSEUDO = re.compile(r"\bnot only\b|\bno (?:doubt|wonder)\b|\bnot (?:necessarily|certain|sure)\b|\bno\.?\s*(?=\d)")
_CUES = re.compile(
    r"\b(?:no|not|never|none|neither|nor|without|cannot|den(?:y|ies|ied|ying)|free of|absence of|lack of"
    r"|negative for|\w+n't|(?P<both>absent|negative|ruled out))\b"
)
_STOPPED = (
    "a an and any are at be been by did do does for from had have he her his i in is it its me my of on or she "
    "that the their there they this to was were you your yes no not never none neither nor without cannot"
)
_STOP = frozenset(_STOPPED.split())


def _plain(text: str) -> str:
    return text.lower().replace("\u2019", "'")


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"[^\W_]+(?:'[^\W_]+)*", _plain(text)) if word not in _STOP]


_UNITS: Mapping[str, str] = {
    alias: unit
    for unit, aliases in {
        "mcg": "mcg mcgs ug \u00b5g \u03bcg microgram micrograms",
        "mg": "mg mgs milligram milligrams",
        "g": "g gm gms gram grams",
        "kg": "kg kgs kilogram kilograms kilo kilos",
        "lb": "lb lbs pound pounds",
        "ml": "ml mls cc milliliter milliliters millilitre millilitres",
        "dl": "dl deciliter decilitre",
        "l": "l liter liters litre litres",
        "mm": "mm",
        "cm": "cm cms centimeter centimeters centimetre centimetres",
        "mmhg": "mmhg",
        "mmol": "mmol",
        "meq": "meq",
        "unit": "u iu unit units",
        "bpm": "bpm",
        "%": "% percent",
        "\u00b0c": "\u00b0c",
        "\u00b0f": "\u00b0f",
        "second": "sec secs second seconds",
        "minute": "min mins minute minutes",
        "hour": "h hr hrs hour hours",
        "day": "d day days",
        "week": "wk wks week weeks",
        "month": "mo mos month months",
        "year": "y yr yrs year years",
        "time": "x time times",
        "tablet": "tab tabs tablet tablets pill pills",
        "capsule": "cap caps capsule capsules",
        "puff": "puff puffs",
        "drop": "drop drops",
        "dose": "dose doses",
    }.items()
    for alias in aliases.split()
}
_NAMED = "one two three four five six seven eight nine ten eleven twelve"
_NAMES: Mapping[str, str] = {name: str(number) for number, name in enumerate(_NAMED.split(), start=1)}
_ANY_UNIT = "|".join(re.escape(alias) for alias in sorted(_UNITS, key=len, reverse=True))
_QUANTITY = re.compile(
    rf"(?:(?P<code>\b[a-z]+\d[a-z\d]*)"
    rf"|(?P<number>(?:(?<![^\s(\[])[-\u2212])?(?<![\w.])(?:\d+(?:[.,/:]\d+)*|\.\d+))"
    rf"|\b(?P<name>{'|'.join(_NAMES)})\b)"
    rf"(?:[ \u00a0-]?(?P<unit>(?:{_ANY_UNIT})(?:(?:/| per )(?:{_ANY_UNIT}))?)(?!\w))?"
)


def _number(read: str) -> str:
    """Return the number in one spelling; whatever is no plain number (120/80, b12) stays as read."""
    read = _NAMES.get(read, read).replace("\u2212", "-")
    if re.fullmatch(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?", read):
        read = read.replace(",", "")
    read = re.sub(r"(?<=\d),(?=\d+$)", ".", read)
    if not re.fullmatch(r"-?\d*\.?\d+", read):
        return read
    return format(Decimal(read).normalize() + 0, "f")


def _unit(read: str) -> str:
    return "/".join(_UNITS[part] for part in re.split(r"/| per ", read)) if read else ""


def _shared(left: Sequence[Quantity], right: Sequence[Quantity]) -> int:
    """Return how many quantities pair off: equal ones first, then those where a unit is missing."""
    equal = set(left) & set(right)
    rest, count = [q for q in right if q not in equal], len(equal)
    for quantity in (q for q in left if q not in equal):
        for other in rest:
            if quantity.number == other.number and "" in (quantity.unit, other.unit):
                rest.remove(other)
                count += 1
                break
    return count
