"""Reading a reply: what was answered, or why nothing can be read.

No credit where there is no answer: two labels, or a label only inside a negation, is unparsed.
"""

import json
import re
from collections.abc import Sequence

from noisyhealth.records import Answer, Outcome, Reply

_UNABLE = r"i(?:['’]m| am) (?:unable|not able)|i (?:can(?:no|['’])t|won['’]t|must decline)"
_REFUSAL = re.compile(rf"\b(?:{_UNABLE}|i(?:['’]m| am) sorry|as an ai\b|i apologi[sz]e)", re.IGNORECASE)
# Sorrow for the writer is no refusal: "I'm sorry you hurt: negative".
_SORRY = r"(?:(?:i(?:['’]m| am) )?sorry|i apologi[sz]e|unfortunately|as an ai\b[^,.]*)[,.]?\s+(?:but\s+)?"
_DECLINED = re.compile(rf"(?:{_SORRY})*(?:{_UNABLE})", re.IGNORECASE)
_MARK = r"(?:\s+is)?[\s*_\"'`]*[:=][\s*_\"'`]*"
_LEAD = re.compile(rf"\b(?:answer|label|sentiment|condition|classification)\b{_MARK}", re.IGNORECASE)
_ANSWER = re.compile(rf"\banswer\b{_MARK}", re.IGNORECASE)
_JUSTIFICATION = re.compile(r"[\s*_]*\b(?:justification|explanation|reason(?:ing)?)\b[\s*_]*:", re.IGNORECASE)
# Up to two words may stand between the negation and the label: "not at all positive".
_NEGATED = (
    r"\b(?:not|never|cannot|\w+n['’]t|neither|nor|no|nothing|without|rather than|instead of|far from)\s+"
    r"(?:(?!but\b)\w+\s+){0,2}[*_\"'`“]*"
)


def read_label(reply: Reply, labels: Sequence[str]) -> Answer:
    """Return the one label that the reply answers with, outside a negation.

    It is looked for in a JSON object; without one, after "Answer:"; without that, in all that stands
    before a justification. Where the answer has its place, no other place counts.
    """
    text = reply.text.strip()
    if outcome := _nothing(reply, text):
        return Answer(reply.id, reply.text, "", outcome)
    said = _from_json(text)
    if said is None and (after := _after(_LEAD, text)):
        said = "\n".join(after)
    if said is None:
        said = "" if _DECLINED.match(text) else _before_justification(text)
    if len(found := _mentioned(said, labels)) == 1:
        return Answer(reply.id, reply.text, found[0], Outcome.SCORED)
    return Answer(reply.id, reply.text, "", _why_not(reply, text))


def read_free(reply: Reply) -> Answer:
    """Return the free answer of a reply, without its lead, its justification and what frames it."""
    text = reply.text.strip()
    if outcome := _nothing(reply, text):
        return Answer(reply.id, reply.text, "", outcome)
    said = _from_json(text)
    whole = said is not None or _JUSTIFICATION.search(text) is not None
    if said is None:
        said = next(iter(_after(_ANSWER, text)), _JUSTIFICATION.split(text, maxsplit=1)[0])
    value = said.strip().strip('*_"`').strip()
    if _REFUSAL.match(value):
        return Answer(reply.id, reply.text, "", Outcome.REFUSED)
    if reply.finish == "length" and not whole:
        return Answer(reply.id, reply.text, "", Outcome.CUT)
    return Answer(reply.id, reply.text, value, Outcome.SCORED if value else Outcome.EMPTY)


def _nothing(reply: Reply, text: str) -> Outcome | None:
    if reply.finish == "error":
        return Outcome.FAILED
    return None if text else Outcome.EMPTY


def _why_not(reply: Reply, text: str) -> Outcome:
    if reply.finish == "length":
        return Outcome.CUT
    return Outcome.REFUSED if _REFUSAL.search(text) else Outcome.UNPARSED


def _from_json(text: str) -> str | None:
    """Return the answer inside a JSON object, with or without a code fence around it."""
    if not (found := re.search(r"\{.*\}", text, re.DOTALL)):
        return None
    try:
        content = json.loads(found[0])
    except ValueError:
        return None
    keys = ("answer", "label", "sentiment", "condition", "classification")
    values = {str(k).lower(): v for k, v in content.items()} if isinstance(content, dict) else {}
    return next((_spoken(values[key]) for key in keys if key in values), None)


def _spoken(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_spoken, value))
    return "" if value is None else str(value)


def _after(lead: re.Pattern[str], text: str) -> list[str]:
    """Return what stands between each lead ("Answer:") and the end of its line or its justification."""
    rests = [text[found.end() :].lstrip() for found in lead.finditer(text)]
    return [_JUSTIFICATION.split(rest.split("\n", 1)[0], maxsplit=1)[0] for rest in rests]


def _before_justification(text: str) -> str:
    """Return what stands before the justification, or the whole text when nothing does."""
    return _JUSTIFICATION.split(text, maxsplit=1)[0] or text


def _mentioned(text: str, labels: Sequence[str]) -> list[str]:
    """Return the labels that stand in the text as words, outside a negation."""
    found = []
    for label in labels:
        word = rf"(?<![^\W_])(?<!\w-){re.escape(label)}(?![^\W_])(?!-\w)"
        plain = re.sub(_NEGATED + word, " ", text, flags=re.IGNORECASE)
        if re.search(word, plain, re.IGNORECASE):
            found.append(label)
    return found
