"""What follows from texts and replies, for one cell: answers, scores, changes, the dose, and their words.

Whoever runs a cell and whoever checks one later count with this file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from statistics import fmean

from noisyhealth.analysis import impact
from noisyhealth.cell import Cell
from noisyhealth.errors import ConfigError, DataError
from noisyhealth.mitigated import Copies, Mitigated
from noisyhealth.mitigations.mitigation import Seen
from noisyhealth.models.model import FREE, Model, Price
from noisyhealth.records import Answer, Example, Outcome, Reply, Scores
from noisyhealth.study import Asked
from noisyhealth.text.flags import FLAGS


@dataclass(frozen=True)
class Read:
    """Replies to one version of the texts, as read: how right each answer is (0 to 1), and all scores.

    `replies` are all that were asked for, `each` is what was read in each, `chosen` the places in both of those that
    count: all, but where copies of a text are asked, one of its copies. `answers` and `right` have a place a text.
    """

    replies: tuple[Reply, ...]
    each: tuple[Answer, ...]
    chosen: tuple[int, ...]
    answers: tuple[Answer, ...]
    right: tuple[float, ...]
    scores: Scores


@dataclass(frozen=True)
class Result:
    """What a cell found on the clean and on the disturbed texts."""

    clean: Read
    disturbed: Read


def result(cell: Cell, asked: Asked, replies: Sequence[Reply]) -> Result:
    """Return replies to the clean and then the disturbed texts, as read."""
    return judged(cell, asked, replies, [cell.task.read(reply) for reply in replies])


def judged(cell: Cell, asked: Asked, replies: Sequence[Reply], answers: Sequence[Answer]) -> Result:
    """Return what a cell found, from replies and what was read in each."""
    clean, disturbed = (asked.mitigated.clean, asked.mitigated.disturbed) if asked.mitigated else (None, None)
    at = len(asked.clean)
    first = _read(cell, asked, replies[:at], answers[:at], clean)
    # The baseline's texts are the clean ones: scoring them twice would only cost time.
    return Result(first, _read(cell, asked, replies[at:], answers[at:], disturbed) if cell.rate else first)


def scores(cell: Cell, examples: Sequence[Example], answers: Sequence[Answer]) -> Scores:
    """Return the task's scores over the answers, and those of the user's own metrics.

    Raises ConfigError for a metric named as a score of the task is, DataError for one that gives no finite number.
    """
    found = dict(cell.task.score(examples, answers))
    for name, metric in cell.metrics.items():
        if name in found:
            raise ConfigError(f"metric.{name}: task={cell.task.name} has a score {name} already; give it another name")
        found[name] = float(metric(examples, answers))
        if not isfinite(found[name]):
            raise DataError(f"metric.{name} gave {found[name]} on {len(answers)} answers: it must be a finite number")
    return found


def _read(cell: Cell, asked: Asked, replies: Sequence[Reply], answers: Sequence[Answer], copies: Copies | None) -> Read:
    """Return answers to one version of the texts: which count, how right each of these is, and their scores."""
    chosen = _chosen(cell, answers, copies) if copies else tuple(range(len(answers)))
    counted = tuple(answers[at] for at in chosen)
    right = tuple(cell.task.right(example, answer) for example, answer in zip(asked.examples, counted, strict=True))
    found = scores(cell, asked.examples, counted)
    return Read(tuple(replies), tuple(answers), chosen, counted, right, found)


def _chosen(cell: Cell, answers: Sequence[Answer], copies: Copies) -> tuple[int, ...]:
    """Return which answer counts for each text, among those to all copies of all texts."""
    if cell.mitigation is None:
        raise AssertionError("copies are made by a mitigation")
    places, at = [], 0
    for made in copies.asked:
        places.append(at + cell.mitigation.choose(answers[at : at + len(made)], partial(_alike, cell)))
        at += len(made)
    return tuple(places)


def _alike(cell: Cell, one: Answer, other: Answer) -> float:
    """Return how right one answer would be if the other were the target, 0 to 1: the same label, or ROUGE-L."""
    return cell.task.right(Example(one.id, "", other.value), one)


def metrics(cell: Cell, asked: Asked, result: Result) -> Scores:
    """Return everything that follows from texts and replies: scores, changes, outcomes, dose, tokens, seconds."""
    costs = _costs(cell.model, _paid(asked, asked.disturbed_keys, result.disturbed))
    found: Scores = {"n": len(asked.examples), **result.disturbed.scores, **costs, **_reading(result.disturbed)}
    for name, interval in cell.task.intervals(asked.examples, result.disturbed.answers, cell.seed).items():
        found |= {f"ci_low/{name}": interval.low, f"ci_high/{name}": interval.high}
    found |= _outcomes(result.disturbed, "outcome")
    if cell.rate:
        found |= _outcomes(result.clean, "clean_outcome") | _changes(result) | _dose(asked)
        found |= {f"clean/{name}": score for name, score in result.clean.scores.items()}
        spent = _costs(cell.model, _paid(asked, asked.clean_keys, result.clean)) | _reading(result.clean)
        found |= {f"clean_{name}": cost for name, cost in spent.items()}
    return found | (_mitigated(cell, asked, asked.mitigated, result) if asked.mitigated else {})


def _paid(asked: Asked, keys: Sequence[str], read: Read) -> list[Reply]:
    """Return the replies that were paid for: copies of a text that are the same are one question."""
    return list(dict(zip(keys, read.replies, strict=True)).values()) if asked.mitigated else list(read.replies)


def _mitigated(cell: Cell, asked: Asked, found: Mitigated, result: Result) -> Scores:
    """Return how many different questions were asked in place of the texts, and the mitigation's own metrics."""
    if cell.mitigation is None:
        raise AssertionError("copies are made by a mitigation")
    disturbed, clean = _seen(found.disturbed, result.disturbed), _seen(found.clean, result.clean)
    calls: Scores = {"calls": len(set(asked.disturbed_keys))}
    if cell.rate:
        calls["clean_calls"] = len(set(asked.clean_keys))
    return calls | cell.mitigation.measure(disturbed, clean if cell.rate else None, found.learned)


