"""Which words carry what a clinical reader must not lose: negations, numbers, sides, drugs.

One word is judged alone, whatever stands around it: "right" is a side in "right now" too.
"""

import re
from functools import cache, lru_cache

from noisyhealth.text.medical import MedicalTerms
from noisyhealth.text.protection import UNITS, has_number, is_unit

FLAGS = ("negation", "number", "laterality", "drug")


def flags(word: str) -> tuple[str, ...]:
    """Return which of FLAGS a word touches, in that order; a compound touches what its parts do.

    >>> flags("Denies"), flags("2.5"), flags("left-sided"), flags("pain")
    (('negation',), ('number',), ('laterality',), ())
    """
    if not word.isalpha():
        return _compound(word)
    return _alone().get(word.lower(), ())  # most words, and most typos, are letters alone


@cache
def _alone() -> dict[str, tuple[str, ...]]:
    """Return the flags of every flagged word of letters alone."""
    drugs = MedicalTerms.load().drugs
    return _ALONE | {drug: (*_ALONE.get(drug, ()), "drug") for drug in drugs}


@lru_cache(maxsize=1 << 16)
def _compound(word: str) -> tuple[str, ...]:
    parts = [_plain(part) for part in (word, *_SEAMS.split(word))]
    is_drug = MedicalTerms.load().is_drug
    touched = (
        any(part in _NEGATIONS or part.endswith("n't") for part in parts),
        any(part in _NUMBERS for part in parts) or has_number(word) or is_unit(parts[0]),
        any(part in _SIDES for part in parts),
        any(map(is_drug, parts)),
    )
    return tuple(flag for flag, touches in zip(FLAGS, touched, strict=True) if touches)


_SEAMS = re.compile(r"[-‐‑–/]")

# The cues of NegEx (Chapman et al. 2001, doi:10.1006/jbin.2001.1029) that are one word or turn on one ("ruled
# out" and "free of" do not), their inflections, and what else an English sentence is negated with. Contractions
# without the apostrophe are what people type. Of un- only "unable": "unlikely" is a degree, "unstable" a finding.
_NEGATION = """
    no not never none nor neither nothing nobody nowhere non noone without w/o deny denies denied denying denial
    negative negatives negatively absent absence lack lacks lacked lacking unable cannot aint arent cant couldnt
    didnt doesnt dont hadnt hasnt havent isnt mightnt mustnt neednt shouldnt wasnt werent wont wouldnt
"""
_NEGATIONS = frozenset(_NEGATION.split())
_NUMBER = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand
    thousands million millions billion billions dozen dozens half halves quarter quarters third thirds first second
    fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth
    seventeenth eighteenth nineteenth twentieth thirtieth once twice thrice double triple
"""
_NUMBERS = frozenset(_NUMBER.split())
# No "rt", "lt", "r", "l": retweet, radiotherapy, reaction time, less than are as common. "bilat" is nothing else.
_SIDES = frozenset(
    f"{head}{tail}"
    for heads, tails in (
        (("left", "right"), ("", "ward", "wards", "most")),
        (("bilateral", "unilateral", "ipsilateral", "contralateral"), ("", "ly", "ity")),
        (("bilat",), ("",)),
    )
    for head in heads
    for tail in tails
)


def _plain(word: str) -> str:
    return word.lower().replace("’", "'").removesuffix("'").removesuffix("'s")


# The flags of single words but for drugs, which have a table of their own.
_ALONE = {
    word: tuple(
        flag for flag, words in zip(FLAGS, (_NEGATIONS, _NUMBERS | UNITS, _SIDES), strict=False) if word in words
    )
    for word in _NEGATIONS | _NUMBERS | UNITS | _SIDES
}
