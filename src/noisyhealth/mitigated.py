"""What a cell asks in place of its texts, where something is done about disturbed input (`mitigate=`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from noisyhealth.cell import Cell
from noisyhealth.errors import ConfigError
from noisyhealth.mitigations.mitigation import Input, Learned
from noisyhealth.perturbations.engine import replay
from noisyhealth.records import Dose, Example, Query, Scores, Variant

if TYPE_CHECKING:
    from noisyhealth.dataset.table import Build


@dataclass(frozen=True)
class Copies:
    """What is asked in place of one version of the texts.

    `came`: the texts as they came in. `asked`: of each its copies, with their edits on it; in a cell's queries those of
    one text stand after those of the other. `facts`: numbers on each text.
    """

    came: tuple[Query, ...]
    asked: tuple[tuple[Variant, ...], ...]
    facts: tuple[Scores, ...]


@dataclass(frozen=True)
class Mitigated:
    """What a mitigation learned from validation texts, and what it asks in place of the clean and disturbed ones."""

    learned: Learned
    clean: Copies
    disturbed: Copies


def of(cell: Cell, build: Build, variants: Sequence[Variant]) -> Mitigated:
    """Return what a cell's mitigation asks in place of its texts; the baseline's variants are the clean texts."""
    learned = learn(cell, build)
    clean = copies(cell, build.test, undisturbed(cell, build.test))
    return Mitigated(learned, clean, copies(cell, build.test, variants) if cell.rate else clean)


def learn(cell: Cell, build: Build) -> Learned:
    """Return what a cell's mitigation learns from the validation texts of a build, of which none is ever tested."""
    if cell.mitigation is None:
        return {}
    return cell.mitigation.learn([getattr(example, cell.field) for example in build.training.validation])


def undisturbed(cell: Cell, examples: Sequence[Example]) -> list[Variant]:
    """Return the examples as variants without an edit."""
    return [Variant(example.id, getattr(example, cell.field), (), Dose()) for example in examples]


def copies(cell: Cell, examples: Sequence[Example], came: Sequence[Variant]) -> Copies:
    """Return what a cell's mitigation asks in place of texts as they came in.

    Raises ConfigError where it makes nothing of a text, or a copy that its edits do not lead to.
    """
    if cell.mitigation is None:
        raise AssertionError("nothing is done about disturbed input")
    asked = cell.mitigation.ask([Input(one.id, one.text) for one in came])
    for one, made in zip(came, asked, strict=True):
        if not made or any(replay(one.text, copy.edits) != copy.text for copy in made):
            raise ConfigError(
                f"mitigate={cell.mitigation.name} asks {[copy.text for copy in made]} in place of text {one.id}: it "
                "must make a copy at least, and the edits of each, replayed on the text as it came, must give it"
            )
    return Copies(queries(cell, examples, came), tuple(asked), facts(cell, examples, came, asked))


def facts(
    cell: Cell, examples: Sequence[Example], came: Sequence[Variant], asked: Sequence[Sequence[Variant]]
) -> tuple[Scores, ...]:
    """Return the numbers that a cell's mitigation finds on each text."""
    if cell.mitigation is None:
        return ()
    originals = (getattr(example, cell.field) for example in examples)
    return tuple(cell.mitigation.look(*given) for given in zip(originals, came, asked, strict=True))


def queries(cell: Cell, examples: Sequence[Example], variants: Sequence[Variant]) -> tuple[Query, ...]:
    """Return what is asked about variants of examples: a perturbation names the field of the example it disturbs."""
    return tuple(cell.task.query(replace(e, **{cell.field: v.text})) for e, v in zip(examples, variants, strict=True))


def copied(cell: Cell, examples: Sequence[Example], copies: Copies) -> tuple[Query, ...]:
    """Return what is asked in place of texts, the copies of one after those of the other."""
    pairs = [(e, copy) for e, own in zip(examples, copies.asked, strict=True) for copy in own]
    return queries(cell, [e for e, _ in pairs], [copy for _, copy in pairs])


def key(cell: Cell, found: Mitigated | None) -> dict[str, object]:
    """Return what a cell's key holds of this beside its replies' keys: nothing where nothing is done."""
    if found is None:
        return {}
    numbers = [dict(found.learned), *(list(one.facts) for one in (found.clean, found.disturbed))]
    return {"mitigate": [cell.resolved["mitigate"], numbers]}
