"""Reading a reply: what was answered, or why nothing can be read.

No credit where there is no answer. Three readings: "strict" takes an answer that stands where the prompt asks for it,
"lenient" takes it wherever exactly one can be found. What strict reads, lenient reads alike. "last" is for replies that
reason before they answer: what stands from the last "Answer:" on is read leniently, and nothing that stands before.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from noisyhealth.errors import ConfigError
from noisyhealth.records import Answer, Outcome, Reply
from noisyhealth.text import choice, place, refusal
from noisyhealth.text.choice import Forms

READINGS = ("lenient", "strict", "last")
_SENTENCE = re.compile(r"(?<=[.!?\n])")
_WITHHELD = ("content_filter", "refusal")
_UNFINISHED = ("length", *_WITHHELD)
_CHOSEN = ("choice", "span")  # the model chose a text and wrote none, so all of it is the answer


def check_reading(reading: str, task: str) -> None:
    """Raise ConfigError for a reading there is not."""
    if reading not in READINGS:
        raise ConfigError(f"task.reading={reading!r} of task {task}: give {' or '.join(READINGS)}")


def read_label(reply: Reply, labels: Sequence[str], aliases: Forms | None = None, reading: str = "lenient") -> Answer:
    """Return the one label that the reply answers with; `aliases` are other forms of each label.

    1. A lost call is failed; thoughts (<think>) are skipped; a next case that the model invents is dropped.
    2. The answer's place: the field of a JSON object, <answer> or \\boxed{}, after "Answer:", after another lead
       ("Sentiment:"). Where there is one, no other place counts; answers in two places have to agree.
    3. Without one: "the sentiment is ...", a line or a first clause that is a label alone, "Therefore ...", then all
       before a justification, without questions; nothing where the reply opens by declining.
    4. In its place a label counts as `choice.settled` says; where the text was cut, only as `choice.opening` says.
    Strict: the field, the rest of the "Answer:" line or the whole reply has to be nothing but the label.
    """
    if reading == "last" and reply.finish not in _CHOSEN:
        return _concluded(reply, lambda rest: read_label(rest, labels, aliases))
    names = choice.forms(labels, aliases or {})
    whole, unclosed = place.without_thought(reply.text)
    text = _first_case(_even(whole), names)
    if outcome := _nothing(reply, text, unclosed):
        return Answer(reply.id, reply.text, "", outcome)
    kept = choice.standing(text)
    said = _places(kept)
    cut = unclosed or reply.finish in _UNFINISHED
    value = _in_prose(kept, names, cut=cut) if said is None else _agreed(said, names, kept if cut else "")
    if reading == "strict" and value and value != _strictly(text, names):
        return Answer(reply.id, reply.text, "", Outcome.UNPARSED)
    if value:
        return Answer(reply.id, reply.text, value, Outcome.SCORED)
    refused = any(map(refusal.declined, said)) if said else refusal.declines_somewhere(text)
    return Answer(reply.id, reply.text, "", _why_not(reply, unclosed, refused=refused))


def read_free(reply: Reply, reading: str = "lenient") -> Answer:
    """Return the free answer of a reply, without its lead, its justification and what frames it.

    1. As for a label: failed, thoughts, next cases. 2. The answer is a JSON object's, else in <answer> or \\boxed{},
    else after the first "Answer:", else all before a justification. 3. Where that declines it is refused, unless a
    "but" brings an answer. 4. Cut at the limit, it counts when a justification or the object's next field had begun.
    Strict: after "Answer:" alone. What a model chose from the text ("span") is the answer in both readings.
    """
    if reading == "last" and reply.finish not in _CHOSEN:
        return _concluded(reply, _free)
    return _free(reply, reading)


def _free(reply: Reply, reading: str = "lenient") -> Answer:
    text, unclosed = place.without_thought(reply.text)
    text = _first_answer(text)
    if outcome := _nothing(reply, text, unclosed):
        return Answer(reply.id, reply.text, "", outcome)
    inside = [] if (found := place.field(text)) is None else [found]
    inside = inside or place.tagged(text)
    led = place.listed(text)
    places = inside or led or [place.before_justification(text)]
    said = next(filter(None, places), "")
    value = re.sub(r"^```\w*\n|\n?```$", "", said.strip()).strip().strip('*_"`').strip()
    if refusal.declined(value):
        return Answer(reply.id, reply.text, "", Outcome.REFUSED)
    closed = bool(inside) or place.justified(text)
    if unclosed or (reply.finish in _UNFINISHED and not closed):
        return Answer(reply.id, reply.text, "", _why_not(reply, unclosed, refused=False))
    if _blank(value):
        return Answer(reply.id, reply.text, "", Outcome.EMPTY)
    if reading == "strict" and reply.finish not in _CHOSEN and (inside or not led):
        return Answer(reply.id, reply.text, "", Outcome.UNPARSED)
    return Answer(reply.id, reply.text, value, Outcome.SCORED)


def _concluded(reply: Reply, read: Callable[[Reply], Answer]) -> Answer:
    """Return what is read where the reasoning has ended."""
    concluded = _after_reasoning(reply)
    if isinstance(concluded, Outcome):
        return Answer(reply.id, reply.text, "", concluded)
    return replace(read(concluded), reply=reply.text)


def _after_reasoning(reply: Reply) -> Reply | Outcome:
    """Return the reply from its last "Answer:" on, or why there is none; of a next case that it invents nothing."""
    text, unclosed = place.without_thought(reply.text)
    if outcome := _nothing(reply, text, unclosed):
        return outcome
    text = next((head for head in place.heads(text) if any(place.after(place.ANSWER, head))), text)
    *_, last = [None, *place.ANSWER.finditer(text)]
    if unclosed or last is None:
        return _why_not(reply, unclosed, refused=refusal.declines_somewhere(_even(text)))
    return replace(reply, text=text[last.start() :])


def _nothing(reply: Reply, text: str, unclosed: bool) -> Outcome | None:
    if reply.finish == "error":
        return Outcome.FAILED
    if reply.finish == "refusal":
        return Outcome.REFUSED
    return _why_not(reply, unclosed, refused=False, otherwise=Outcome.EMPTY) if _blank(text) else None


def _why_not(reply: Reply, unclosed: bool, *, refused: bool, otherwise: Outcome = Outcome.UNPARSED) -> Outcome:
    if reply.finish in _WITHHELD:
        return Outcome.REFUSED
    if unclosed or reply.finish == "length":
        return Outcome.CUT
    return Outcome.REFUSED if refused else otherwise


def _even(text: str) -> str:
    """Return the text with one blank for each run of them."""
    return re.sub(r"[^\S\n]+", " ", text)


def _blank(text: str) -> bool:
    """Say whether nothing is said: no letter, digit or picture."""
    return not any(sign.isalnum() or unicodedata.category(sign) == "So" for sign in text)


def _first_case(text: str, names: Forms) -> str:
    """Return the reply up to the next case that a model goes on to invent, once it has answered its own."""
    for head in place.heads(text):
        others = place.after(place.OTHER, head)
        led = any(place.after(place.ANSWER, head)) or any(choice.opening(other, names) for other in others)
        if led or choice.bare_lines(head, names):
            return head
    return text


def _first_answer(text: str) -> str:
    """Return the same for a free answer, which may stand without a lead but not as an echo or an announcement."""
    for head in place.heads(text):
        if any(place.after(place.ANSWER, head)) or not (place.is_echo(head) or head.endswith((":", "?"))):
            return head
    return text


def _places(text: str) -> list[str] | None:
    """Return what stands in the best place for an answer; None where the reply has no such place."""
    if (found := place.field(text)) is not None:
        return [found]
    return place.tagged(text) or place.after(place.ANSWER, text) or place.after(place.OTHER, text) or None


def _agreed(said: Sequence[str], names: Forms, cut: str) -> str:
    """Return the label that all the places agree on; "" where one stays open or two differ.

    Of a place that ends where the text was `cut`, only a label that it opens with counts.
    """
    open_end = {each for each in said if cut.endswith(each)}
    return _one({(choice.opening if each in open_end else choice.settled)(each, names) for each in said} - {""})


def _in_prose(text: str, names: Forms, *, cut: bool) -> str:
    """Return the label that a reply without a place for its answer chooses."""
    if refusal.opens_declining(text):
        text = refusal.after_decline(text)
    if lines := choice.bare_lines(text, names):
        return next(iter(lines)) if len(lines) == 1 else ""
    if (opened := choice.opening(text, names)) != "":
        return opened or ""
    verdicts = [rest.split(". ", 1)[0] for rest in place.after(place.VERDICT, text)]
    values = {(choice.opening if cut else choice.settled)(verdict, names) for verdict in verdicts} - {""}
    if values or cut:
        return _one(values)
    *_, conclusion = ["", *place.after(place.CONCLUSION, text)]
    sentences = _SENTENCE.split(place.before_justification(text) or text)
    told = "".join(sentence for sentence in sentences if not sentence.rstrip().endswith("?"))
    concluded = choice.settled(conclusion, names)
    return (choice.settled(told, names) if concluded == "" else concluded) or ""


def _one(values: Collection[str | None]) -> str:
    return next(iter(values)) or "" if len(values) == 1 else ""


def _strictly(text: str, names: Forms) -> str:
    if (found := place.field(text)) is not None:
        return choice.bare(found, names)
    line = place.same_line(text)
    return choice.bare(text if line is None else line, names)
