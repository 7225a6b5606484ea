"""Medical terms in tagged text: a WordNet closure, drug names, Greek and Latin affixes.

The two tables and their notices stand in `noisyhealth/data/tables`, written by
`scripts/make_medical_terms.py`. Precision and recall on labelled sentences are checked
in `tests/text/test_medical.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

# WordNet parts of speech that a tagged word may be a term in.
_KINDS: Mapping[str, str] = {
    "NOUN": "n",
    "PROPN": "n",
    "VERB": "va",
    "ADJ": "a",
    "ADV": "r",
}
# Regular endings and what stands for them in the dictionary form (morphy(7WN), and the
# plurals of Greek and Latin terms: vertebrae, metastases, bacteria, nuclei, stigmata).
_ENDINGS = (
    *(("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e")),
    *(("ae", "a"), ("es", "is"), ("a", "um"), ("i", "us"), ("ata", "a"), ("ices", "ix")),
)
_SHORTEST_AFFIXED = 6  # letters
_STEMS = (
    "angio|arteri|arthr|bronch|carcin|cardi[ao]|cerebr|chemother|chole|cranio|cyst[io]|derma"
    "|electro(?:card|enc)|encephal|endoscop|erythr|esophag|fibrill|gastr|glomerul|gynec"
    "|haem|hemat|hemi(?:pa|pl)|hemo|hepat|histo(?:log|path|comp)|hyper(?:ten|gly|lip|pl|tr)"
    "|hypo(?:ten|gly|kal|nat|xi|vol)|hysterec|immun|lapar|leuk|lymph|mammo|mening|metasta"
    "|intra(?:ven|mus|cran|cereb|oper|ocul)|microscop|myelo|myocard|necro|neopla|nephr|neuro"
    "|oncol|ophthalm|orthop|osteo|otolaryng|pancrea|patho|pediatr|peritone|pharmac|phleb"
    "|pleur|pneum|postop|preop|psychi|pulmon|radio(?:ther|log|gr)|retin[ao]|rheumat"
    "|sclero|splen[eio]|stenos|thora[ck]|thromb|trache|urolog|uretero?|vascul|vaso|ventricul"
)
_SUFFIXES = (
    "aemi[ac]|algia|blast|centesis|cocc(?:us|i)|cytes?|ectom(?:y|ies)|edema|emia"
    "|(?:an|glyc|isch|leuk|syst|tox|ur|vol)emic|genesis|globin|itis|lysis|megaly|myositis|omas?"
    "|path(?:y|ies|ic)|o[ts]tom(?:y|ies)|paresis|penia|phagia|phylaxis|plasi?a|plast(?:ic|y)"
    "|plegia|pnea|ptosis|rrhagia|rrhage|rrhea|scop(?:y|ies)|[nrt]osis|iosis|stasis|tomography"
    "|trophy|uria|uresis|azole|caine|cillin|cycline|dipine|floxacin|mab|mycin|[^l]olol"
    "|oxetine|parin|prazole|pril|sartan|[ai]sone|statin|tidine|vir|zepam|zolam"
)
_AFFIX = re.compile(rf"(?:{_STEMS})[a-z]+|[a-z]{{2,}}(?:{_SUFFIXES})")
# Words of daily life that the pattern would take.
_NOT_AFFIXED = (
    "analysis april aroma chroma diploma empathy nostalgia oklahoma paloma plastic sympathy tacoma telepathy "
    "telescopy thomas triathlon trophy"
)


@dataclass(frozen=True, slots=True)
class MedicalTerms:
    """The tables in memory; `load` reads them.

    `terms` maps a term, its words joined by spaces, to the WordNet parts of speech it is
    medical in (n, v, a, r). `starts` maps the first word of terms of several words to
    their greatest number of words.
    """

    terms: Mapping[str, str]
    starts: Mapping[str, int]
    drugs: frozenset[str]

    @classmethod
    def load(cls) -> "MedicalTerms":
        """Return the vendored tables, read once per process.

        >>> MedicalTerms.load().is_drug("Metformin")
        True
        """
        return _load()

    def mark(self, words: Sequence[str], tags: Sequence[str]) -> list[bool]:
        """Mark the words that are, or are part of, a medical term.

        `words` are a text's in order, without outer punctuation; `tags` their coarse
        part of speech (NOUN, VERB, ADJ, ADV, PROPN; every other tag marks only within
        a term of several words). Drug names and affixes need no table entry.

        >>> MedicalTerms.load().mark(["chronic", "back", "pain"], ["ADJ", "NOUN", "NOUN"])
        [True, True, True]
        """
        lowered = [word.lower() for word in words]
        marks = [self._is_term(*pair) for pair in zip(lowered, tags, strict=True)]
        for start, word in enumerate(lowered):
            for end in range(start + self.starts.get(word, 0), start + 1, -1):
                if self._is_phrase(lowered[start:end]):
                    marks[start:end] = [True] * len(lowered[start:end])
                    break
        return marks

    def is_drug(self, word: str) -> bool:
        """Tell whether a word, in any case, is the name of a drug."""
        return word.lower() in self.drugs

    def _is_term(self, word: str, tag: str) -> bool:
        kinds = _KINDS.get(tag, "")
        if not kinds or len(word) < 2:
            return False
        known = {kind for form in forms(word) for kind in self.terms.get(form, "")}
        return bool(known.intersection(kinds)) or word in self.drugs or has_affix(word)

    def _is_phrase(self, words: Sequence[str]) -> bool:
        *head, last = words
        return any(" ".join((*head, form)) in self.terms for form in forms(last))


def has_affix(word: str) -> bool:
    """Tell whether a word of 6 letters or more is built from Greek or Latin medical parts.

    >>> [has_affix(word) for word in ("hepatomegaly", "neuropathies", "kitchen")]
    [True, True, False]
    """
    word = word.lower()
    if len(word) < _SHORTEST_AFFIXED or word in _NOT_AFFIXED.split():
        return False
    return _AFFIX.fullmatch(word) is not None


def forms(word: str) -> Iterator[str]:
    """Yield the dictionary forms that a word can be an inflection of, itself first."""
    yield word
    for ending, plain in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            yield word.removesuffix(ending) + plain


@cache
def _load() -> MedicalTerms:
    rows = [line.split("\t") for line in _read("medical_terms.tsv")]
    starts: dict[str, int] = {}
    for term, _ in rows:
        first, *others = term.split(" ")
        if others:
            starts[first] = max(starts.get(first, 0), 1 + len(others))
    return MedicalTerms(
        terms=dict(row for row in rows),
        starts=starts,
        drugs=frozenset(_read("drug_names.txt")),
    )


def _read(name: str) -> list[str]:
    """List a table's lines, less the remarks at its head."""
    table = files("noisyhealth").joinpath("data", "tables", name)
    lines = table.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]
