"""All that decides a dataset: the texts, the disturbances, the splits, the tagger, the seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import sha256

from noisyhealth import own_code, version
from noisyhealth.errors import ConfigError
from noisyhealth.perturbations.engine import Perturbation, Unit
from noisyhealth.perturbations.plain import Plain
from noisyhealth.sources.source import Source
from noisyhealth.text import tagger
from noisyhealth.text.tagger import Tagger

TEXT, QUESTION = "text", "question"
STUDIED = ("low", "mid", "high")  # the study's levels, in the order of their dose


class Choice(StrEnum):
    """Which of the valid words may be disturbed."""

    ALL = "all"
    MEDICAL = "medical"
    OTHERS = "others"


# The code that decides a build; what only shows or exports one does not.
_BUILDS = ("attrition", "build", "clean", "design", "realised", "split", "table")
_TEXTS = (
    "words",
    "protection",
    "tagger",
    "medical",
    "flags",
    "homophones",
    "datamuse",
    "abbreviations",
    "shapes",
    "lexicon",
)
_CODE = (
    *(f"dataset/{name}.py" for name in _BUILDS),
    *(f"text/{name}.py" for name in _TEXTS),
    *("sources", "perturbations", "data", "records.py"),
)


@dataclass(frozen=True)
class Disturbance:
    """A perturbation with what low, mid and high mean for it: fractions of `unit`, 0 to 1.

    `unit`: words (of the whole text, the study's), valid_words or chars. `nested`: a higher level contains
    the edits of a lower one; otherwise each level is drawn anew. `field`: what is disturbed, the text or the
    question on it. `words`: all of the valid words, the medical ones alone, or the others alone, as many as of all:
    a text must then be able to give so many of either. `change` is None for the baseline.
    """

    name: str
    levels: Mapping[str, float]
    nested: bool
    change: Perturbation | None
    unit: str = Unit.WORDS
    field: str = TEXT
    words: str = Choice.ALL

    def __post_init__(self) -> None:
        """Raise ConfigError for a unit, a field, a choice of words or a rate that does not exist."""
        if self.unit not in list(Unit):
            raise ConfigError(f"perturb={self.name}: unit={self.unit!r} is none of {', '.join(Unit)}")
        if self.field not in (TEXT, QUESTION):
            raise ConfigError(f"perturb={self.name}: field={self.field!r} is none of {TEXT}, {QUESTION}")
        if self.words not in list(Choice):
            raise ConfigError(f"perturb={self.name}: words={self.words!r} is none of {', '.join(Choice)}")
        if self.words != Choice.ALL and self.unit == Unit.CHARS:
            raise ConfigError(
                f"perturb={self.name}: words={self.words} with unit=chars would not give medical and other words the "
                "same number of edits: give unit=words or valid_words"
            )
        if self.unit == Unit.CHARS and isinstance(self.change, Plain) and self.change.capitals:
            raise ConfigError(
                f"perturb={self.name}: unit=chars counts letters case aside, so a lost capital would be no character: "
                "give unit=words or valid_words"
            )
        for level, rate in self.levels.items():
            if not isinstance(rate, int | float) or not 0 <= rate <= 1:
                raise ConfigError(
                    f"perturb={self.name}: levels.{level}={rate!r}: give a fraction of {self.unit}, 0 to 1"
                )


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
    labels: tuple[str, ...] = ()  # of a closed task; empty where answers are free

    @cached_property
    def hash(self) -> str:
        """The hash of the settings, the source's texts, the tagger and the code that builds, the user's own too."""
        own = own_code.hashes(self.settings)
        whole = [self.settings, self.source.state(self.task), tagger.signature(), version.of(*_CODE), own]
        return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


def check_rising(name: str, levels: Mapping[str, float]) -> None:
    """Raise ConfigError where the study's levels of a perturbation fall; those with other names are free."""
    studied = [(level, levels[level]) for level in STUDIED if isinstance(levels.get(level), int | float)]
    if [rate for _, rate in studied] != sorted(rate for _, rate in studied):
        told = ", ".join(f"{level} {rate}" for level, rate in studied)
        raise ConfigError(f"perturb={name}: levels {told}: give fractions that rise from low to high")
