"""Examples become variants: who is kept, how they are split, and every text at every level.

One build serves every cell of a task: it is made once, kept in a folder named by all that decides it,
and read from there afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from noisyhealth import version
from noisyhealth.errors import ConfigError, DataError
from noisyhealth.perturb.engine import Key, Perturbation, disturb, ranked
from noisyhealth.records import Edit, Example, Training, Variant, Word
from noisyhealth.sources import LeftOut, Source
from noisyhealth.text import tagger
from noisyhealth.text.tagger import Tagger

PROMPT, VALIDATION, TEST, TRAIN = "prompt", "validation", "test", "train"


@dataclass(frozen=True)
class Disturbance:
    """A perturbation with what low, mid and high mean for it: fractions of all words, 0 to 1.

    `nested`: a higher level contains the edits of a lower one; otherwise each level is drawn anew.
    """

    name: str
    levels: Mapping[str, float]
    nested: bool
    change: Perturbation | None


@dataclass(frozen=True)
class Split:
    """How kept examples are divided.

    `prompt`: fraction of all for building prompts. `test`: number of the others that are tested, at
    most. `train`: fraction of everything but the test set that a fine-tuned model trains on.
    """

    prompt: float
    test: int
    train: float

    def __post_init__(self) -> None:
        """Raise ConfigError for a share that is none, or a test set without texts."""
        for name, share in (("prompt", self.prompt), ("train", self.train)):
            if not 0 < share < 1:
                raise ConfigError(f"data.split.{name}={share}: give a share between 0 and 1")
        if self.test < 1:
            raise ConfigError(f"data.split.test={self.test}: give at least 1 text")


@dataclass(frozen=True)
class Design:
    """All that decides a build. `settings` are the same choices as plain values, for its hash."""

    task: str
    source: Source
    disturbances: tuple[Disturbance, ...]
    split: Split
    tagger: Tagger
    seed: int
    settings: Mapping[str, object]
    draw: int = 0

    @cached_property
    def hash(self) -> str:
        """The hash of the settings, the source's texts, the tagger and the code that builds."""
        code = version.of("dataset.py", "sources.py", "text", "perturb", "data")
        whole = [self.settings, self.source.state(self.task), tagger.signature(), code]
        return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Build:
    """The kept examples of a task with their splits and variants.

    `variants[name, level]` holds a variant for each kept example, by id. `attrition` counts the texts
    that were read and, for each reason, those that were left out. `hash` is that of examples and splits: cells
    that share it are tested on the same texts.
    """

    examples: tuple[Example, ...]
    generative: Mapping[str, str]
    encoder: Mapping[str, str]
    variants: Mapping[tuple[str, str], Mapping[str, Variant]]
    attrition: Mapping[str, int]
    hash: str

    @property
    def test(self) -> tuple[Example, ...]:
        """The examples every model is tested on."""
        return self._of(self.generative, TEST)

    @property
    def training(self) -> Training:
        """The examples models may learn from."""
        return Training(
            prompt=self._of(self.generative, PROMPT),
            train=self._of(self.encoder, TRAIN),
            validation=self._of(self.encoder, VALIDATION),
        )

    def _of(self, split: Mapping[str, str], name: str) -> tuple[Example, ...]:
        return tuple(e for e in self.examples if split[e.id] == name)


def load(design: Design, cache: str) -> Build:
    """Return the build of a design, made now if it was not made before."""
    folder = Path(cache) / "datasets" / f"{design.task}-{design.hash}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            part = folder.with_name(folder.name + ".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            _write(build(design), part)
            os.replace(part, folder)
    return _read(folder)


def build(design: Design) -> Build:
    """Return the build of a design from its source's texts.

    Raises DataError when no example is kept, or too few for the splits.
    """
    examples, attrition = _clean(design.source.read(design.task), design)
    kept: list[Example] = []
    variants: dict[tuple[str, str], dict[str, Variant]] = {
        (d.name, level): {} for d in design.disturbances for level in d.levels
    }
    for example, words in zip(examples, design.tagger.tag(e.text for e in examples), strict=True):
        made = _variants(example, words, design)
        if isinstance(made, str):
            attrition[made] += 1
            continue
        kept.append(example)
        for key, variant in made.items():
            variants[key][example.id] = variant
    if not kept:
        raise DataError(
            f"task {design.task!r}: none of {attrition['read']} texts reaches every level: {dict(attrition)}"
        )
    attrition["kept"] = len(kept)
    generative, encoder = _split(kept, design)
    return Build(tuple(kept), generative, encoder, variants, dict(attrition), _hash(kept, generative, encoder))


def _clean(rows: Sequence[Example | LeftOut], design: Design) -> tuple[list[Example], Counter[str]]:
    """Return the examples that can be used, and the counts of the others by reason.

    A text that stands there twice is used once; one with two different targets is not used at all, since
    neither can be called right; of the questions on one note the first is used.
    """
    attrition: Counter[str] = Counter(read=len(rows))
    attrition.update(row.reason for row in rows if isinstance(row, LeftOut))
    examples = [row for row in rows if isinstance(row, Example)]
    targets: dict[tuple[str, str], set[str]] = {}
    for example in examples:
        targets.setdefault((example.text, example.question), set()).add(example.target)
    seen: set[str] = set()
    usable = []
    for example in examples:
        if len(targets[example.text, example.question]) > 1:
            attrition["contradicts its twin"] += 1
        elif example.text in seen:
            attrition["repeats another text"] += 1
        elif example.group in seen:
            attrition["is of a group already used"] += 1
        else:
            seen.update({example.text, example.group} - {""})
            usable.append(example)
    ids = Counter(e.id for e in usable)
    if twice := [name for name, count in ids.items() if count > 1]:
        raise DataError(
            f"task {design.task!r}: the id {twice[0]!r} stands for {ids[twice[0]]} texts; ids must be unique"
        )
    return usable, attrition


