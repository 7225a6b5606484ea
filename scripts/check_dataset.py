"""Check a table of disturbed texts against the written contract, sharing no code with what wrote it.

    python scripts/check_dataset.py TABLE.parquet [--show 3]

One line a check: how many texts and edits it looked at, how many faults, the first ones spelled out. Ends 0 where
nothing is wrong, 1 where something is, 2 where the file can't be read. Imports nothing of the project on purpose: the
rules are written a second time, from the contract alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

try:
    from rapidfuzz.distance import OSA
except ImportError:  # the slow way below gives the same numbers
    OSA = None

METADATA = b"noisyhealth"
BATCH = 256  # rows held at a time
AGREE = Fraction(99, 100)  # share of texts whose words two independent counts must find alike
CLOSE = 1e-9
KINDS = ("typo", "homophone", "redact", "abbreviation", "order", "ocr", "dictation", "plain", "mixture")
UNITS = ("words", "valid_words", "chars")
WORDS = ("all", "medical", "others")
FIELDS = ("text", "question")
POS = frozenset(("ADJ", "ADV", "VERB", "NOUN", "PROPN", "AUX"))
SPLITS = {"split": ("prompt", "validation", "test"), "encoder_split": ("train", "validation", "test")}
KEPT_APART = ("group", "text", "text without case and marks")
TEXT_COLUMNS = ("id", "text", "target", "question", "group", "split", "encoder_split")
COUNT_COLUMNS = ("words", "valid_words")
EDIT_FIELDS = ("start", "before", "after", "op", "pos", "medical", "word")
DOSE_FIELDS = ("words", "valid_words", "characters", "edit_distance", "medical")
BLANK = " \u00a0"
BLANKS = re.compile(f"[{BLANK}]{{2,}}")
APOSTROPHES = "'’"

MARK = r"(?:[^\w\s]|_)"
LETTER = r"[^\W\d_]"
RUN = re.compile(r"\S+")
BETWEEN = r"[)\]\"'“”‘’(\[@#]*"
LONE = r"(?<![^\W_])[^\W_]"  # N,N and X;Y are formulas, don;t a slip of the finger
WORD_END = re.compile(
    rf"(?!(?<={LONE})[,;]{LETTER}(?![^\W_]))(?![,;][ts]\b)"
    rf"(?:[.,:;!?…]{{2,}}(?={BETWEEN}[^\W_])|(?:[,;!?…—]|--+)(?={BETWEEN}{LETTER}))"
)
CORE = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)

MONTHS = (
    r"(?:[Jj]an(?:uary)?|[Ff]eb(?:ruary)?|Mar(?:ch)?|[Aa]pr(?:il)?|May|[Jj]une?|[Jj]uly?|[Aa]ug(?:ust)?"
    r"|[Ss]ept?(?:ember)?|[Oo]ct(?:ober)?|[Nn]ov(?:ember)?|[Dd]ec(?:ember)?)\b\.?"
)
SIGNED_UNITS = (
    r"(?:(?:[munkMG]|mc|µ|μ|d|c)?g|(?:[mdcµμ]|mc)?[lL]|[cmkn]m|m|(?:m|µ|μ|n|p)?mol|[mk]?Eq|mEq|mmHg|mm Hg|k?cal|kJ"
    r"|lbs?|oz|ft|[mM]?IU|iu|bpm|[mk]?Hz|kPa|mSv|m?Gy|cc|ppm|[kK]gs|mgs|mls)(?:/\w+)*(?!\w)"
    r"|(?:MG|KG|ML|MCG|CM|MM|LBS?|OZ|MMHG|MMOL)(?:/\w+)*(?!\w)|\s?%|\s?°(?:\s?[CFcf](?!\w))?"
)
SPELLED_UNITS = (
    r"(?i:(?:milli|micro|kilo|centi|deci)?(?:gram|liter|litre|meter|metre|mole)s?|pounds?|ounces?|inch(?:es)?|feet"
    r"|(?:kilo)?calories?|percent|units?)\b"
)
NUMBER = r"(?<![\w.,])\d+(?:[.,]\d+)*"
# The contract's protected things. Names, numbers and units of time ("3 days") are in none of them.
PROTECTED = {
    "numbers with units": re.compile(rf"{NUMBER}(?:\s?-\s?\d+(?:[.,]\d+)*)?[ -]?(?:{SIGNED_UNITS})"),
    "numbers with spelled units": re.compile(rf"{NUMBER}[ -]?{SPELLED_UNITS}"),
    "times": re.compile(
        r"(?<![\w:])\d{1,2}:\d{2}(?::\d{2})?(?![\d:])(?:\s?(?:[ap]m|[AP]M|[ap]\.m\.|[AP]\.M\.)(?!\w))?"
        r"|(?<![\w.,:])\d{1,2}\s?(?:[ap]m|[AP]M|[ap]\.m\.|[AP]\.M\.)(?!\w)"
    ),
    "dates": re.compile(
        r"(?<![\w/-])(?:\d{1,2}[/-]\d{1,2}[/-](?:\d{4}|\d{2})|\d{4}-\d{1,2}-\d{1,2})(?![\w/-])"
        rf"|(?<!\w){MONTHS}\s(?:\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?|\d{{4}})(?!\w|%|[.:/]\d)"
        rf"|(?<![\w.,:])\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{MONTHS}(?:,?\s\d{{4}})?(?!\w)"
    ),
    "URLs": re.compile(
        r"(?<!\w)(?:(?:https?|ftp)://|www\.)[^\s<>\"]*[\w/]"
        r"|(?<![\w@.-])(?:[\w-]+\.)+(?:com|org|net|gov|edu)(?![\w@-])(?:/[^\s<>\"]*[\w/])?"
    ),
    "e-mails": re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "@names": re.compile(r"(?<![\w@.])@\w+"),
    "#tags": re.compile(r"(?<![\w#&])#\w+"),
    "emoji": re.compile(
        "[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55\u231a\u231b\u23e9-\u23f3][\ufe0f\U0001f3fb-\U0001f3ff]*"
    ),
}


class UnreadableError(Exception):
    """The file can't be read as a table of disturbed texts."""


