"""Write the vendored tables of medical terms and of drug names.

    python scripts/make_medical_terms.py PATH/drug_ner_dictionary.pkl.bz2

Needs wordfreq (extra `tables`) and Debian's `wordnet-base`, whose dict files are read directly:
nltk's reader wants files that the Debian package lacks. The drug names are the data file of the
package drug-named-entity-recognition 2.0.9 (MIT), which is not imported; the file is a pickle, of which
nothing but plain values is read.
"""

from __future__ import annotations

import argparse
import bz2
import pickle
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wordfreq import zipf_frequency

NAME = re.compile(r"[a-z][a-z-]{4,}")
TABLES = Path(__file__).parents[1] / "src/noisyhealth/data/tables"
TABLE_VERSION = 1
WORDNET = Path("/usr/share/wordnet")
POS_FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
# Meanings whose kinds and relatives are medical: a noun and the number of its sense. From medical
# building on, where WordNet files what is clinical elsewhere: places, tools, states, rates, tests.
ROOTS = (
    "ill health 1, mental illness 1, pathology 2, symptom 1, injury 1, body part 1, tissue 1, "
    "body fluid 1, drug 1, medicine 1, medicine 2, medical procedure 1, medical care 1, "
    "diagnostic procedure 1, medical practitioner 1, nurse 1, patient 1, microorganism 1, "
    "medical science 1, antibody 1, enzyme 1, hormone 1, vital sign 1, "
    "medical building 1, medical institution 1, hospital room 1, medical instrument 1, catheter 1, "
    "antigen 1, sleep disorder 1, attack 7, abnormality 1, cell 2, pregnancy 1, fatigue 1, "
    "depression 1, depressive disorder 1, fleshiness 1, urine 1, gallstone 1, treatment 1, "
    "deathrate 1, diagnosis 1, "
    "surgical incision 1, cesarean delivery 1, diagnostic test 1, endoscopy 1, scan 1, scan 2, "
    "roentgenogram 1, paramedic 1, pill 1, medical dressing 1, immunization 1, injection 1"
)
# Terms that WordNet lacks, or whose clinical sense is not among the first two.
EXTRA = {"complication": "n", "creatinine": "n", "dehiscence": "n", "diagnose": "v", "swollen": "a"}
KIND = "~"  # hyponym; instances are people
PERTAINS = "\\"
RELATIVES = frozenset(("+", PERTAINS, "-c"))  # derived form, pertainym, member of the domain
SENSES = 2  # a term counts where one of the word's first senses is medical
DRUG_ZIPF = 3.6  # commoner names are ordinary words ("in" is a name too)
# Regular endings and what stands for them in the dictionary form: morphy(7WN).
ENDINGS = {
    "n": (
        ("s", ""),
        ("ses", "s"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "v": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}


@dataclass(frozen=True)
class Synset:
    """One meaning: its words and its pointers (symbol, key of the other, source and target word).

    Word numbers count from 1; 0 is the whole synset. A key is part of speech and byte offset.
    """

    key: str
    words: tuple[str, ...]
    pointers: tuple[tuple[str, str, int, int], ...]


@dataclass(frozen=True)
class WordNet:
    """The synsets by key, the keys of a (word, pos), commonest sense first, irregular forms."""

    synsets: Mapping[str, Synset]
    senses: Mapping[tuple[str, str], tuple[str, ...]]
    irregular: Mapping[tuple[str, str], tuple[str, ...]]

    def lemmas(self, word: str, pos: str) -> list[str]:
        """List the dictionary forms that a word can be an inflection of, itself among them."""
        forms = [word, *self.irregular.get((word, pos), ())]
        if (word, pos) not in self.irregular:
            forms += [word.removesuffix(a) + b for a, b in ENDINGS[pos] if word.endswith(a)]
        return [form for form in dict.fromkeys(forms) if (form, pos) in self.senses]


@cache
def read_wordnet(folder: Path = WORDNET) -> WordNet:
    """Read WordNet's dict files, formats wndb(5WN) and morphy(7WN) of its manual."""
    synsets: dict[str, Synset] = {}
    senses: dict[tuple[str, str], tuple[str, ...]] = {}
    irregular: dict[tuple[str, str], tuple[str, ...]] = {}
    for pos, name in POS_FILES.items():
        synsets |= {synset.key: synset for synset in _read_synsets(folder / f"data.{name}", pos)}
        for line in _lines(folder / f"index.{name}"):
            lemma, _, count, *rest = line.split()
            senses[lemma.replace("_", " "), pos] = tuple(pos + key for key in rest[-int(count) :])
        for line in _lines(folder / f"{name}.exc"):
            form, *lemmas = line.split()
            irregular[form, pos] = tuple(lemmas)
    return WordNet(synsets, senses, irregular)


def _lines(path: Path) -> list[str]:
    """List a dict file's lines, less the licence at its head, which is indented."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("  ")]


def _read_synsets(path: Path, pos: str) -> Iterator[Synset]:
    for line in _lines(path):
        key, _, _, count, *rest = line.partition(" | ")[0].split()
        size = 2 * int(count, 16)
        words = tuple(word.partition("(")[0].replace("_", " ") for word in rest[:size:2])
        fields = rest[size + 1 : size + 1 + 4 * int(rest[size])]
        pointers = tuple(
            (
                symbol,
                ("a" if other == "s" else other) + target,
                int(ends[:2], 16),
                int(ends[2:], 16),
            )
            for symbol, target, other, ends in zip(*[iter(fields)] * 4, strict=True)
        )
        yield Synset(pos + key, words, pointers)


def debian_version(package: str) -> str:
    """Return the installed version of a Debian package."""
    query = ["dpkg-query", "-W", "-f=${Version}", package]
    return subprocess.run(query, check=True, capture_output=True, text=True).stdout


def medical_terms(wordnet: WordNet) -> dict[str, str]:
    """Map each term to the parts of speech it is medical in, out of n, v, a, r."""
    medical = medical_words(wordnet)
    terms = dict(EXTRA)
    for (word, pos), keys in sorted(wordnet.senses.items()):
        if len(word) > 2 and any((word, key) in medical for key in keys[:SENSES]):
            terms[word] = "".join(dict.fromkeys(terms.get(word, "") + pos))
    return dict(sorted(terms.items()))


def medical_words(wordnet: WordNet) -> set[tuple[str, str]]:
    """Return the (word, synset) pairs of the roots' kinds and of what is derived from them."""
    named = [root.rpartition(" ") for root in ROOTS.split(", ")]
    roots = [wordnet.senses[word, "n"][int(number) - 1] for word, _, number in named]
    kinds = _closure(wordnet, roots)
    found = {pair for key in kinds for pair in _members(wordnet, key)}
    for key in kinds:
        for symbol, to, _, number in wordnet.synsets[key].pointers:
            if symbol in RELATIVES:
                found.update(_members(wordnet, to, number))
    return found | set(_pertaining(wordnet, kinds))


def _closure(wordnet: WordNet, start: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(start)
    while waiting:
        if (key := waiting.pop()) not in found:
            found.add(key)
            waiting += [to for symbol, to, _, _ in wordnet.synsets[key].pointers if symbol == KIND]
    return found


def _members(wordnet: WordNet, key: str, number: int = 0) -> list[tuple[str, str]]:
    """List the words of a synset, or with a number the one word that a pointer means."""
    words = wordnet.synsets[key].words
    return [(word.lower(), key) for word in (words[number - 1 : number] if number else words)]


def _pertaining(wordnet: WordNet, kinds: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the adjectives and adverbs that pertain to a noun among the kinds."""
    for key, synset in wordnet.synsets.items():
        for symbol, to, number, _ in synset.pointers:
            if symbol == PERTAINS and to in kinds:
                yield from _members(wordnet, key, number)


class Plain(pickle.Unpickler):
    """Reads dictionaries, lists, texts and numbers; refuses whatever would be called or imported."""

    def find_class(self, module: str, name: str) -> None:
        """Refuse."""
        raise pickle.UnpicklingError(f"the file would import {module}.{name}: it is not the dictionary of the package")


def drug_names(path: Path, wordnet: WordNet, terms: Mapping[str, str]) -> list[str]:
    """List the one-word names that no common word and no other meaning in WordNet shares."""
    with bz2.open(path) as file:
        names = Plain(file).load()["drug_variant_to_canonical"]
    known = {word for word, _ in wordnet.senses} - terms.keys()
    return sorted(
        name for name in names if NAME.fullmatch(name) and name not in known and zipf_frequency(name, "en") < DRUG_ZIPF
    )


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drugs", type=Path, help="drug_ner_dictionary.pkl.bz2 of drug-named-entity-recognition")
    wordnet = read_wordnet()
    terms = medical_terms(wordnet)
    drugs = drug_names(parser.parse_args().drugs, wordnet, terms)
    _write(
        "medical_terms.tsv",
        [
            f"# Medical terms, table version {TABLE_VERSION}",
            "# Columns: term, where it is medical (n noun, v verb, a adjective, r adverb)",
            f"# Written by scripts/{Path(__file__).name}; notice in NOTICE-medical_terms.txt",
            f"# Source: WordNet 3.0 as in Debian wordnet-base {debian_version('wordnet-base')}",
            f"# Rows: {len(terms)}",
            *(f"{term}\t{pos}" for term, pos in terms.items()),
        ],
    )
    _write(
        "drug_names.txt",
        [
            f"# Drug names, table version {TABLE_VERSION}",
            f"# Written by scripts/{Path(__file__).name}; notice in NOTICE-drug_names.txt",
            "# Source: drug-named-entity-recognition 2.0.9",
            f"# Rows: {len(drugs)}",
            *drugs,
        ],
    )


def _write(name: str, lines: Sequence[str]) -> None:
    (TABLES / name).write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
