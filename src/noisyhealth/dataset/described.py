"""What each perturbation does, in a sentence or two for whoever reads an exported dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def joined(items: Sequence[str]) -> str:
    """Return the items as a list in a sentence.

    >>> joined(["low", "mid", "high"])
    'low, mid and high'
    """
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)


def _typo(change: Mapping[str, Any]) -> str:
    low, high = 100 * change.get("low_share", 0.2), 100 * change.get("high_share", 0.5)
    typed = "a neighbour on the keyboard" if change.get("neighbours") else "any letter of the alphabet"
    return (
        f"Typing errors: {low:.0f} to {high:.0f} % of the letters of a chosen word, at least one, are inserted, "
        f"deleted, substituted or transposed. What is typed by mistake is {typed}. The edit distance between the "
        "word and its typo is the number of letters drawn, and the word keeps its case."
    )


def _homophone(change: Mapping[str, Any]) -> str:
    target = str((change.get("sounds") or {}).get("_target_", "Table")).rpartition(".")[2]
    sounds = {"Table": "a table made from CMUdict", "Datamuse": "the service Datamuse, as in the study"}
    return (
        "Words that sound alike: a chosen word is replaced by the first word that sounds like it (“disease”, "
        f"“decease”), in its case. The sounds are those of {sounds.get(target, f'`{target}`')}; an exact homophone "
        "comes before a near one. Near ones are an approximation of what is misheard: `op` says which a replacement is."
    )


def _redact(change: Mapping[str, Any]) -> str:
    if mask := change.get("mask"):
        return f"Words left out: `{mask}` stands in place of a chosen word, so that a reader sees where one is missing."
    return "Words left out: a chosen word goes, with the space that would be left double; nothing shows where it stood."


def _abbreviation(change: Mapping[str, Any]) -> str:
    grades = joined([str(grade) for grade in change.get("shorts", {}).get("grades", ())]) or "all"
    return f"Abbreviations: a chosen word is shortened as notes and messages do (“patient”, “pt”); grades: {grades}."


def _order(change: Mapping[str, Any]) -> str:
    return (
        "Word order: a chosen word stands behind the next one, which may be disturbed too. Its edit holds both words; "
        "the rate counts the one that moved."
    )


def _ocr(change: Mapping[str, Any]) -> str:
    return (
        "Misread letters: one letter or pair of letters of a chosen word is read as another of its shape (“rn”, “m”)."
    )


def _dictation(change: Mapping[str, Any]) -> str:
    return (
        "Misheard words: a chosen word loses or gains an ending, or has an affix taken for another (“hyper”, “hypo”)."
    )


def _plain(change: Mapping[str, Any]) -> str:
    lost = {"capitals": "its capitals", "marks": "its apostrophes and the sentence marks behind it"}
    return f"Plain text: a chosen word loses {joined([what for name, what in lost.items() if change.get(name, True)])}."


def _mixture(change: Mapping[str, Any]) -> str:
    shares = joined([f"{name} {share:g}" for name, share in change.get("shares", {}).items()])
    return (
        f"A mixture: each chosen word is disturbed by one of several perturbations, drawn by their shares ({shares}); "
        "where that cannot change the word, another does. `op` begins with the name of the one that did."
    )


# By the class that changes words, in small letters; each is given that class's settings.
HOW: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    **{"typo": _typo, "homophone": _homophone, "redact": _redact, "abbreviation": _abbreviation, "order": _order},
    **{"ocr": _ocr, "dictation": _dictation, "plain": _plain, "mixture": _mixture},
}
