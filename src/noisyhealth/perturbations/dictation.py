"""Mishearings of dictation within a word: an ending is dropped or put on, or one affix is taken for another.

Words that sound alike as wholes are homophones. A speech recogniser writes words, so a mishearing is one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from noisyhealth.perturbations.case import in_case_of
from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word

_LEAST = 3  # letters that stay of a word whose ending goes
# What a word ends in and what may be written instead; unstressed endings are what is lost first.
_ENDINGS = (
    *(("'s", ""), ("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e"), ("d", "")),
    *(("ing", ""), ("ing", "e"), ("ily", "y"), ("ly", "")),
)
# What is put on, by part of speech.
_PUT_ON = {"NOUN": (("y", "ies"), ("", "s"), ("", "es")), "VERB": (("", "s"), ("", "es"), ("", "ed"), ("e", "ed"))}
# Affixes with opposite or other meanings that differ by a vowel or one consonant.
_AFFIXES = (
    *(("hyper", "hypo"), ("inter", "intra"), ("ante", "anti"), ("ab", "ad"), ("para", "peri"), ("pre", "pro")),
    *(("ectomy", "ostomy"), ("ectomy", "otomy"), ("ostomy", "otomy"), ("ectomies", "ostomies")),
    *(("ectomies", "otomies"), ("ostomies", "otomies"), ("graphy", "gram"), ("ile", "al"), ("ic", "al")),
)


@dataclass(frozen=True, slots=True)
class Dictation:
    """Replaces a word by one it is misheard as within: each that `is_word` knows is as likely as another.

    `is_word` is asked in small letters.
    """

    is_word: Callable[[str], bool]

    def __call__(self, word: Word, text: str, rng: Random) -> Change | None:
        """Return what was heard, in the word's case, or None when no word is near."""
        near = _near(word.text.lower().replace("’", "'"), word.pos)
        heard = [(other, op) for other, op in near.items() if self.is_word(other)]
        if not heard:
            return None
        other, op = heard[int(rng.random() * len(heard))]
        return Change(word.start, word.text, in_case_of(word.text, other), op)


def _near(word: str, pos: str) -> dict[str, str]:
    """Map what a word in small letters may be misheard as, known or not, to what happened.

    >>> {other: op for other, op in _near("hypertension", "NOUN").items() if other.startswith("hypo")}
    {'hypotension': 'affix'}
    """
    found: dict[str, str] = {}
    for was, heard in _AFFIXES:
        for one, other in ((was, heard), (heard, was)):
            if word.startswith(one):
                found.setdefault(other + word.removeprefix(one), "affix")
            if word.endswith(one):
                found.setdefault(word.removesuffix(one) + other, "affix")
    for ending, instead in (*_ENDINGS, *_PUT_ON.get(pos, ())):
        stem = word.removesuffix(ending)
        if word.endswith(ending) and len(stem + instead) >= _LEAST and not (ending == "ly" and stem[-1:] == "i"):
            found.setdefault(stem + instead, "ending")
            if ending in ("ed", "ing") and len(stem) > _LEAST and stem[-1] == stem[-2]:  # stopped, stopping
                found.setdefault(stem[:-1], "ending")
    found.pop(word, None)
    return found
