"""Reading a reply: what was answered, or why nothing can be read.

No credit where there is no answer: two labels, or a label only inside a negation, is unparsed.
"""

import json
import re
from collections.abc import Sequence

from noisyhealth.records import Answer, Outcome, Reply

_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:can(?:no|')t|won't|must decline)|as an ai\b|i apologi[sz]e)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"\b(?:final\s+)?(?:answer|label|sentiment|condition|classification)\b[\s*_\"']*[:=][\s*_\"']*", re.I
)
_JUSTIFICATION = re.compile(r"[\s*_]*\b(?:justification|explanation|reason(?:ing)?)\b[\s*_]*:", re.IGNORECASE)
_NEGATED = r"(?:\b(?:not|isn't|is not|neither|nor|rather than|instead of|no)\s+(?:\w+\s+)?)"


def read_label(reply: Reply, labels: Sequence[str]) -> Answer:
    """Return the one label that the reply answers with.

    A label is read, in this order, from a JSON object, after "Answer:", as the whole reply, or as the
    only label that the reply mentions outside a negation.
    """
    text = reply.text.strip()
    if outcome := _nothing(reply, text):
        return Answer(reply.id, reply.text, "", outcome)
    for part in (_from_json(text), _after_lead(text), text):
        if part is not None and len(found := _mentioned(part, labels)) == 1:
            return Answer(reply.id, reply.text, found[0], Outcome.SCORED)
    return Answer(reply.id, reply.text, "", _why_not(reply, text))


def read_free(reply: Reply) -> Answer:
    """Return the free answer of a reply, without its lead, its justification and white space around."""
    text = reply.text.strip()
    if outcome := _nothing(reply, text):
        return Answer(reply.id, reply.text, "", outcome)
    after = _after_lead(text)
    justified = _JUSTIFICATION.search(text)
    value = (after if after is not None else _JUSTIFICATION.split(text, maxsplit=1)[0]).strip().strip('*_"').strip()
    if _REFUSAL.match(value):
        return Answer(reply.id, reply.text, "", Outcome.REFUSED)
    if reply.finish == "length" and not justified:
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
    return next((str(values[key]) for key in keys if key in values), None)


def _after_lead(text: str) -> str | None:
    """Return what stands between "Answer:" and the end of its line or its justification."""
    if not (found := _LEAD.search(text)):
        return None
    rest = text[found.end() :].lstrip()
    return _JUSTIFICATION.split(rest.split("\n", 1)[0], maxsplit=1)[0]


def _mentioned(text: str, labels: Sequence[str]) -> list[str]:
    """Return the labels that stand in the text as words, outside a negation."""
    found = []
    for label in labels:
        word = rf"(?<![\w-]){re.escape(label)}(?![\w-])"
        plain = re.sub(_NEGATED + word, " ", text, flags=re.IGNORECASE)
        if re.search(word, plain, re.IGNORECASE):
            found.append(label)
    return found