def _seen(copies: Copies, read: Read) -> Seen:
    answers, chosen, at = [], [], 0
    for made, place in zip(copies.asked, read.chosen, strict=True):
        answers.append(read.each[at : at + len(made)])
        chosen.append(place - at)
        at += len(made)
    return Seen(copies.facts, tuple(answers), tuple(chosen), read.right)


def _costs(model: Model, replies: Sequence[Reply]) -> Scores:
    """Return tokens, money and seconds of replies, as they were when each was first given.

    No money where the price is not known, or a reply is paid for whose tokens the server did not count.
    """
    price = model.price()
    unknown = sum(reply.detail.get("usage") == "unknown" for reply in replies)
    known = price and (price == FREE or not unknown)
    return {
        **({"cost/usd": sum(_usd(model, price, reply) for reply in replies)} if price and known else {}),
        **({"tokens/unknown": unknown} if unknown else {}),
        "tokens/prompt": sum(reply.prompt_tokens for reply in replies),
        "tokens/reply": sum(reply.reply_tokens for reply in replies),
        "seconds/replies": sum(reply.seconds for reply in replies),
    }


def _reading(read: Read) -> Scores:
    """Return how a model that has a limit read the texts, as means over them; nothing where no reply says.

    `tokens/per_word`: word pieces a word, which typing errors drive up. `tokens/truncated`: fraction of a text's
    pieces beyond the limit, which the model never saw.
    """
    found = {"tokens/per_word": "pieces_per_word", "tokens/truncated": "truncated"}
    values = {name: [float(str(r.detail[key])) for r in read.replies if key in r.detail] for name, key in found.items()}
    return {name: fmean(shares) for name, shares in values.items() if shares}


def _usd(model: Model, price: Price, reply: Reply) -> float:
    """Return what a reply cost by the way it came, in a batch or not; the price is that of the model's own way."""
    share = float(getattr(model, "batch_share", 1.0))
    as_it_came = (share if "batch" in reply.detail else 1.0) / (share if model.batch else 1.0)
    return price.times(as_it_came).usd(reply.prompt_tokens, reply.reply_tokens)


def _outcomes(read: Read, prefix: str) -> Scores:
    counts = Counter(a.outcome for a in read.answers)
    return {f"{prefix}/{outcome}": counts[outcome] for outcome in Outcome}


def _changes(result: Result) -> Scores:
    """Return the relative change of each score; none where the clean score is 0."""
    found = {name: impact.change(s, result.clean.scores[name]) for name, s in result.disturbed.scores.items()}
    return {f"change/{name}": change for name, change in found.items() if change is not None}


def _dose(asked: Asked) -> Scores:
    """Return what the disturbance really was, as means over the texts.

    `touched/...`: fraction of the texts in which a negation, a number, a side or a drug name was touched.
    """
    doses = [variant.dose for variant in asked.variants]
    touched = [{flag for edit in variant.edits for flag in edit.flags} for variant in asked.variants]
    return {
        "dose/words": fmean(dose.words for dose in doses),
        "dose/valid_words": fmean(dose.valid_words for dose in doses),
        "dose/characters": fmean(dose.characters for dose in doses),
        "dose/edit_distance": fmean(dose.edit_distance for dose in doses),
        "dose/medical": fmean(dose.medical for dose in doses),
        "dose/edits": fmean(len(variant.edits) for variant in asked.variants),
        **{f"touched/{flag}": fmean(flag in found for found in touched) for flag in FLAGS},
    }


def findings(cell: Cell, result: Result) -> dict[str, str]:
    """Return the tags that can only be known at the end: who answered, categories, and the run's description."""
    servers = _servers([*result.clean.replies, *result.disturbed.replies])
    if not cell.rate:
        return servers
    scores = {name: (result.disturbed.scores[name], result.clean.scores[name]) for name in cell.scenarios}
    tags = {f"category/{name}": str(impact.category(*pair)) for name, pair in scores.items()}
    head = cell.task.headline
    score, clean = scores[head]
    relative = impact.change(score, clean)
    shown = "undefined change" if relative is None else f"{relative:+.1%}"
    category = tags[f"category/{head}"]
    note = f"{head} {clean:.3f} → {score:.3f} ({shown}, {category}) on {len(result.clean.answers)} texts"
    return {**servers, **tags, "category": category, "mlflow.note.content": note}


def _servers(replies: Sequence[Reply]) -> dict[str, str]:
    """Return which models answered, by the servers' own words; nothing where no server said."""
    names = sorted({str(name) for reply in replies if (name := reply.detail.get("server_model"))})
    return {"server_models": ",".join(names)} if names else {}
