"""Which words are known: those of the table of homophones, and the medical terms of one word."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from noisyhealth.text.medical import MedicalTerms


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words of the offline tables, read once per process at the first question."""

    def __call__(self, word: str) -> bool:
        """Tell whether a word in small letters is known.

        >>> [Lexicon()(word) for word in ("hypotension", "weeks", "hypotensio")]
        [True, True, False]
        """
        return word in _words()


@cache
def _words() -> frozenset[str]:
    table = files("noisyhealth").joinpath("data", "tables", "homophones.tsv")
    found = {term for term in MedicalTerms.load().terms if term.isalpha()}
    for line in table.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            word, _, candidates = line.split("\t")
            found.update((word, *candidates.split(",")))
    return frozenset(found)
