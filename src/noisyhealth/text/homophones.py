"""Words that sound alike, from the offline table.

The table, `noisyhealth/data/tables/homophones.tsv`, is written by
`scripts/make_homophones.py` from CMUdict's pronunciations; its notice stands beside it.
The study asked Datamuse instead (Joshi et al., JMIR AI 2026;5:e83640), whose answers
drift.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class SoundAlike:
    """A word that another may be misheard as.

    `grade` is "exact" (the same phonemes) or "near" (a small phonetic distance).
    """

    word: str
    grade: str


@dataclass(frozen=True, slots=True)
class Table:
    """The offline table, read once per process at the first question."""

    def __call__(self, word: str) -> SoundAlike | None:
        """Return the first sound-alike in lower case, or None when the table has none.

        >>> table = Table()
        >>> table("Heal"), table("disease").word, table("xylograph")
        (SoundAlike(word='heel', grade='exact'), 'decease', None)
        """
        return _first().get(word.lower().replace("\u2019", "'"))


@cache
def _first() -> Mapping[str, SoundAlike]:
    """Map each word of the table to its first candidate."""
    table = files("noisyhealth").joinpath("data", "tables", "homophones.tsv")
    found: dict[str, SoundAlike] = {}
    for line in table.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            word, grade, candidates = line.split("\t")
            found[word] = SoundAlike(candidates.partition(",")[0], grade)
    return found
