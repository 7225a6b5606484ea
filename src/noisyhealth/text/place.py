"""Where a reply keeps its answer: past its thoughts, before an invented next case, in a field, a tag or a lead."""

import json
import re
from collections.abc import Iterator
from itertools import islice, takewhile

_OPEN = re.compile(r"<(?:think(?:ing)?|thought|reasoning|scratchpad)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:think(?:ing)?|thought|reasoning|scratchpad)>", re.IGNORECASE)
_WRAP = r"[\s*_\"'`“‘]*"
_MARK = rf"(?:\s{{1,9}}is)?{_WRAP}(?:[:=：]|\|[\s|:\-]*){_WRAP}"
_OTHER_WORDS = r"(?:label|sentiment|condition|classification|category|prediction)"
ANSWER = re.compile(
    rf"\b(?:(?:the|my|final|correct|best) ){{0,3}}answer\b{_MARK}|^[ #*_>]*(?:final )?answer[ *_#]*\n{_WRAP}",
    re.IGNORECASE | re.MULTILINE,
)
OTHER = re.compile(rf"\b{_OTHER_WORDS}\b{_MARK}", re.IGNORECASE)
VERDICT = re.compile(
    r"(?<!whether )(?<!whether the )(?<!if the )(?<!whether this )"
    rf"\b(?:answer|{_OTHER_WORDS})\b(?: (?!(?:could|might|may|not)\b)\w+){{0,6}}? (?:is|as|would be|seems|appears) ",
    re.IGNORECASE,
)
CONCLUSION = re.compile(
    r"(?:^|[.!?] )\W{0,5}(?:therefore|thus|hence|so,|overall|ultimately|in conclusion|in summary|to conclude)",
    re.IGNORECASE | re.MULTILINE,
)
_TAG = re.compile(
    rf"<(?:final[_ ]?)?(?:answer|{_OTHER_WORDS})>|\\boxed\{{(?:\\(?:text|textbf|mathrm)\{{)?", re.IGNORECASE
)
_TAG_END = re.compile(r"</|\}")
_JUSTIFICATION = re.compile(
    r"\b(?:justification|explanation|rationale|reason(?:ing)?)\b[\s*_]{0,9}[:：]", re.IGNORECASE
)
_NEXT = re.compile(
    r"<\|\w+\|>|<(?:start_of_turn|end_of_turn|eos|/s)>|\[/?INST\]|^[ #*_>-]*"
    r"(?:(?:next )?(?:message|abstract|note|question|input|text|user|human|assistant|q)(?: \d+)?[*_]*:"
    r"|(?:example|case) \d+)",
    re.IGNORECASE | re.MULTILINE,
)
_BULLET = re.compile(r"[ \t]*(?:[-*•]|\d{1,2}[.)]) ")
_KEYS = ("answer", "finalanswer", "label", "sentiment", "condition", "classification", "prediction", "category")
_FIELD = re.compile(
    rf"[{{,]\s*['\"]?(?:final[_ ]?)?(?:answer|{_OTHER_WORDS})['\"]?\s?:\s?"
    r"(?:\"([^\"]*)\"|'((?:[^'\n]|'(?!\s?[,}\]]))*)'|([^\s\"'{\[,}][^,}\n]*))",
    re.IGNORECASE,
)


def without_thought(text: str) -> tuple[str, bool]:
    """Return the reply without its thoughts, and whether a thought was never closed."""
    opened, closed = _OPEN.search(text), list(_CLOSE.finditer(text))
    if closed:
        head = text[: opened.start()] if opened and opened.start() < closed[-1].start() else ""
        text = f"{head}\n{text[closed[-1].end() :]}"
        opened = _OPEN.search(text)
    return (text[: opened.start()].strip(), True) if opened else (text.strip(), False)


def heads(text: str) -> Iterator[str]:
    """Yield what stands before each of the first signs of a next case ("Message:", a chat token), shortest first."""
    for found in islice(_NEXT.finditer(text), 20):
        if head := text[: found.start()].strip():
            yield head


def is_echo(text: str) -> bool:
    """Say whether the text opens as a case does, so that it repeats one."""
    return _NEXT.match(text) is not None


def content(text: str) -> object:
    """Return the first JSON object or array of the text; None where there is none."""
    for found in islice(re.finditer(r"\{|\A(?:```\w*\s*)?\[", text), 3):
        try:
            made: object = json.JSONDecoder().raw_decode(text, found.end() - 1)[0]
        except (ValueError, RecursionError):
            continue
        return made
    return None


def field(text: str) -> str | None:
    """Return the answer inside an object, one level or more deep, well formed or nearly."""
    queue = [content(text)]
    for node in queue:  # grows as it is read: the outermost answer comes first
        if isinstance(node, dict):
            values = {re.sub(r"[\W_]", "", str(k)).lower(): v for k, v in node.items()}
            for key in _KEYS:
                if key in values and not isinstance(values[key], dict):
                    return _spoken(values[key])
            queue.extend(node.values())
        elif isinstance(node, list):
            if node and all(isinstance(each, str) for each in node):
                return _spoken(node)
            queue.extend(node)
    if queue[0] is None and "{" in text and (found := _FIELD.search(text)):
        return next((value for value in found.groups() if value is not None), "").strip()
    return None


def tagged(text: str) -> list[str]:
    """Return what stands in <answer> tags or in a \\boxed{}."""
    return [_TAG_END.split(rest, maxsplit=1)[0].strip() for rest in _rests(_TAG, text)]


def after(lead: re.Pattern[str], text: str) -> list[str]:
    """Return what stands between each lead ("Answer:") and the next, the end of the line or a justification."""
    return [before_justification(rest.lstrip().split("\n", 1)[0]) for rest in _rests(lead, text)]


def listed(text: str) -> list[str]:
    """Return what stands after each "Answer:", all of it where it is a list."""
    rests = [before_justification(rest.strip()).split("\n") for rest in _rests(ANSWER, text)]
    return ["\n".join(takewhile(_BULLET.match, rest)) or rest[0] for rest in rests]


def same_line(text: str) -> str | None:
    """Return what stands after the first "Answer:" on its own line; None without an "Answer:"."""
    if not (found := ANSWER.search(text)):
        return None
    return "" if "\n" in found[0] else after(ANSWER, text)[0]


def justified(text: str) -> bool:
    """Say whether a justification begins in the text."""
    return _JUSTIFICATION.search(text) is not None


def before_justification(text: str) -> str:
    """Return what stands before the justification; all where there is none."""
    found = _JUSTIFICATION.search(text)
    return text[: found.start()].rstrip(" \n\t*_#|>-") if found else text


def _rests(lead: re.Pattern[str], text: str) -> list[str]:
    found = list(lead.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)]
    return [text[each.end() : end] for each, end in zip(found, ends, strict=False)]


def _spoken(value: object) -> str:
    if isinstance(value, list):
        return ", ".join("" if isinstance(each, dict | list) else _spoken(each) for each in value)
    return "" if value is None else str(value)
