"""What an encoder learns from: texts with their label, or windows over notes with the span of the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from noisyhealth.errors import ConfigError, DataError
from noisyhealth.models.encoder.read import Window, read_note, read_text, target_of
from noisyhealth.models.encoder.recipe import Recipe, labels_of
from noisyhealth.models.encoder.spans import nearest_passage
from noisyhealth.records import Example, Training

Item: TypeAlias = tuple[Window, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is learnt from: windows with their targets.

    `labels`: the classes in the order of the scores, empty for spans. `unusable`: examples of train and
    validation left out because their answer shares no word with their note, or is longer than what two windows share
    and stands whole in none. `counts`: for each label how many
    texts of train and of validation have it.
    """

    train: list[Item]
    validation: list[Item]
    labels: tuple[str, ...]
    unusable: int
    counts: dict[str, dict[str, int]]


def label_lesson(training: Training, tokenizer: Any, recipe: Recipe) -> Lesson:
    """Return texts with the index of their label."""
    _need_examples(training)
    train, validation = (Counter(e.target for e in part) for part in (training.train, training.validation))
    labels = labels_of(training)
    if len(labels) < 2:
        raise ConfigError(
            f"all {len(training.train)} training texts are labelled {labels[0]!r}, so there is nothing to tell apart: "
            "give data with two labels or more, or another seed for the split"
        )
    if unknown := sorted(set(validation) - set(train)):
        raise DataError(
            f"no training text is labelled {unknown[0]!r}, but {validation[unknown[0]]} of the validation texts are: "
            "give more texts of that label, or another seed for the split"
        )

    counts = {label: {"train": train[label], "validation": validation[label]} for label in labels}

    def items(examples: Sequence[Example]) -> list[Item]:
        return [
            (read_text(tokenizer, example.text, recipe.max_length), (labels.index(example.target),))
            for example in _ordered(examples)
        ]

    return Lesson(items(training.train), items(training.validation), labels, unusable=0, counts=counts)


def span_lesson(training: Training, tokenizer: Any, recipe: Recipe) -> Lesson:
    """Return windows over notes with the pieces where the span nearest to the answer begins and ends."""
    _need_examples(training)

    def items(example: Example) -> list[Item]:
        found = nearest_passage(example.text, example.target, longest=recipe.longest)
        windows = read_note(
            tokenizer, example.question, example.text, max_length=recipe.max_length, stride=recipe.stride
        )
        targets = [target_of(window, found.start, found.end) for window in windows] if found else []
        # No window holds the answer whole: taught as "not here" it would be a lie.
        return list(zip(windows, targets, strict=True)) if any(last for _, last in targets) else []

    train, validation = ([items(e) for e in _ordered(part)] for part in (training.train, training.validation))
    for name, part in (("training", train), ("validation", validation)):
        if not any(part):
            raise DataError(
                f"none of the {len(part)} {name} answers shares a word with its note and stands whole in a window: an "
                "encoder answers with a span of the note, so give data whose answers stand in the notes, or a larger "
                "model.stride"
            )
    return Lesson(list(chain(*train)), list(chain(*validation)), (), [*train, *validation].count([]), {})


def _need_examples(training: Training) -> None:
    for name, part in (("train", training.train), ("validation", training.validation)):
        if not part:
            raise DataError(
                f"the {name} set is empty, and fine-tuning needs one: give more texts, or lower data.split.test or the "
                "share that goes to the other sets"
            )


def _ordered(examples: Sequence[Example]) -> list[Example]:
    """Return the examples by id, so that the order of a file decides nothing."""
    return sorted(examples, key=lambda example: example.id)
