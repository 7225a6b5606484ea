"""What an encoder reads: word pieces of a text, or of a question with overlapping windows over a note."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor
from transformers import AutoTokenizer, BertTokenizer

Batch: TypeAlias = dict[str, Tensor]
Place: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """What the network reads at once: a text, or a question with a stretch of a note.

    `inputs`: the tokenizer's numbers by name, one a piece. `places`: for each piece the characters of
    the note that it stands for, None for pieces that are not the note's. `asked` marks the question's
    pieces. `pieces`: how many word pieces the whole text has, those beyond the limit included.
    """

    inputs: dict[str, list[int]]
    places: list[Place | None]
    asked: list[bool]
    pieces: int

    def __len__(self) -> int:
        return len(self.inputs["input_ids"])


def load_tokenizer(folder: Path, max_length: int) -> Any:
    """Return the tokenizer; a folder that does not name its type holds a BERT (BlueBERT's do not)."""
    maker: Any = AutoTokenizer if names_type(folder) else BertTokenizer
    vocabulary, told = folder / "vocab.txt", folder / "tokenizer_config.json"
    case: dict[str, bool] = {}
    if vocabulary.exists() and not told.exists():  # then every text would be lower-cased, whatever the words are
        words = vocabulary.read_text(encoding="utf-8").split("\n")
        case = {"do_lower_case": not any(word[:1].isupper() for word in words)}
    # Without tokenizer_config.json nothing would be cut unless the limit is said here.
    return maker.from_pretrained(folder, model_max_length=max_length, **case)


def read_text(tokenizer: Any, text: str, max_length: int) -> Window:
    """Return the text as one window, cut at `max_length` pieces."""
    pieces = len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
    inputs = dict(tokenizer(text, truncation=True, max_length=max_length))
    length = len(inputs["input_ids"])
    return Window(inputs, [None] * length, [False] * length, pieces)


def read_note(tokenizer: Any, question: str, note: str, *, max_length: int, stride: int) -> list[Window]:
    """Return windows over the note, each after the question; neighbours share `stride` pieces of the note.

    A question longer than half a window is cut there.
    """
    asked = tokenizer(question, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
    if len(asked) > max_length // 2:
        question = question[: asked[max_length // 2 - 1][1]]
    room = max_length - min(len(asked), max_length // 2) - tokenizer.num_special_tokens_to_add(pair=True)
    read = tokenizer(
        question,
        note,
        truncation="only_second",
        max_length=max_length,
        stride=min(stride, room // 2),
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    pieces = len(tokenizer(note, add_special_tokens=False, verbose=False)["input_ids"])
    return [
        Window(
            {name: read[name][i] for name in read if name in tokenizer.model_input_names},
            [
                place if part == 1 else None
                for place, part in zip(read["offset_mapping"][i], read.sequence_ids(i), strict=True)
            ],
            [part == 0 for part in read.sequence_ids(i)],
            pieces,
        )
        for i in range(len(read["input_ids"]))
    ]


def batch_of(windows: Sequence[Window], pad: int) -> Batch:
    """Return windows as one batch, filled up to the longest.

    `allowed` marks where an answer may be, `asked` the question.
    """
    width = max(map(len, windows))
    batch = {
        name: torch.tensor([_filled(w.inputs[name], width, pad if name == "input_ids" else 0) for w in windows])
        for name in windows[0].inputs
    }
    allowed = [[i == 0 or place is not None for i, place in enumerate(w.places)] for w in windows]
    masks = {"allowed": allowed, "asked": [w.asked for w in windows]}
    return batch | {name: torch.tensor([_filled(row, width, 0) for row in rows]).bool() for name, rows in masks.items()}


def target_of(window: Window, start: int, end: int) -> Place:
    """Return the first and last piece of a span of characters; (0, 0) when it is not whole in the window."""
    inside = [i for i, place in enumerate(window.places) if place and place[0] < end and place[1] > start]
    note = [place for place in window.places if place]
    if not inside or note[0][0] > start or note[-1][1] < end:
        return 0, 0
    return inside[0], inside[-1]


def names_type(folder: Path) -> bool:
    """Return whether a folder of weights says which architecture they are."""
    return "model_type" in json.loads((folder / "config.json").read_text(encoding="utf-8"))


def _filled(row: Sequence[int], width: int, filler: int) -> list[int]:
    return [*row, *[filler] * (width - len(row))]
