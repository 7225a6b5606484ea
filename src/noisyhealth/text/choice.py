"""Which label a piece of a reply chooses: a label named, not denied, not left open."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from noisyhealth.errors import ConfigError

Forms: TypeAlias = Mapping[str, Sequence[str]]

# Up to four words may stand between the negation and the label: "does not seem to be very positive".
_NOT = (
    r"\b(?:not|never|cannot|\w{1,9}n['’]t|neither|nor|no|no longer|nothing|without|hardly|barely|lacks?|lacking"
    r"|(?<!or )less|rather than|instead of|as opposed to|far from|anything but|opposite of|unlikely|doubt(?:ful)?)\s+"
    r"(?:(?!(?:but|only|just|merely|simply|so|hence|thus|therefore)\b)\w+\s+){0,4}?[*_\"'`“‘]*"
)
_DENIED = (
    r"[*_\"'`”’]*(?:\s?[:=?]\s?(?:no|false|null|none|0(?!\.))\b(?! \w)"
    r"|\s(?:\w+\s){0,3}?(?:is|are|was|were)\s(?:absent|missing|lacking|nowhere)\b"
    r"|\s(?:is|was|does|do|can|could|would)(?:n['’]t\b|\s(?:not|wrong|incorrect|false)\b))"
)
_OPEN_CHOICE = re.compile(
    r"\b(?:mixed|neutral|ambiguous|ambivalent|unclear|either|whether|(?:could|might|may)(?: also| well)? be|possibly"
    r"|perhaps|maybe|not sure|(?:hard|difficult|impossible) to (?:say|tell)"
    r"|(?:depends|see|sure|know) if)\b|(?:\b(?:or|and|nor|but)|/)\W*$",
    re.IGNORECASE,
)
# A finding is no answer: "a positive covid test", "tested negative".
_FINDING = re.compile(
    r"\b(?:positive|negative)\s(?:(?:covid(?:-19)?|hiv|blood|pregnancy|medical|lab|antibody|antigen|pcr|strep|flu)\s)?"
    r"(?:tests?|results?|swabs?|cultures?|screens?|screening|scans?|biops(?:y|ies)|smears?|findings?)\b"
    r"|\b(?:test(?:s|ed|ing)|screened|swabbed|(?:came|come|comes) back)\s(?:positive|negative)\b",
    re.IGNORECASE,
)
_NEITHER = re.compile(
    r"\W*(?:(?:it|this)(?:['’]s| is) )?(?:mixed|neutral|both|either|neither|unclear|ambiguous|unknown|none)\W*",
    re.IGNORECASE,
)
_CONCESSION = re.compile(
    r"(?:^|[.;\n])\W{0,5}(?:although|though|even though|while|whilst|despite|whereas)\b[^,.;\n]*,"
    r"|,?\s(?:although|though|even though|despite|whereas)\b[^.;\n]*|,\s(?:while|whilst)\b[^.;\n]*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[.;!?()\n]+|\s[-–—]+\s|—|,?\s(?:because|since|as|due to|given)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!?;\n](?:\s|$)")
_AGAIN = re.compile(r"(?:or|and|but|actually|wait|no|maybe|also|both|rather|well|sorry|hmm)[\s,]+", re.IGNORECASE)
_STRUCK = re.compile(r"~~[^~\n]*~~|^[ *-]{0,5}\[ ?\][^\n]*", re.MULTILINE)
_TICKED = re.compile(r"\[[xX✓]\]|[☑✅✔]")
_WRAPPING = re.compile(r"```[a-z]*\s|</?\w{1,20}>|\\(?:boxed|text|textbf|mathrm)\b|\{\\\w{1,9}", re.IGNORECASE)


def check_forms(labels: Sequence[str], aliases: Forms, task: str) -> None:
    """Raise ConfigError for a form that would stand for two labels; forms of what is no label here do nothing."""
    owners: dict[str, str] = {}
    for label, words in forms(labels, aliases).items():
        for word in words:
            if owners.setdefault(word.casefold(), label) != label:
                raise ConfigError(
                    f"task.aliases of task {task}: {word!r} stands for "
                    f"{owners[word.casefold()]} and {label}; give it once"
                )


def forms(labels: Iterable[str], aliases: Forms) -> dict[str, tuple[str, ...]]:
    """Return each label that is no blank with all the words that stand for it."""
    return {label: (label, *aliases.get(label, ())) for label in labels if label.strip()}


def standing(text: str) -> str:
    """Return the text without what is struck out (~~positive~~) and without boxes, ticked or not."""
    return _TICKED.sub(" ", _STRUCK.sub(" ", text))


def settled(said: str, names: Forms) -> str | None:
    """Return the label that is chosen; "" where none is named, None where the choice stays open.

    1. `opening` says so. 2. Else what is conceded ("although ...") or denied falls away, and one label has
    to be left, in a sentence without "could be", "either", "whether", ...
    """
    return opened if (opened := opening(said, names)) != "" else _left(said, names)


def opening(said: str, names: Forms) -> str | None:
    """Return the label that the text opens with, "" where it does with none, None where it leaves the choice open.

    1. All of it is a label. 2. Its first clause is nothing but a label and no later one nothing but another.
    3. Its first clause is "mixed", "both", ...: open.
    """
    if label := bare(said, names):
        return label
    clauses = [clause for clause in _CLAUSE.split(said) if any(map(str.isalnum, clause))]
    if clauses and (first := bare(clauses[0], names)):
        others = {bare(_AGAIN.sub("", clause.strip(), count=2), names) for clause in clauses[1:]} - {"", first}
        return None if others else first
    return None if clauses and _NEITHER.fullmatch(clauses[0]) else ""


def bare(said: str, names: Forms) -> str:
    """Return the label that the text is, give or take case, punctuation and markup; "" for anything else."""
    text = _core(_WRAPPING.sub(" ", said))
    found = [label for label, words in names.items() if any(text == _core(word) for word in words)]
    return found[0] if len(found) == 1 else ""


def bare_lines(text: str, names: Forms) -> set[str]:
    """Return the labels that have a line of the text for themselves."""
    return {bare(line, names) for line in text.split("\n")} - {""}


def named(said: str, names: Forms) -> set[str]:
    """Return the labels that stand in the text as words and are neither denied there nor a test's finding."""
    words = {label: _word(each) for label, each in names.items()}
    if not (all_words := "|".join(words.values())):
        return set()
    # Whoever denies one denies what is joined to it: "not positive or negative".
    joined = rf"(?:\s*(?:/|\b(?:or|nor|and)\b)\s*(?:(?:an?|very|\w+ly)\s)?(?:{all_words}))*"
    plain = re.sub(f"(?:{all_words}){_DENIED}", " ", _FINDING.sub(" ", said), flags=re.IGNORECASE)
    plain = re.sub(f"{_NOT}(?:{all_words}){joined}", " ", plain, flags=re.IGNORECASE)
    return {label for label, word in words.items() if re.search(word, plain, re.IGNORECASE)}