class Edit(NamedTuple):
    """One stored edit; `end` is where its span stops in the original."""

    start: int
    before: str
    after: str
    op: str
    pos: str
    medical: bool
    word: int

    @property
    def end(self) -> int:
        """Return the offset after the span."""
        return self.start + len(self.before)


@dataclass(frozen=True)
class Level:
    """One column of variants: what was asked of it."""

    column: str
    perturbation: str
    rate: Fraction
    unit: str
    source: str
    nested: bool
    words: str = "all"

    @cached_property
    def kind(self) -> str:
        """Return the first of KINDS that the name begins with, or nothing."""
        return next((kind for kind in KINDS if self.perturbation.startswith(kind)), "")


@dataclass(frozen=True)
class Original:
    """A text as it was, with what was found in it by this file's own rules."""

    text: str

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Return where its words stand."""
        return word_spans(self.text)

    @cached_property
    def starts(self) -> list[int]:
        """Return where its words begin."""
        return [start for start, _ in self.spans]

    @cached_property
    def protected(self) -> dict[str, list[tuple[int, int]]]:
        """Return where its protected things stand, by kind."""
        return {kind: [m.span() for m in pattern.finditer(self.text)] for kind, pattern in PROTECTED.items()}

    def word_around(self, start: int, end: int) -> int | None:
        """Return the number of the one word that holds the span; None where no single word does."""
        at = bisect_right(self.starts, start) - 1
        return at if at >= 0 and end <= self.spans[at][1] else None


@dataclass(frozen=True)
class Variant:
    """One disturbed text with all that a rule asks about it. Edits are in the order of their starts."""

    level: Level
    original: Original
    text: str
    stored: Sequence[Edit]
    dose: Mapping[str, float]
    counts: Mapping[str, int]

    @cached_property
    def edits(self) -> list[Edit]:
        """Return the edits by their starts, however they are stored."""
        return sorted(self.stored)

    @property
    def counted_alike(self) -> bool:
        """Say whether the own count of words is the table's: else words can't be told from each other."""
        return len(self.original.spans) == self.counts["words"]

    @cached_property
    def words_hit(self) -> list[int | None]:
        """Return the own word that each edit lies in, or changes of all it holds: a kind may take more along."""
        kind = self.level.kind
        return [hit_word(self.original, own_part(edit, kind), kind in ("redact", "mixture")) for edit in self.edits]

    @cached_property
    def distance(self) -> int:
        """Return the summed distance of the edits, case aside."""
        return sum(folded_distance(edit.before, edit.after) for edit in self.edits)


Rule = Callable[[Variant], "list[str] | None"]  # faults; None: there was nothing to look at


@dataclass
class Check:
    """What one check looked at and found."""

    show: int
    texts: int = 0
    edits: int = 0
    faults: int = 0
    first: list[str] = field(default_factory=list)
    note: str = ""
    _last: int = -1

    def see(self, row: int, edits: int = 0) -> None:
        """Count a text once, however many of its variants are looked at."""
        self.texts += row != self._last
        self._last = row
        self.edits += edits

    def fault(self, where: str, what: str) -> None:
        """Count a fault; keep the first ones."""
        self.faults += 1
        if len(self.first) < self.show:
            self.first.append(f"{where}: {what}")

    def line(self, name: str) -> str:
        """Return the check's line of the report."""
        if not (self.texts or self.faults):
            return f"none  {name}: looked at nothing"
        seen = f"{name}: {self.texts} texts, {self.edits} edits, {self.faults} faults{self.note}"
        return "\n      ".join([f"{'FAULT' if self.faults else 'ok   '} {seen}", *self.first])


