"""How words are abbreviated, from the offline table.

The table, `noisyhealth/data/tables/abbreviations.tsv`, was written by hand; its notice stands beside it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from noisyhealth.errors import ConfigError

GRADES = ("clinical", "everyday")


@dataclass(frozen=True, slots=True)
class Short:
    """An abbreviation. `grade` is "clinical" (as in notes) or "everyday" (as in messages)."""

    text: str
    grade: str


@dataclass(frozen=True, slots=True)
class Abbreviations:
    """The offline table, read once per process at the first question; only entries of `grades` answer.

    Raises ConfigError for a grade that the table does not have.
    """

    grades: Collection[str] = GRADES

    def __post_init__(self) -> None:
        """Check the grades."""
        if not self.grades or set(self.grades) - set(GRADES):
            raise ConfigError(f"perturb.change.shorts.grades={list(self.grades)}: give one or both of {list(GRADES)}")

    def __call__(self, word: str) -> Short | None:
        """Return the abbreviation of a word in any case, or None when the table has none.

        >>> Abbreviations()("Hypertension"), Abbreviations(["clinical"])("tomorrow")
        (Short(text='HTN', grade='clinical'), None)
        """
        found = _table().get(word.lower())
        return found if found and found.grade in self.grades else None


@cache
def _table() -> Mapping[str, Short]:
    table = files("noisyhealth").joinpath("data", "tables", "abbreviations.tsv")
    rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {word: Short(short, grade) for word, grade, short in rows}