def _left(said: str, names: Forms) -> str | None:
    plain = _CONCESSION.sub(" ", said)
    found = named(plain, names)
    if len(found) != 1:
        return None if found else ""
    [label] = found
    word = _word(names[label])  # a label may be a word such as "neutral" itself
    for sentence in _SENTENCE.split(plain):
        kept = re.sub(r"\b(?:not|isn['’]t) (?:mixed|neutral|ambiguous|unclear)\b", " ", sentence, flags=re.IGNORECASE)
        kept = re.sub(word, "x", kept, flags=re.IGNORECASE)
        if _OPEN_CHOICE.search(kept) and named(sentence, names):
            return None
    return label


def _word(words: Sequence[str]) -> str:
    each = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return rf"(?<![^\W_])(?<!\w-)(?:{each})(?![^\W_])(?!-\w)"


@lru_cache(maxsize=4096)
def _core(text: str) -> str:
    """Return the text in one case without the marks around it; a text of marks alone stays."""
    text = " ".join(text.casefold().split())
    start, end = 0, len(text)
    while start < end and _is_mark(text[start]):
        start += 1
    while end > start and _is_mark(text[end - 1]):
        end -= 1
    return text[start:end] or text


def _is_mark(sign: str) -> bool:
    return not sign.isalnum() and unicodedata.category(sign)[0] in "PSZC"
