"""A run checked again from what it kept: files, disturbed texts, replies, answers, numbers, MLflow's copy of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import yaml
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from noisyhealth import manifest, own_code, scoring
from noisyhealth.analysis.completeness import FINISHED
from noisyhealth.audit import checks, dataset, mitigated
from noisyhealth.audit.dataset import Builds
from noisyhealth.audit.finding import Checked, Finding, Verdict
from noisyhealth.audit.kept import KeptRun, from_values, replies
from noisyhealth.audit.redraw import Redraw
from noisyhealth.cell import Cell
from noisyhealth.configuration import CONF
from noisyhealth.errors import DataError, NoisyHealthError, WeightsError
from noisyhealth.perturbations.engine import OutOfReach, replay
from noisyhealth.records import Reply, Variant
from noisyhealth.sealed import NOT_KEPT
from noisyhealth.study import Asked
from noisyhealth.text import tagger
from noisyhealth.tracking.journal import is_answer


@dataclass
class Verifier:
    """Checks runs one after the other; what they share is made once.

    `journal` returns the kept replies among some keys, `builds` the dataset of a run; None where there is none here.
    `trusted`: whether a configuration may name code that is not of this package, which is then run.
    """

    journal: Callable[[Sequence[str]], Mapping[str, Reply]] | None = None
    trusted: bool = True
    builds: Builds | None = None
    redraw: Redraw = field(default_factory=Redraw)

    def check(self, run: KeptRun) -> Checked:
        """Return what became of each check of a run, in the order of its story."""
        counts: dict[str, int] = {}
        findings = list(self._files(run, counts))
        if run.logged.status != FINISHED:
            findings.append(Finding(Verdict.UNKNOWN, f"it is {run.logged.status}, not finished: it has no numbers"))
        elif not any(finding.verdict is Verdict.UNKNOWN for finding in findings):
            try:
                findings += self._content(run, counts)
            except (NoisyHealthError, HydraException, OmegaConfBaseException) as error:
                findings.append(Finding(_broken(run, findings, error), f"{type(error).__name__}: {error}"))
            except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
                # Files that were changed, or come from another version, can be wrong in any way.
                told = f"what it kept cannot be read: {type(error).__name__}: {error}"
                findings.append(Finding(_broken(run, findings, error), told))
        return Checked(run.id, run.logged.name, tuple(findings), counts)

    def _files(self, run: KeptRun, counts: dict[str, int]) -> Iterator[Finding]:
        """Compare every file's hash with the manifest, and the manifest's with the run's tag."""
        if not (run.folder / manifest.NAME).exists():
            yield Finding(Verdict.UNKNOWN, f"{manifest.NAME} is not there: were its files moved, or never written?")
            return
        if manifest.sha256_of(run.folder / manifest.NAME) != run.logged.tags.get("manifest"):
            yield Finding(Verdict.DIFFERENT, f"{manifest.NAME} is not the one that the run was logged with")
        changed = [Finding(Verdict.DIFFERENT, what) for what in manifest.differences(run.folder)]
        yield from changed or checks.vouched(run)
        counts["files"] = sum(1 for path in run.folder.iterdir() if path.is_file())

    def _content(self, run: KeptRun, counts: dict[str, int]) -> Iterator[Finding]:
        if not self.trusted and (strange := sorted(own_code.targets(run.config) - _packaged())):
            told = f"its settings name code that noisyhealth's do not ({', '.join(strange)}): give --trust to run it"
            yield Finding(Verdict.UNKNOWN, told)
            return
        if "${" in json.dumps(run.config):
            told = "its settings hold an interpolation, which no run writes down: nothing is made of them"
            yield Finding(Verdict.UNKNOWN, told)
            return
        cell = run.cell()
        asked = run.asked(cell)
        if self.builds is not None:
            yield from dataset.examples(run, cell, asked, self.builds)
        if not cell.keep_text:
            yield from self._sealed(run, cell, asked, counts)
            return
        counts["texts"] = len(asked.variants)
        yield from self._texts(run, cell, asked)
        yield from checks.queries(run, cell, asked)
        yield from checks.model(run, cell)
        yield from checks.factors(run, cell)
        yield from self._replies(run, counts)
        given = tuple(replies(run.calls))
        result = scoring.result(cell, asked, given)
        counts["replies"] = len(given)
        if asked.mitigated:
            yield from mitigated.copies(run, cell, asked, asked.mitigated)
            yield from mitigated.learned(run, cell, asked, asked.mitigated, self.builds)
            yield from mitigated.counted(run, cell, result)
        yield from checks.answers(run, cell, result)
        yield from checks.numbers(run, cell, asked, result, counts)
        yield from checks.logged(run, cell)
        if told := checks.other_code(run):
            yield Finding(Verdict.SAME, told.strip(" ()"))

    def _sealed(self, run: KeptRun, cell: Cell, asked: Asked, counts: dict[str, int]) -> Iterator[Finding]:
        """Check what can be checked of a run without texts: keys, and where answers are labels, all numbers."""
        free = "" if cell.task.labels else ", and since answers are texts here, none of its scores"
        yield Finding(Verdict.UNKNOWN, f"{NOT_KEPT}: neither disturbed texts nor replies can be followed{free}")
        yield from checks.queries(run, cell, asked)
        yield from checks.factors(run, cell)
        if cell.task.labels:
            result = from_values(run, cell, asked)
            if asked.mitigated:
                yield from mitigated.learned(run, cell, asked, asked.mitigated, self.builds)
                yield from mitigated.counted(run, cell, result)
            yield from checks.answers(run, cell, result)
            yield from checks.numbers(run, cell, asked, result, counts)
        yield from checks.logged(run, cell)

    def _texts(self, run: KeptRun, cell: Cell, asked: Asked) -> Iterator[Finding]:
        """Replay the edits of each text, and draw them again."""
        for row, variant in zip(run.variants, asked.variants, strict=True):
            try:
                again = replay(row["original"], variant.edits)
            except ValueError as error:
                yield Finding(Verdict.DIFFERENT, f"text {variant.id}: its edits do not fit it: {error}")
                continue
            if again != variant.text:
                yield Finding(Verdict.DIFFERENT, f"text {variant.id}: its edits give {again!r}, not {variant.text!r}")
        if not cell.rate:
            return
        now, then = tagger.signature(), asked.build.facts["tagger"]
        if now != then:
            told = f"the texts are not drawn again: they were tagged by {then}, and here is {now}"
            yield Finding(Verdict.UNKNOWN, told)
            return
        try:
            drawn = self.redraw.variants(cell, asked.examples)
        except DataError as error:
            yield Finding(Verdict.UNKNOWN, f"the texts are not drawn again: {error}")
            return
        for variant, other in zip(asked.variants, drawn, strict=True):
            if variant != other:
                yield Finding(
                    Verdict.DIFFERENT, f"text {variant.id}: drawn again {_told(variant, other)}{checks.other_code(run)}"
                )

    def _replies(self, run: KeptRun, counts: dict[str, int]) -> Iterator[Finding]:
        """Compare each reply with the journal's, where one is here; it keeps no empty ones."""
        if self.journal is None:
            return
        given = {row["reply_key"]: reply for row, reply in zip(run.calls, replies(run.calls), strict=True)}
        known = self.journal(list(given))
        counts["replies in the journal"] = len(known)
        if lost := sum(key not in known and is_answer(reply) for key, reply in given.items()):
            told = f"{lost} of {len(given)} replies are not in the journal: nothing else says that they were given"
            yield Finding(Verdict.UNKNOWN, told)
        for key, reply in known.items():
            if replace(reply, id="") != replace(given[key], id=""):
                told = f"text {given[key].id}: the journal's reply is {reply.text!r}, the run's {given[key].text!r}"
                yield Finding(Verdict.DIFFERENT, f"{told}, or what came with it differs")


def _broken(run: KeptRun, findings: Sequence[Finding], error: Exception) -> Verdict:
    """Return what it means that a run cannot be followed: what this very code once wrote, it could read."""
    if any(finding.verdict is Verdict.DIFFERENT for finding in findings):
        return Verdict.DIFFERENT
    same_code = not checks.other_code(run)
    return Verdict.DIFFERENT if same_code and not isinstance(error, WeightsError) else Verdict.UNKNOWN


@cache
def _packaged() -> frozenset[str]:
    """Return the code that this package's own settings name.

    A name that only begins with "noisyhealth." may lead anywhere, through what a module of the package imports.
    """
    files = [file for file in CONF.rglob("*.yaml") if file.parent.name != "launcher"]
    return frozenset().union(*(own_code.targets(yaml.safe_load(file.read_text("utf-8"))) for file in files))


def _told(kept: Variant, drawn: Variant | OutOfReach) -> str:
    """Return in words how a text drawn again differs."""
    if isinstance(drawn, OutOfReach):
        return f"it cannot reach the level ({drawn})"
    if kept.text != drawn.text:
        return f"it is {drawn.text!r}, not {kept.text!r}"
    return "its edits or its dose are others"
