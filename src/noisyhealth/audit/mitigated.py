"""Checks of what was done about disturbed input: what was asked in place of the texts, and which answers count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from noisyhealth import mitigated
from noisyhealth.audit.checks import other_code
from noisyhealth.audit.dataset import Builds
from noisyhealth.audit.finding import Finding, Verdict
from noisyhealth.audit.kept import KeptRun
from noisyhealth.audit.redraw import offline
from noisyhealth.cell import Cell
from noisyhealth.errors import DataError
from noisyhealth.evidence import PREDICTIONS
from noisyhealth.mitigated import Copies, Mitigated
from noisyhealth.mitigations.vote import Vote
from noisyhealth.records import Variant
from noisyhealth.scoring import Read, Result
from noisyhealth.study import Asked
from noisyhealth.text import tagger

_REPLY = ("reply", "finish", "prompt_tokens", "reply_tokens", "seconds", "detail", "request", "reply_key")


def copies(run: KeptRun, cell: Cell, asked: Asked, found: Mitigated) -> Iterator[Finding]:
    """Make what was asked in place of the texts again, and the numbers on each text, and compare."""
    if (now := tagger.signature()) != (then := asked.build.facts["tagger"]):
        told = f"what was asked in place of the texts is not made again: they were tagged by {then}, and here is {now}"
        yield Finding(Verdict.UNKNOWN, told)
        return
    if isinstance(cell.mitigation, Vote):
        cell = replace(cell, mitigation=replace(cell.mitigation, perturb=offline(cell.mitigation.perturb)))
    versions = [("clean", found.clean, mitigated.undisturbed(cell, asked.examples))]
    if cell.rate:
        versions.append(("disturbed", found.disturbed, list(asked.variants)))
    for version, kept, came in versions:
        try:
            again = mitigated.copies(cell, asked.examples, came)
        except DataError as error:
            yield Finding(Verdict.UNKNOWN, f"what was asked in place of the texts is not made again: {error}")
            return
        for told in _differences(kept, again):
            yield Finding(Verdict.DIFFERENT, f"{version} {told}{other_code(run)}")


def _differences(kept: Copies, again: Copies) -> Iterator[str]:
    """Yield in words where what was asked, or a number on it, is not what the mitigation makes of the text."""
    for came, one, other, facts, others in zip(
        again.came, kept.asked, again.asked, kept.facts, again.facts, strict=True
    ):
        if _told(one) != _told(other):
            texts, made = [copy.text for copy in one], [copy.text for copy in other]
            yield f"text {came.id}: {texts} was asked in its place, the mitigation makes {made}"
        elif facts != others:
            yield f"text {came.id}: its facts are {facts}, the mitigation finds {others}"


def _told(copies: Sequence[Variant]) -> list[object]:
    return [(copy.text, copy.edits) for copy in copies]


def learned(run: KeptRun, cell: Cell, asked: Asked, found: Mitigated, builds: Builds | None) -> Iterator[Finding]:
    """Learn again from the validation texts of the dataset, and compare; they are in no run."""
    if not found.learned:
        return
    try:
        build = builds(asked.build) if builds else None
    except DataError as error:
        yield Finding(Verdict.UNKNOWN, f"what the mitigation learned is not learned again: {error}")
        return
    if build is None:
        told = f"what the mitigation learned is not learned again: dataset {asked.build.hash} is not here"
        yield Finding(Verdict.UNKNOWN, told)
    elif (again := mitigated.learn(cell, build)) != found.learned:
        told = f"the mitigation learned {dict(found.learned)}, the validation texts give {dict(again)}{other_code(run)}"
        yield Finding(Verdict.DIFFERENT, told)


def counted(run: KeptRun, cell: Cell, result: Result) -> Iterator[Finding]:
    """Compare what was read in every copy's reply, and each text's reply with that of the copy that counts."""
    versions: tuple[Read, ...] = (result.clean, result.disturbed) if cell.rate else (result.clean,)
    first, texts = 0, iter(run.predictions)
    for read in versions:
        rows, counting = run.calls[first : first + len(read.each)], set(read.chosen)
        first += len(read.each)
        for at, (row, answer) in enumerate(zip(rows, read.each, strict=True)):
            kept, again = (row["value"], row["outcome"], row["counts"]), (answer.value, answer.outcome, at in counting)
            if kept != again:
                told = f"text {row['id']} ({row['version']}), copy {row['copy']}: its reply is read as {again},"
                yield Finding(Verdict.DIFFERENT, f"{told} the run has {kept}{other_code(run)}")
        for at in read.chosen:
            text = next(texts)
            if any(text[name] != rows[at][name] for name in _REPLY):
                told = f"text {text['id']} ({text['version']}): its reply in {PREDICTIONS} is not that of the copy that"
                yield Finding(Verdict.DIFFERENT, f"{told} counts, number {rows[at]['copy']}")