@dataclass
class Audit:
    """The checks so far, by name, and what has to be remembered from text to text."""

    levels: list[Level]
    show: int = 1
    unprotected: frozenset[str] = frozenset()  # kinds of PROTECTED that the table's settings do not protect
    checks: dict[str, Check] = field(default_factory=dict)
    texts: int = 0
    edits: int = 0
    ids: dict[str, int] = field(default_factory=dict)
    homes: dict[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)
    agreeing: Counter[str] = field(default_factory=Counter)
    rates: dict[str, list[float]] = field(default_factory=dict)
    halves: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    conventions: Counter[str] = field(default_factory=Counter)

    def __getitem__(self, name: str) -> Check:
        return self.checks.setdefault(name, Check(self.show))


# Words and letters


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return where the words of a text stand, outer punctuation stripped.

    >>> [text[a:b] for text in ["(sick,tired) of 1,000 e.g. up.,MEDICATIONS -- 8:30"] for a, b in word_spans(text)]
    ['sick', 'tired', 'of', '1,000', 'e.g', 'up', 'MEDICATIONS', '8:30']
    """
    text = _joined(text)
    found = []
    whole = [link.span() for kind in ("URLs", "e-mails") for link in PROTECTED[kind].finditer(text)]
    for run in RUN.finditer(text):
        start = run.start()
        cuts = [cut.end() for cut in WORD_END.finditer(text, *run.span())]
        for end in [*(cut for cut in cuts if not any(a < cut < b for a, b in whole)), run.end()]:
            if core := CORE.search(text, start, end):
                found.append(core.span())
            start = end
    return found


def _joined(text: str) -> str:
    """Return the text with a letter in place of each combining mark that follows one."""
    if text.isascii():
        return text
    out: list[str] = []
    for char in text:
        combining = unicodedata.category(char).startswith("M") and bool(out) and out[-1].isalpha()
        out.append("x" if combining else char)
    return "".join(out)


@lru_cache(maxsize=1 << 18)
def distance(before: str, after: str) -> int:
    """Return the optimal string alignment distance: insertions, deletions, substitutions, swaps of neighbours."""
    return OSA.distance(before, after) if OSA else slow_distance(before, after)


def slow_distance(before: str, after: str) -> int:
    """Return the same, row by row: Boytsov, ACM J. Exp. Algorithmics 2011;16:1.1, section 2.2.1.

    >>> slow_distance("ca", "abc"), slow_distance("pain", "pian")
    (3, 1)
    """
    older: list[int] = []
    old = list(range(len(after) + 1))
    for i, left in enumerate(before, 1):
        new = [i]
        for j, right in enumerate(after, 1):
            best = min(old[j] + 1, new[j - 1] + 1, old[j - 1] + (left != right))
            if i > 1 and j > 1 and left == after[j - 2] and before[i - 2] == right:
                best = min(best, older[j - 2] + 1)
            new.append(best)
        older, old = old, new
    return old[-1]


def folded_distance(before: str, after: str) -> int:
    """Return the distance, case aside."""
    return distance(before.lower(), after.lower())


@lru_cache(maxsize=1 << 16)
def case_pattern(word: str) -> str:
    """Return lower, UPPER, Capitalised, mixed, or nothing where no letter has a case."""
    upper = [char.isupper() for char in word if char.isupper() or char.islower()]
    if not upper:
        return ""
    if not any(upper):
        return "lower"
    if not any(upper[1:]):
        return "Capitalised"
    return "UPPER" if all(upper) else "mixed"


def keeps_case(before: str, after: str) -> bool:
    """Say whether the pattern stays; UPPER may shrink to one letter, mixed promises nothing."""
    old, new = case_pattern(before), case_pattern(after)
    return old in (new, "", "mixed") or new == "" or (old == "UPPER" and after == after.upper())


@lru_cache(maxsize=1 << 12)
def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(("LATIN", "FULLWIDTH LATIN", "MODIFIER LETTER", "FEMININE", "MASC"))


def foreign_letters(word: str) -> list[str]:
    """Return the letters that are not Latin, sorted: to compare as a multiset."""
    return [] if word.isascii() else sorted(char for char in word if char.isalpha() and not _is_latin(char))


def bare(text: str) -> str:
    """Return letters and digits alone, casefolded."""
    return "".join(char for char in text.casefold() if char.isalnum())


def own_part(edit: Edit, kind: str) -> Edit:
    """Return an edit less what it takes along: the next word of one line, where both are exchanged, or lost marks."""
    part = edit.op.partition(":")[0] if kind == "mixture" else kind
    pair = re.fullmatch(rf"(\S+)([{BLANK}]+)(\S+)", edit.before)
    if part == "order" and pair and edit.after == f"{pair[3]}{pair[2]}{pair[1]}":
        return edit._replace(before=pair[1])
    return edit._replace(before=edit.before.rstrip(".,;:!?…")) if part == "plain" else edit


def hit_word(original: Original, edit: Edit, blank: bool) -> int | None:
    """Return the own word that an edit lies in, one blank at either end left aside where that is allowed."""
    at = original.word_around(edit.start, edit.end)
    if at is None and blank and edit.before[-1:] in BLANK:
        return original.word_around(edit.start, edit.start + len(edit.before.rstrip(BLANK)))
    if at is None and blank and edit.before[:1].isspace():
        return original.word_around(edit.start + 1, edit.end)
    if at is None and blank and edit.before[-1:].isspace():
        return original.word_around(edit.start, edit.end - 1)
    return at


# Rules of one variant: the faults, or None where there was nothing to look at


def quota(count: int, rate: Fraction) -> int:
    """Return floor(count x rate + 1/2), exactly.

    >>> quota(15, Fraction("0.3")), quota(11, Fraction("0.1"))
    (5, 1)
    """
    return (2 * count * rate.numerator + rate.denominator) // (2 * rate.denominator)


def number_of_edits(variant: Variant) -> list[str]:
    """Find a number of edits that is not the quota."""
    level, edits = variant.level, variant.edits
    if not edits:
        return ["no edit at all"]
    if level.unit == "chars":
        asked = level.rate * len(variant.original.text)
        # The nearest of the prefixes is at most half an edit off; the next edit may have been the largest.
        largest = max(1 + end - start for start, end in variant.original.spans)
        wrong = abs(variant.distance - asked) > Fraction(largest, 2)
        return [f"distance {variant.distance}, asked {float(asked):g} ± {largest / 2:g}"] if wrong else []
    count = variant.counts[level.unit]
    asked = quota(count, level.rate)
    return [f"{len(edits)} edits, asked {asked} of {count} {level.unit}"] if len(edits) != asked else []


def before_stands(variant: Variant) -> list[str] | None:
    """Find edits whose `before` is not what stands in the original."""
    text = variant.original.text
    return _each(variant, lambda e: e.start >= 0 and text[e.start : e.end] == e.before and e.before != "")


def in_order(variant: Variant) -> list[str] | None:
    """Find spans that are out of order or overlap."""
    pairs = pairwise(variant.stored)
    return [f"{b} after {a}" for a, b in pairs if b.start < a.end or b.start <= a.start] if variant.stored else None


def replays(variant: Variant) -> list[str]:
    """Find a variant that is not the original with the edits made: a character outside them has changed."""
    pieces, at, text = [], 0, variant.original.text
    for edit in variant.edits:
        pieces += [text[at : edit.start], edit.after]
        at = edit.end
    made = "".join([*pieces, text[at:]])
    if made == variant.text:
        return []
    apart = next((i for i, (a, b) in enumerate(zip(made, variant.text, strict=False)) if a != b), -1)
    around = slice(max(0, apart - 20), apart + 20) if apart >= 0 else slice(-40, None)
    return [f"edits give {made[around]!r}, stored is {variant.text[around]!r}"]


def changes(variant: Variant) -> list[str] | None:
    """Find edits that change nothing."""
    return _each(variant, lambda edit: edit.before != edit.after)


def in_one_word(variant: Variant) -> list[str] | None:
    """Find edits that lie in no single word."""
    hits = zip(variant.edits, variant.words_hit, strict=True)
    return [str(edit) for edit, word in hits if word is None] if variant.edits and variant.counted_alike else None


def own_words_distinct(variant: Variant) -> list[str] | None:
    """Find words, by `word` and by own count, that were edited twice."""
    if not (variant.edits and variant.counted_alike):
        return None
    twice = [f"`word` {word} {n} times" for word, n in Counter(edit.word for edit in variant.edits).items() if n > 1]
    own = Counter(word for word in variant.words_hit if word is not None)
    return twice + [f"word {word} by own count {n} times" for word, n in own.items() if n > 1]


def word_number_known(variant: Variant) -> list[str] | None:
    """Find `word` numbers below nought, above the last word, or that fall where the starts rise."""
    most = variant.counts["words"]
    wrong = _each(variant, lambda edit: 0 <= edit.word <= most)
    if wrong is None:
        return None
    return wrong + [f"{b} after {a}" for a, b in pairwise(variant.edits) if b.word < a.word]


def pos_allowed(variant: Variant) -> list[str] | None:
    """Find edits of words that are no content word."""
    return _each(variant, lambda edit: edit.pos in POS)


def untouched(variant: Variant, kind: str) -> list[str] | None:
    """Find protected things that an edit overlaps, or that don't stand in the variant where they should."""
    places = variant.original.protected[kind]
    if not places:
        return None
    edits, faults, original = variant.edits, [], variant.original.text
    starts = [edit.start for edit in edits]
    moved = [0, *accumulate(len(edit.after) - len(edit.before) for edit in edits)]
    for start, end in places:
        thing, before = original[start:end], bisect_left(starts, start)
        inside = edits[max(0, before - 1) : bisect_left(starts, end)]
        touching = [edit for edit in inside if edit.end > start]
        stands = variant.text[start + moved[before] : end + moved[before]]
        if touching:
            faults.append(f"{thing!r} at {start} is touched by {touching[0]}")
        elif stands != thing:
            faults.append(f"{thing!r} at {start} has become {stands!r}")
    return faults


