"""The texts of a run compared with the dataset that they are said to come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from noisyhealth.audit.finding import Finding, Verdict
from noisyhealth.audit.kept import KeptRun
from noisyhealth.cell import Cell
from noisyhealth.dataset.table import FACTS, Build
from noisyhealth.records import Example
from noisyhealth.study import Asked

Builds = Callable[[Build], Build | None]


def built(folder: Path) -> Builds:
    """Return what finds, among the datasets of a folder, the one that a run was on; each is read once."""
    known: dict[str, Build | None] = {}

    def find(wanted: Build) -> Build | None:
        table = str(wanted.facts["table"])
        if table not in known:
            known[table] = _find(folder, table)
        return known[table]

    return find


def _find(folder: Path, table: str) -> Build | None:
    for path in sorted(folder.glob(f"*/{FACTS}")):
        if (build := Build(path.parent)).facts["table"] == table:
            build.check()
            return build
    return None


def examples(run: KeptRun, cell: Cell, asked: Asked, builds: Builds) -> Iterator[Finding]:
    """Compare the examples that were asked about with the test texts of the dataset: all of them, and no others.

    Of a run that keeps no texts, ids and labels are compared.
    """
    if (build := builds(asked.build)) is None:
        table = str(asked.build.facts["table"])[:16]
        told = f"its dataset (table {table}…) is not here: whether these were the texts to be tested cannot be told"
        yield Finding(Verdict.UNKNOWN, told)
        return
    kept, given = ({one.id: _shown(one, cell) for one in some} for some in (asked.examples, build.test))
    for name in [one.id for one in build.test if one.id not in kept]:
        yield Finding(Verdict.DIFFERENT, f"text {name} of the dataset's test texts is not among the run's")
    for name, shown in kept.items():
        if name not in given:
            yield Finding(Verdict.DIFFERENT, f"text {name} is none of the dataset's test texts")
        elif shown != given[name]:
            yield Finding(Verdict.DIFFERENT, f"text {name}: the run has {shown}, the dataset {given[name]}")


def _shown(one: Example, cell: Cell) -> tuple[str, ...]:
    """Return what an example has that its run keeps."""
    if cell.keep_text:
        return (one.target, one.text, one.question, one.group)
    return (one.target,) if cell.task.labels else ()