def _variants(example: Example, words: Sequence[Word], design: Design) -> dict[tuple[str, str], Variant] | str:
    """Return the example's variants at every level, or the first level it cannot reach."""
    made: dict[tuple[str, str], Variant] = {}
    for disturbance in design.disturbances:
        edits: list[Edit] = []
        for level, rate in disturbance.levels.items():
            if disturbance.change and (not edits or not disturbance.nested):
                drawn = "" if disturbance.nested else level
                key = Key(design.seed, design.task, example.id, disturbance.name, drawn, design.draw)
                edits = ranked(example.text, words, disturbance.change, key)
            variant = disturb(example.text, words, edits=edits, rate=rate, example=example.id)
            if variant is None:
                return f"cannot reach {disturbance.name} {level}"
            made[disturbance.name, level] = variant
    return made


def _split(kept: Sequence[Example], design: Design) -> tuple[dict[str, str], dict[str, str]]:
    """Return the split of each example for generative models and for fine-tuned ones.

    Both test on the same examples (Joshi et al. 2026, Methods, "Training and Testing Splits").
    """
    ids = sorted(e.id for e in kept)
    Random(f"split {design.seed} {design.task}").shuffle(ids)
    prompts = round(len(ids) * design.split.prompt)
    rest = ids[prompts:]
    tested = rest[: design.split.test]
    if prompts == 0 or not tested or len(rest) == len(tested):
        raise DataError(
            f"task {design.task!r}: {len(ids)} kept texts are too few for data.split.prompt={design.split.prompt} "
            f"and data.split.test={design.split.test} with texts left to validate on: lower data.split.test to at most "
            f"{max(len(rest) - 1, 0)}"
        )
    generative = dict.fromkeys(ids[:prompts], PROMPT) | dict.fromkeys(rest, VALIDATION) | dict.fromkeys(tested, TEST)
    others = [i for i in ids if generative[i] != TEST]
    Random(f"encoder split {design.seed} {design.task}").shuffle(others)
    trained = others[: round(len(others) * design.split.train)]
    encoder = dict.fromkeys(others, VALIDATION) | dict.fromkeys(trained, TRAIN) | dict.fromkeys(tested, TEST)
    return generative, encoder


def _hash(kept: Sequence[Example], generative: Mapping[str, str], encoder: Mapping[str, str]) -> str:
    """Return the hash of what makes cells comparable: the kept examples and their splits."""
    rows = list(_example_rows(kept, generative, encoder))
    return sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]


def _example_rows(
    kept: Iterable[Example], generative: Mapping[str, str], encoder: Mapping[str, str]
) -> Iterable[dict[str, object]]:
    for example in kept:
        splits = {"split": generative[example.id], "encoder_split": encoder[example.id]}
        yield {**asdict(example), **splits}


def _variant_rows(variants: Mapping[tuple[str, str], Mapping[str, Variant]]) -> Iterable[dict[str, object]]:
    for (name, level), texts in variants.items():
        for variant in texts.values():
            yield {"perturb": name, "level": level, **asdict(variant)}


_EDIT = pa.struct(
    [
        ("start", pa.int64()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("op", pa.string()),
        ("pos", pa.string()),
        ("medical", pa.bool_()),
        ("word", pa.int64()),
    ]
)
_VARIANTS = pa.schema(
    [
        ("perturb", pa.string()),
        ("level", pa.string()),
        ("id", pa.string()),
        ("text", pa.string()),
        ("edits", pa.list_(_EDIT)),
        ("words", pa.int64()),
        ("valid", pa.int64()),
    ]
)


def _write(made: Build, folder: Path) -> None:
    examples = pa.Table.from_pylist(list(_example_rows(made.examples, made.generative, made.encoder)))
    pq.write_table(examples, folder / "examples.parquet")
    pq.write_table(pa.Table.from_pylist(list(_variant_rows(made.variants)), _VARIANTS), folder / "variants.parquet")
    (folder / "build.json").write_text(json.dumps({"attrition": dict(made.attrition), "hash": made.hash}, indent=2))


def _read(folder: Path) -> Build:
    facts = json.loads((folder / "build.json").read_text())
    examples, generative, encoder = [], {}, {}
    for row in pq.read_table(folder / "examples.parquet").to_pylist():
        generative[row["id"]], encoder[row["id"]] = row.pop("split"), row.pop("encoder_split")
        examples.append(Example(**row))
    variants: dict[tuple[str, str], dict[str, Variant]] = {}
    for row in pq.read_table(folder / "variants.parquet").to_pylist():
        key = row.pop("perturb"), row.pop("level")
        edits = tuple(Edit(**edit) for edit in row.pop("edits"))
        variants.setdefault(key, {})[row["id"]] = replace(Variant(**row, edits=()), edits=edits)
    return Build(tuple(examples), generative, encoder, variants, facts["attrition"], facts["hash"])