def typo_distance(variant: Variant) -> list[str] | None:
    """Find typing errors that are too small or too large for their word."""
    faults = []
    for edit, word in zip(variant.edits, variant.words_hit, strict=True):
        known = word is not None and variant.counted_alike
        start, end = variant.original.spans[word] if known else (edit.start, edit.end)
        letters = sum(map(str.isalpha, variant.original.text[start:end]))
        least = max(1, -(-letters // 5))
        most, d = max(least, letters // 2), folded_distance(edit.before, edit.after)
        if not least <= d <= most:
            faults.append(f"distance {d}, {letters} letters allow {least} to {most}: {edit}")
    return faults if variant.edits else None


def not_empty(variant: Variant) -> list[str] | None:
    """Find typing errors that leave nothing."""
    return _each(variant, lambda edit: edit.after != "")


def case_kept(variant: Variant) -> list[str] | None:
    """Find edits that lose the pattern of capitals."""
    return _each(variant, lambda edit: keeps_case(edit.before, edit.after))


def foreign_letters_kept(variant: Variant) -> list[str] | None:
    """Find typing errors that add, drop or change letters that are not Latin."""
    return _each(variant, lambda edit: foreign_letters(edit.before) == foreign_letters(edit.after))


def one_word(variant: Variant) -> list[str] | None:
    """Find homophones that are more, or less, than one word of letters and apostrophes."""
    return _each(variant, lambda edit: any(map(str.isalpha, edit.after)) and _letters_only(edit.after))


def _letters_only(word: str) -> bool:
    return all(char.isalpha() or char in APOSTROPHES for char in word)


def another_word(variant: Variant) -> list[str] | None:
    """Find homophones that are the word itself, case aside."""
    return _each(variant, lambda edit: edit.before.casefold() != edit.after.casefold())


def exact_or_near(variant: Variant) -> list[str] | None:
    """Find homophones of an unknown grade."""
    return _each(variant, lambda edit: edit.op in ("exact", "near"))


def emptied(variant: Variant) -> list[str] | None:
    """Find redactions that leave something, other than one mask for all."""
    masks = {edit.after for edit in variant.edits if edit.op == "mask"}
    mask = masks.pop() if len(masks) == 1 else ""
    return _each(variant, lambda edit: edit.after == (mask if edit.op == "mask" else ""))


def no_new_blanks(variant: Variant) -> list[str]:
    """Find double blanks and a blank at the start that redaction has made."""
    old, new = variant.original.text, variant.text
    faults = []
    doubled = [sum(len(run) - 1 for run in BLANKS.findall(text)) for text in (new, old)]
    if doubled[0] > doubled[1]:
        faults.append(f"{doubled[0]} blanks beside a blank, the original has {doubled[1]}")
    if new.startswith(" ") and not old.startswith(" ") and "  " not in old:
        faults.append(f"begins with a blank: {new[:30]!r}")
    return faults


def dose_part(variant: Variant, part: str) -> list[str]:
    """Find a dose that is not what the edits say."""
    edits, stored = variant.edits, variant.dose[part]
    if part == "edit_distance":
        return []  # see `distance_stored`
    if part == "characters":  # of the stored distance, which has a check of its own
        whole, of = variant.dose["edit_distance"], len(variant.original.text)
    elif part == "medical":
        whole, of = sum(edit.medical for edit in edits), len(edits)
    else:
        whole, of = len(edits), variant.counts[part]
    own = whole / of if of else 0.0
    return [] if abs(stored - own) <= CLOSE else [f"{part} {stored}, own {own} = {whole}/{of}"]


def words_asked_for(variant: Variant) -> list[str] | None:
    """Find medical words where only others were to be edited, and the reverse."""
    asked = variant.level.words
    return None if asked == "all" else _each(variant, lambda edit: edit.medical == (asked == "medical"))


def _each(variant: Variant, holds: Callable[[Edit], bool]) -> list[str] | None:
    """Return the edits for which the rule does not hold; None where there are no edits."""
    return [str(edit) for edit in variant.edits if not holds(edit)] if variant.edits else None


# Name, kind of perturbation ("" for each), rule
RULES: tuple[tuple[str, str, Rule], ...] = (
    ("number of edits is the quota", "", number_of_edits),
    ("before stands in the original", "", before_stands),
    ("edits are sorted and apart", "", in_order),
    ("edits replay to the variant", "", replays),
    ("edits change something", "", changes),
    ("an edit lies in one word", "", in_one_word),
    ("no word is edited twice", "", own_words_distinct),
    ("word numbers follow the text", "", word_number_known),
    ("pos is a content word's", "", pos_allowed),
    *((f"untouched: {kind}", "", partial(untouched, kind=kind)) for kind in PROTECTED),
    ("only medical words, or only others", "", words_asked_for),
    ("typo: distance fits the word", "typo", typo_distance),
    ("typo: something is left", "typo", not_empty),
    ("typo: capitals kept", "typo", case_kept),
    ("typo: letters not Latin kept", "typo", foreign_letters_kept),
    ("homophone: one word", "homophone", one_word),
    ("homophone: another word", "homophone", another_word),
    ("homophone: capitals kept", "homophone", case_kept),
    ("homophone: exact or near", "homophone", exact_or_near),
    ("redact: nothing is left", "redact", emptied),
    ("redact: no new blanks", "redact", no_new_blanks),
    *((f"dose: {part}", "", partial(dose_part, part=part)) for part in DOSE_FIELDS if part != "edit_distance"),
)


# Checks that need more than one variant


def check_text(audit: Audit, row: Mapping[str, Any], originals: Mapping[str, Original]) -> None:
    """Check what is true of a text before it is disturbed."""
    at, name = audit.texts, row["id"]
    audit["ids are unique"].see(at)
    if name in audit.ids:
        audit["ids are unique"].fault(f"id {name!r}", f"in rows {audit.ids[name]} and {at}")
    audit.ids.setdefault(name, at)
    for source, original in originals.items():
        check, own = audit[f"words agree with own count of {source}"], len(original.spans)
        check.see(at)
        told = row["words"] if source == "text" else _words_of(audit, row, source)
        audit.agreeing[source] += own == told
        if own != told:
            check.fault(f"id {name!r}, words", f"{told}, own {own}: {original.text[:200]!r}")
    audit["valid words are among the words"].see(at)
    if not 0 <= row["valid_words"] <= row["words"]:
        audit["valid words are among the words"].fault(
            f"id {name!r}, valid_words", f"{row['valid_words']} of {row['words']}"
        )
    _check_splits(audit, row)


def _words_of(audit: Audit, row: Mapping[str, Any], source: str) -> int:
    """Return how many words the doses say a source has that is not the text."""
    columns = [level.column for level in audit.levels if level.source == source]
    doses = [row[f"{column}_dose"] or {} for column in columns]
    return next((dose["total_words"] for dose in doses if dose.get("total_words") is not None), row["words"])


def _check_splits(audit: Audit, row: Mapping[str, Any]) -> None:
    at, where = audit.texts, f"id {row['id']!r}"
    known, test = audit["splits have known names"], audit["test is the same in both splits"]
    known.see(at)
    test.see(at)
    for column, values in SPLITS.items():
        if row[column] not in values:
            known.fault(f"{where}, {column}", repr(row[column]))
    if (row["split"] == "test") != (row["encoder_split"] == "test"):
        test.fault(where, f"split {row['split']!r}, encoder_split {row['encoder_split']!r}")
    for kind, key in zip(KEPT_APART, (row["group"], row["text"], bare(row["text"])), strict=True):
        for column in SPLITS if key else ():
            check = audit[f"no {kind} in two values of {column}"]
            check.see(at)
            split, other = audit.homes.setdefault((kind, column, key), (row[column], row["id"]))
            if split != row[column]:
                check.fault(f"{where}, {column}", f"{row[column]!r}, but {split!r} for {other!r}: {key[:80]!r}")


def check_variant(audit: Audit, name: str, variant: Variant) -> None:
    """Check one disturbed text."""
    at, level, edits = audit.texts, variant.level, len(variant.edits)
    audit.edits += edits
    for title, kind, rule in RULES:
        check = audit[title]
        if title.removeprefix("untouched: ") in audit.unprotected:
            continue
        if kind in ("", level.kind) and (faults := rule(variant)) is not None:
            check.see(at, edits)
            for fault in faults:
                check.fault(f"id {name!r}, {level.column}", fault)
    _check_distance(audit, name, variant)
    sums = audit.rates.setdefault(level.column, [0, 0.0, 0.0])
    unit = "characters" if level.unit == "chars" else level.unit
    count = len(variant.original.text) if level.unit == "chars" else variant.counts[level.unit]
    sums[0] += 1
    sums[1] += variant.dose[unit] * count
    sums[2] += float(level.rate * count)
    audit.halves[level.column] += variant.distance / max(1, len(variant.edits)) / 2


def _check_distance(audit: Audit, name: str, variant: Variant) -> None:
    """Check the stored distance: the contract leaves open whether case counts, so one way must hold throughout."""
    check, stored = audit["dose: edit_distance"], variant.dose["edit_distance"]
    check.see(audit.texts, len(variant.edits))
    exact = sum(distance(edit.before, edit.after) for edit in variant.edits)
    if stored not in (exact, variant.distance):
        check.fault(f"id {name!r}, {variant.level.column}", f"{stored}, own {variant.distance} ({exact} with case)")
    elif exact != variant.distance:
        audit.conventions["with case" if stored == exact else "case aside"] += 1


def check_nesting(audit: Audit, name: str, variants: Sequence[Variant]) -> None:
    """Check that each level of a perturbation holds the edits of the one below."""
    check = audit["levels nest"]
    for low, high in pairwise(sorted(variants, key=lambda variant: variant.level.rate)):
        if low.level.nested:
            check.see(audit.texts, len(low.edits))
            above = {edit[:3] for edit in high.edits}
            for edit in low.edits:
                if edit[:3] not in above:
                    check.fault(f"id {name!r}, {low.level.column}", f"{edit} is not in {high.level.column}")


def check_whole(audit: Audit) -> None:
    """Check what shows in the table as a whole: rates, own count of words, one way to count distances."""
    for level in audit.levels:
        check = audit[f"mean rate of {level.column}"]
        texts, got, asked = audit.rates.get(level.column, [0, 0.0, 0.0])
        if texts:
            check.texts, check.note = int(texts), f", {got / texts:.3f} a text, asked {asked / texts:.3f} {level.unit}"
            slack = audit.halves[level.column] / texts if level.unit == "chars" else 0.5  # half a word
            if abs(got - asked) / texts > slack + CLOSE:
                check.fault(level.column, f"{got / texts} a text, asked {asked / texts}")
    for source, agreeing in audit.agreeing.items():
        check = audit[f"words agree with own count of {source}"]
        share = Fraction(agreeing, check.texts)
        check.note = f", {agreeing} of {check.texts} agree ({float(share):.2%})"
        if share >= AGREE:
            check.faults = 0  # odd cases are allowed; the first is still shown
    check = audit["dose: edit_distance"]
    if len(audit.conventions) > 1:
        check.fault("two ways to count", str(dict(audit.conventions)))
    elif audit.conventions:
        check.note = f", counted {next(iter(audit.conventions))}"


# Reading


def read_levels(schema: pa.Schema) -> list[Level]:
    """Return the columns of variants that the metadata promise. Raises UnreadableError where they can't be used."""
    try:
        told = json.loads((schema.metadata or {})[METADATA], parse_float=Fraction)["perturbations"]
        return [
            Level(
                f"{name}_{level}",
                name,
                Fraction(rate),
                asked["unit"],
                asked.get("field", "text"),
                asked["nested"],
                asked.get("words", "all"),
            )
            for name, asked in told.items()
            for level, rate in asked["levels"].items()
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableError(f"schema metadata {METADATA!r} doesn't say what was asked: {error!r}") from error


# What the settings call the kinds of PROTECTED.
SETTINGS = {
    "numbers with units": "number",
    "numbers with spelled units": "number",
    "times": "time",
    "dates": "date",
    "URLs": "link",
    "e-mails": "email",
    "@names": "name",
    "#tags": "tag",
    "emoji": "emoji",
}


def read_unprotected(schema: pa.Schema) -> frozenset[str]:
    """Return the kinds that the settings in the metadata leave unprotected; none where the metadata do not say."""
    told = json.loads((schema.metadata or {})[METADATA]).get("protected")
    return frozenset() if told is None else frozenset(kind for kind, name in SETTINGS.items() if name not in told)


def check_columns(audit: Audit, schema: pa.Schema, rows: int) -> None:
    """Check that the promised columns are there, of the promised types, and no others with edits."""
    check = audit["columns are those promised"]
    check.texts += rows
    if not (rows and audit.levels):
        check.fault("table", f"{rows} rows, {len(audit.levels)} columns of variants")
    wanted = dict.fromkeys(TEXT_COLUMNS, _is_text) | dict.fromkeys(COUNT_COLUMNS, pa.types.is_integer)
    wanted["target"] = lambda kind: True
    for level in audit.levels:
        wanted |= {level.column: _is_text, f"{level.column}_edits": _is_edits, f"{level.column}_dose": _is_dose}
        known = level.kind and level.unit in UNITS and level.source in FIELDS and level.words in WORDS
        if not known:
            asked = (level.perturbation, level.unit, level.source, level.words)
            check.fault(level.column, f"no rules for {', '.join(map(repr, asked))}")
    for column, fits in wanted.items():
        if column not in schema.names:
            check.fault(column, "is missing")
        elif not fits(schema.field(column).type):
            check.fault(column, f"is {schema.field(column).type}")
    for column in schema.names:
        if column not in wanted and column.endswith(("_edits", "_dose")):
            check.fault(column, "is not in the metadata, so nothing was asked of it")


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_edits(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, *[_is_text] * 4, pa.types.is_boolean, pa.types.is_integer)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    return _has(kind.value_type, dict(zip(EDIT_FIELDS, tests, strict=True)) | {"flags": pa.types.is_list})


def _is_dose(kind: pa.DataType) -> bool:
    return _has(kind, dict.fromkeys(DOSE_FIELDS, pa.types.is_floating) | {"edit_distance": pa.types.is_integer})


def _has(kind: pa.DataType, fields: Mapping[str, Callable[[pa.DataType], bool]]) -> bool:
    if not pa.types.is_struct(kind):
        return False
    types = {part.name: part.type for part in kind}
    return all(name in types and fits(types[name]) for name, fits in fields.items())


def read_edits(column: pa.ListArray) -> list[list[Edit] | None]:
    """Return the edits of each text; None where they, or a part of one, are null."""
    structs = column.flatten()
    parts = dict(zip((part.name for part in structs.type), structs.flatten(), strict=True))
    edits = list(map(Edit, *(parts[name].to_pylist() for name in EDIT_FIELDS)))
    holed = any(parts[name].null_count for name in EDIT_FIELDS)
    found: list[list[Edit] | None] = []
    at = 0
    for length in pc.list_value_length(column).to_pylist():
        own = edits[at : at + (length or 0)]
        at += length or 0
        found.append(None if length is None or (holed and any(None in edit for edit in own)) else own)
    return found


def rows_of(batch: pa.RecordBatch, levels: Sequence[Level]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch as plain values."""
    columns = {name: batch.column(name).to_pylist() for name in (*TEXT_COLUMNS, *COUNT_COLUMNS)}
    for level in levels:
        columns[level.column] = batch.column(level.column).to_pylist()
        columns[f"{level.column}_edits"] = read_edits(batch.column(f"{level.column}_edits"))
        columns[f"{level.column}_dose"] = batch.column(f"{level.column}_dose").to_pylist()
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def check_names(levels: Sequence[Level]) -> list[str]:
    """Return the names of all checks of a table's rows, in the order of the report."""
    return [
        "nothing is null",
        "ids are unique",
        *(f"words agree with own count of {source}" for source in sorted({level.source for level in levels})),
        "valid words are among the words",
        "splits have known names",
        "test is the same in both splits",
        *(f"no {kind} in two values of {column}" for kind in KEPT_APART for column in SPLITS),
        *(title for title, _, _ in RULES),
        "dose: edit_distance",
        "levels nest",
        *(f"mean rate of {level.column}" for level in levels),
    ]


def check_row(audit: Audit, row: Mapping[str, Any]) -> None:
    """Check one text and all of its variants; what is null is a fault and is not looked at further."""
    check = audit["nothing is null"]
    check.see(audit.texts)
    sources = {level.source for level in audit.levels}
    needed = {"id", "text", "split", "encoder_split", *COUNT_COLUMNS, *sources}
    null = sorted(name for name in needed if row[name] is None)
    for name in null:
        check.fault(f"id {row['id']!r}", f"{name} is null")
    if not null:
        originals = {source: Original(row[source]) for source in sorted(sources)}
        check_text(audit, row, originals)
        by_perturbation: dict[str, list[Variant]] = {}
        for level in audit.levels:
            dose, edits = row[f"{level.column}_dose"], row[f"{level.column}_edits"]
            if None in (row[level.column], edits, dose) or None in dose.values():
                check.fault(f"id {row['id']!r}", f"{level.column}, its edits or its dose hold a null")
                continue
            counts = {name: dose.get(f"total_{name}", row[name]) for name in COUNT_COLUMNS}
            if level.source == "text" and counts != {name: row[name] for name in COUNT_COLUMNS}:
                audit["dose: words"].fault(f"id {row['id']!r}, {level.column}", f"of {counts}, the text has others")
            variant = Variant(level, originals[level.source], row[level.column], edits, dose, counts)
            check_variant(audit, row["id"], variant)
            by_perturbation.setdefault(level.perturbation, []).append(variant)
        for variants in by_perturbation.values():
            check_nesting(audit, row["id"], variants)
    audit.texts += 1


def tables(path: Path) -> list[Path]:
    """Return the tables of an exported folder, or the one table given. Splits can only be compared over all of them."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("data/*.parquet")) or sorted(path.glob("*.parquet"))
    if not found:
        raise UnreadableError(f"{path}: no Parquet file in it or in its folder data")
    return found


def check_tables(paths: Sequence[Path], show: int = 1) -> Audit:
    """Return what all checks found in the parts of a table. Raises UnreadableError with what is wrong with a file."""
    audit: Audit | None = None
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                audit = audit or Audit(read_levels(file.schema_arrow), show, read_unprotected(file.schema_arrow))
                check_columns(audit, file.schema_arrow, file.metadata.num_rows)
                if audit["columns are those promised"].faults:
                    return audit
                for name in check_names(audit.levels):
                    _ = audit[name]  # so that a check that meets nothing says so
                for batch in file.iter_batches(BATCH):
                    for row in rows_of(batch, audit.levels):
                        check_row(audit, row)
        except (OSError, pa.ArrowException) as error:
            raise UnreadableError(f"{path}: {error}") from error
    if audit is None:
        raise UnreadableError("no table was given")
    check_whole(audit)
    return audit


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; return 0 for no fault, 1 for some, 2 for a file that can't be read."""
    parser = argparse.ArgumentParser(description="Check a table of disturbed texts against the contract.")
    parser.add_argument("table", type=Path, help="an exported folder, or one Parquet file")
    parser.add_argument("--show", type=int, default=1, help="faults spelled out a check (default 1)")
    given = parser.parse_args(arguments)
    try:
        audit = check_tables(tables(given.table), given.show)
    except UnreadableError as error:
        print(f"can't be read: {error}", file=sys.stderr)
        return 2
    for name, check in audit.checks.items():
        print(check.line(name))
    if len(audit.checks) == 1:
        print("none  every other check: looked at nothing, for the columns are not those promised")
    faults = sum(check.faults for check in audit.checks.values())
    print(f"faults={faults} texts={audit.texts} edits={audit.edits}")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
