"""Examples become a dataset: every text at every level of every disturbance, built once and read by all cells."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version as distribution_version
from itertools import islice, repeat, tee
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from noisyhealth.dataset import clean, table
from noisyhealth.dataset.attrition import Attrition
from noisyhealth.dataset.design import QUESTION, Choice, Design, Disturbance
from noisyhealth.dataset.realised import Realised
from noisyhealth.dataset.split import Families, Splits, assign
from noisyhealth.dataset.table import FACTS, TABLE, Build, Row, column
from noisyhealth.errors import DataError
from noisyhealth.perturbations.engine import Key, OutOfReach, Unit, disturb, ranked, total
from noisyhealth.records import Example, Variant, Word
from noisyhealth.text import tagger
from noisyhealth.text.flags import flags

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

_ROWS = 256  # texts held at once


def load(design: Design, cache: str) -> Build:
    """Return the build of a design, made now if it was not made before."""
    folder = Path(cache) / "datasets" / f"{design.task}-{design.hash}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            part = folder.with_name(folder.name + ".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            build(design, part)
            os.replace(part, folder)
    made = Build(folder)
    made.check()
    return made


def build(design: Design, folder: Path) -> Build:
    """Write the dataset of a design into an empty folder, holding few texts at a time.

    Raises DataError when no example is kept, when they are too few for the splits, or when a rate was not
    met.
    """
    counts, content = Counts.of(design), sha256()
    part = folder / f"{TABLE}.part"
    table.write(part, _batches(design, counts, content))
    if not counts.attrition.kept:
        reasons = "\n".join(f"{what}: {texts} {why}".rstrip() for what, texts, why in counts.attrition.rows())
        raise DataError(
            f"task {design.task!r}: no text is kept, since none reaches every level; choose lower levels, another "
            f"perturb.unit, or longer texts:\n{reasons}"
        )
    counts.realised.check(design.task)
    splits = assign(counts.families.members(), design.split, seed=design.seed, task=design.task)
    examples, facts = sha256(), _facts(design)
    table.write(folder / TABLE, _with_splits(part, splits, examples), facts)
    part.unlink()
    found = {
        **facts,
        "hash": examples.hexdigest()[:16],
        "content": content.hexdigest(),
        "table": table.sha256_of(folder / TABLE),
        "attrition": counts.attrition.plain(),
        "realised": counts.realised.plain(),
    }
    (folder / FACTS).write_text(json.dumps(found, indent=2, ensure_ascii=False), encoding="utf-8")
    return Build(folder)


@dataclass(frozen=True)
class Counts:
    """What is counted while the texts pass."""

    attrition: Attrition
    realised: Realised
    families: Families

    @classmethod
    def of(cls, design: Design) -> Counts:
        """Return the counts of a design before its first text."""
        return cls(Attrition(), Realised(design.disturbances), Families())


def _batches(design: Design, counts: Counts, content: Hash) -> Iterator[pa.RecordBatch]:
    """Yield the kept texts with their variants, a few at a time."""
    names = [column(d.name, level) for d in design.disturbances for level in d.levels]
    rows = _rows(design, counts)
    while held := list(islice(rows, _ROWS)):
        for row in held:
            content.update(table.content_line(row, names))
        yield table.batch(held, names)


def _rows(design: Design, counts: Counts) -> Iterator[Row]:
    """Yield each example that reaches every level, counting all."""
    questions = any(d.field == QUESTION for d in design.disturbances)
    for example, words, asked in _tagged(
        clean.usable(design.source, design.task, counts.attrition, design.labels), design, questions
    ):
        made = {
            d.name: levels(example, asked if d.field == QUESTION else words, d, design) for d in design.disturbances
        }
        for name, reached in made.items():
            counts.attrition.met(name, reached)
        variants = {column(name, level): v for name, reached in made.items() for level, v in reached.items()}
        kept = {name: v for name, v in variants.items() if isinstance(v, Variant)}
        if len(kept) < len(variants):
            continue
        counts.attrition.kept += 1
        counts.families.add(example)
        for disturbance in design.disturbances:
            field, of = (example.question, asked) if disturbance.field == QUESTION else (example.text, words)
            whole = total(field, of, Unit(disturbance.unit))
            for level in disturbance.levels:
                counts.realised.add(disturbance, level, whole, kept[column(disturbance.name, level)])
        yield Row(example, len(words), sum(word.valid for word in words), kept)


def _tagged(
    examples: Iterator[Example], design: Design, questions: bool
) -> Iterator[tuple[Example, list[Word], list[Word]]]:
    """Yield each example with the words of its text, and of its question where that is disturbed."""
    examples, texts, asked = tee(examples, 3)
    words = design.tagger.tag(example.text for example in texts)
    others = design.tagger.tag(example.question for example in asked) if questions else repeat(list[Word]())
    return zip(examples, words, others)  # noqa: B905 - the last may be endless


def levels(
    example: Example, words: Sequence[Word], disturbance: Disturbance, design: Design
) -> dict[str, Variant | OutOfReach]:
    """Return the example at every level of a disturbance, or why it cannot reach it.

    `words` are those of the field that is disturbed. Where medical words, or the others, are disturbed alone, a level
    is reached only by a text that reaches it either way, so that both have the same texts and numbers of edits.
    """
    if disturbance.words == Choice.ALL:
        return _drawn(example, words, words, disturbance, design)
    medical, others = (
        _drawn(example, words, _only(words, medical=medical), disturbance, design) for medical in (True, False)
    )
    own = medical if disturbance.words == Choice.MEDICAL else others
    lacking = {level for level in own if OutOfReach.TOO_FEW in (medical[level], others[level])}
    return {level: OutOfReach.TOO_FEW_OF_EITHER if level in lacking else own[level] for level in own}


def _only(words: Sequence[Word], *, medical: bool) -> list[Word]:
    """Return the words with those alone valid that are medical, or that are not."""
    return [word if word.medical == medical or not word.valid else replace(word, valid=False) for word in words]


def _drawn(
    example: Example, words: Sequence[Word], open_to: Sequence[Word], disturbance: Disturbance, design: Design
) -> dict[str, Variant | OutOfReach]:
    """Return the example at every level; the dose is counted over `words`, edits are made among `open_to`."""
    text = example.question if disturbance.field == QUESTION else example.text

    def given(rates: Mapping[str, float], drawn: str) -> dict[str, Variant | OutOfReach]:
        key = Key(design.seed, design.task, example.id, disturbance.name, drawn, design.draw)
        edits = ranked(text, open_to, disturbance.change, key.rng(), flags) if disturbance.change else iter(())
        return disturb(text, words, edits, rates=rates, unit=Unit(disturbance.unit), example=example.id)

    if disturbance.nested:
        return given(disturbance.levels, "")
    return {level: given({level: rate}, level)[level] for level, rate in disturbance.levels.items()}


def _with_splits(part: Path, splits: Splits, examples: Hash) -> Iterator[pa.RecordBatch]:
    """Yield the table again with the splits, and hash examples and splits."""
    for read in pq.ParquetFile(part).iter_batches(_ROWS):
        done = table.with_splits(read, splits)
        for line in table.example_lines(done):
            examples.update(line)
        yield done


def _facts(design: Design) -> dict[str, object]:
    """Return what a reader of the table must know to check it."""
    return {
        "task": design.task,
        "noisyhealth": distribution_version("noisyhealth"),
        "source": design.source.name,
        "source_state": design.source.state(design.task),
        "licence": design.source.licence(design.task),
        "perturbations": {
            d.name: {
                **{"levels": dict(d.levels), "unit": str(d.unit), "nested": d.nested, "field": d.field},
                "words": str(d.words),
            }
            for d in design.disturbances
        },
        "seed": design.seed,
        "draw": design.draw,
        "tagger": tagger.signature(),
        "protected": sorted(design.tagger.protect),
        "valid_pos": sorted(design.tagger.valid_pos),
        "settings": dict(design.settings),
    }
