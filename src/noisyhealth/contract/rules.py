"""The rules of the contract, each written from its words alone, not from the engine that should keep them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, combinations, pairwise
from unicodedata import category, normalize

import regex

from noisyhealth.contract.draw import Levels, key, levels
from noisyhealth.contract.texts import Text
from noisyhealth.dataset.design import STUDIED, Disturbance
from noisyhealth.perturbations.engine import Change, OutOfReach, Unit, distance, ranked
from noisyhealth.records import Variant, Word
from noisyhealth.text.words import spans

RULES: Mapping[str, str] = {
    "identity": "at rate 0 every byte stays, and what is called a change is one",
    "rate": "exactly the words asked, or the text is out of reach and says so; a word becomes one word or none",
    "nesting": "levels rise, and a higher one contains a lower one",
    "replay": "edits say what stood where, and give the variant when replayed",
    "determinism": "the same seed, task and id give the same text: again, in any order, alone, in another process",
    "unicode": "any text may be given, and Unicode text comes out",
    "protection": "no byte of a protected or another word is touched",
    "speed": "fast enough for a dataset",
}
# Control characters, what is not seen, halves of characters, what Unicode does not assign.
_NO_TEXT = ("Cc", "Cf", "Cs", "Co", "Cn")
_IGNORED = regex.compile(r"\p{Default_Ignorable_Code_Point}")  # marks and letters among what is not seen
Fault = tuple[str, str]
"""The rule that is broken, and what broke it, in words."""


def of_change(text: Text, at: int, made: Change) -> Iterator[Fault]:
    """Yield what is wrong with the change of the word number `at`."""
    word = text.words[at]
    told = f"{word.text!r} → {made.after!r}"
    if made.after == made.before:
        yield "identity", f"{told}: a word that cannot change is None, not itself"
    if made.start != word.start or not text.body.startswith(made.before, made.start):
        yield "replay", f"{told}: {made.before!r} does not stand at character {made.start}, where the word begins"
    elif not made.before.startswith(word.text):
        yield "replay", f"{told}: {made.before!r} is not the whole word"
    elif not _is_move(text, at, made):
        behind = made.before[len(word.text) :]
        if taken := [char for char in behind if not (category(char) == "Zs" or category(char).startswith("P"))]:
            yield "protection", f"{told}: takes {''.join(taken)!r} along, no mark and no blank of its line"
        yield from (("rate", f"{told}: {why}") for why in _no_word(word, made))
    yield from (("unicode", f"{told}: {why}") for why in _no_text(made))


def _no_word(word: Word, made: Change) -> Iterator[str]:
    """Yield why what came out is not one word or none."""
    if made.after.split() not in ([], [made.after]):
        yield f"is {len(made.after.split())} words, or has blanks around it; give one word or none"
    elif (count := len(spans(made.after))) > max(1, len(spans(made.before))):
        yield f"is {count} words to a reader; give one word or none"
    elif made.after and not count and len(word.text) > 1:
        yield "is no word; give one or nothing"
    if made.after and made.before[-1:].isspace():
        yield "takes the blank along that keeps it from the next word, so that two words become one"


def _is_move(text: Text, at: int, made: Change) -> bool:
    """Tell whether a change moves its word past the next one; the engine makes only those that it may."""
    if at + 1 == len(text.words):
        return False
    word, after = text.words[at], text.words[at + 1]
    blanks = text.body[word.end : after.start]
    return blanks.isspace() and made[1:3] == (f"{word.text}{blanks}{after.text}", f"{after.text}{blanks}{word.text}")


def _no_text(made: Change) -> Iterator[str]:
    """Yield why what came out of a word is no text that a reader sees."""
    for char in dict.fromkeys(made.after):
        if (category(char) in _NO_TEXT or _IGNORED.match(char)) and char not in made.before:
            yield f"U+{ord(char):04X} is no character of a text"
    first, was = made.after[:1], made.before[:1]
    if first and category(first).startswith("M") and not category(was).startswith("M"):
        yield f"it begins with the mark U+{ord(first):04X}, torn from its letter"
    if made.after != made.before and normalize("NFC", made.after) == normalize("NFC", made.before):
        yield "it is the same word in another form of Unicode, which no reader sees"


def of_levels(text: Text, disturbance: Disturbance, found: Levels) -> Iterator[Fault]:
    """Yield what is wrong with a text at its levels."""
    for level, variant in found.items():
        yield from _rate(text, disturbance, level, variant)
        if isinstance(variant, Variant):
            yield from _replay(text, level, variant)
            yield from _protection(text, level, variant)
    yield from _nesting(text, disturbance, found)
    yield from _identity(text, disturbance)


def _identity(text: Text, disturbance: Disturbance) -> Iterator[Fault]:
    kept = levels(text, replace(disturbance, levels={"none": 0.0}))["none"]
    if not isinstance(kept, Variant) or kept.edits or kept.text.encode() != text.body.encode():
        yield "identity", f"at rate 0 {_short(text.body)} becomes {kept}"


def _rate(text: Text, disturbance: Disturbance, level: str, variant: Variant | OutOfReach) -> Iterator[Fault]:
    rate = Fraction(str(disturbance.levels[level]))
    if disturbance.unit == Unit.CHARS:
        yield from _rate_of_characters(text, disturbance, level, variant)
        return
    whole = len(text.words) if disturbance.unit == Unit.WORDS else sum(word.valid for word in text.words)
    asked = int(whole * rate + Fraction(1, 2))  # a half is rounded up
    if isinstance(variant, OutOfReach):
        if (variant is OutOfReach.TOO_SHORT) != (asked == 0):
            yield "rate", f"{level}: {asked} words were asked of {_short(text.body)}, which is called {variant}"
        return
    changed = {edit.word for edit in variant.edits if edit.before != edit.after}
    if len(changed) != asked or len(variant.edits) != asked:
        yield "rate", f"{level}: {len(changed)} words of {_short(text.body)} changed where {asked} were asked"


def _rate_of_characters(
    text: Text, disturbance: Disturbance, level: str, variant: Variant | OutOfReach
) -> Iterator[Fault]:
    """Yield where a share of the characters is not met as nearly as whole words can."""
    assert disturbance.change is not None
    if isinstance(variant, OutOfReach):
        return
    asked = int(len(text.body) * Fraction(str(disturbance.levels[level])) + Fraction(1, 2))
    edits = ranked(text.body, text.words, disturbance.change, key(text, disturbance, level).rng())
    nearest = min(abs(total - asked) for total in accumulate(map(distance, edits), initial=0))
    given = sum(map(distance, variant.edits))
    if abs(given - asked) != nearest:
        yield "rate", f"{level}: {given} characters of {_short(text.body)} changed where {asked} were asked"


def _replay(text: Text, level: str, variant: Variant) -> Iterator[Fault]:
    again = text.body
    for edit in sorted(variant.edits, reverse=True):  # from the right, so that no place moves
        if not again.startswith(edit.before, edit.start):
            yield "replay", f"{level}: {edit.before!r} does not stand at character {edit.start} of {_short(text.body)}"
        again = again[: edit.start] + edit.after + again[edit.start + len(edit.before) :]
    if again != variant.text:
        yield "replay", f"{level}: the edits give {_short(again)}, not {_short(variant.text)}"


def _protection(text: Text, level: str, variant: Variant) -> Iterator[Fault]:
    kept = [(one.start, one.text) for one in spans(text.body, text.design.tagger.protect) if one.protection]
    kept += [(word.start, word.text) for word in text.words if not word.valid]
    for edit in variant.edits:
        for start, word in kept:
            if start < edit.start + len(edit.before) and edit.start < start + len(word):
                yield "protection", f"{level}: {word!r} is touched by {edit.before!r} → {edit.after!r}"


def _nesting(text: Text, disturbance: Disturbance, found: Levels) -> Iterator[Fault]:
    if not disturbance.nested:
        return
    rising = sorted(disturbance.levels, key=lambda level: disturbance.levels[level])
    for low, high in pairwise(rising):
        one, other = found[low], found[high]
        if isinstance(one, Variant) and isinstance(other, Variant) and not set(one.edits) <= set(other.edits):
            yield "nesting", f"{high} of {_short(text.body)} does not contain {low}"
    for level in rising:
        alone = levels(text, replace(disturbance, levels={level: disturbance.levels[level]}))[level]
        if alone != found[level]:
            yield "nesting", f"{level} of {_short(text.body)} is another text when it is drawn alone"


def of_settings(disturbance: Disturbance) -> Iterator[Fault]:
    """Yield what is wrong with the levels themselves."""
    named = [level for level in STUDIED if level in disturbance.levels]
    for low, high in pairwise(named):
        if not disturbance.levels[low] < disturbance.levels[high]:
            rates = f"{disturbance.levels[low]:g} and {disturbance.levels[high]:g}"
            yield "nesting", f"levels.{low} and levels.{high} are {rates}: they must rise"
    others = [level for level in disturbance.levels if level not in STUDIED]
    for one, other in combinations([*named, *others], 2):
        if other in others and disturbance.levels[one] == disturbance.levels[other]:
            yield "nesting", f"levels.{one} and levels.{other} are one dose, {disturbance.levels[one]:g}"


def of_reach(disturbance: Disturbance, reached: Mapping[str, int], texts: int) -> Iterator[Fault]:
    """Yield the levels that no text reaches. `reached`: how many texts do, by level."""
    for level, count in reached.items():
        if not count:
            yield "rate", f"levels.{level}={disturbance.levels[level]:g}: none of {texts} texts reaches it"


def of_speed(words: int, seconds: float, least: float) -> Iterator[Fault]:
    """Yield that a perturbation is too slow. `least`: words a second."""
    if words and words / max(seconds, 1e-9) < least:
        yield (
            "speed",
            f"{words / seconds:,.0f} words a second, and {least:,.0f} are asked (--speed sets another number)",
        )


def of_draws(texts: Sequence[Text], first: Sequence[str], others: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    """Yield the texts that came out otherwise. `first`: their digests; `others`: the same by how they were drawn."""
    for how, digests in others.items():
        for text, one, other in zip(texts, first, digests, strict=True):
            if one != other:
                yield "determinism", f"{_short(text.body)} is another text {how}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
