"""The network of an encoder: a BERT body with a head, the word pieces it reads, how its output is read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertConfig, BertTokenizer
from transformers.utils import logging as transformers_logging

from noisyhealth.errors import ConfigError, WeightsError
from noisyhealth.models.spans import whole_words, word_bounds, word_index

Batch: TypeAlias = dict[str, Tensor]
Place: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """What the network reads at once: a text, or a question with a stretch of a note.

    `inputs`: the tokenizer's numbers by name, one a piece. `places`: for each piece the characters of
    the note that it stands for, None for pieces that are not the note's. `pieces`: how many word pieces
    the whole text has, those beyond the limit included.
    """

    inputs: dict[str, list[int]]
    places: list[Place | None]
    pieces: int

    def __len__(self) -> int:
        return len(self.inputs["input_ids"])


class Classifier(nn.Module):
    """One score a label for each text, from the mean of its pieces or from its first piece (`pooling`).

    With "cls" the body's own pooler comes first, as in BertForSequenceClassification.
    """

    def __init__(self, body: nn.Module, pooling: str, labels: int) -> None:
        super().__init__()
        if pooling == "mean":
            body.pooler = None  # unused weights stop distributed training
        self.body, self.pooling = body, pooling
        self.dropout = nn.Dropout(body.config.hidden_dropout_prob)
        self.head = nn.Linear(body.config.hidden_size, labels)

    def forward(self, batch: Batch) -> Tensor:
        """Return scores, shape (texts, labels)."""
        read = self.body(**_readable(batch))
        return self.head(self.dropout(self._pooled(read, batch["attention_mask"])))

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross entropy."""
        return nn.functional.cross_entropy(scores.float(), batch["target"][:, 0])

    def _pooled(self, read: Any, mask: Tensor) -> Tensor:
        hidden: Tensor = read.last_hidden_state
        if self.pooling == "mean":
            share = mask.unsqueeze(-1).to(hidden.dtype)
            return (hidden * share).sum(1) / share.sum(1)
        pooled: Tensor | None = getattr(read, "pooler_output", None)
        return hidden[:, 0] if pooled is None else pooled


class Extractor(nn.Module):
    """The log probability that an answer starts, and ends, at each piece of a window.

    The first piece stands for "the answer is not in this window", so windows of one note can be compared.
    """

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        body.pooler = None
        self.body = body
        self.dropout = nn.Dropout(body.config.hidden_dropout_prob)
        self.head = nn.Linear(body.config.hidden_size, 2)

    def forward(self, batch: Batch) -> Tensor:
        """Return log probabilities, shape (windows, pieces, 2); -inf for pieces that are not the note's."""
        scores = self.head(self.dropout(self.body(**_readable(batch)).last_hidden_state))
        return scores.float().masked_fill(~batch["allowed"].unsqueeze(-1), -torch.inf).log_softmax(1)

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the mean negative log probability of the right start and end."""
        return -scores.gather(1, batch["target"].unsqueeze(1)).mean()


def load_tokenizer(folder: Path, max_length: int) -> Any:
    """Return the tokenizer; a folder that does not name its type holds a BERT (BlueBERT's do not)."""
    maker: Any = AutoTokenizer if _names_type(folder) else BertTokenizer
    # Without tokenizer_config.json nothing would be cut unless the limit is said here.
    return maker.from_pretrained(folder, model_max_length=max_length)


def load_config(folder: Path, max_length: int) -> Any:
    """Return the body's settings; raise ConfigError when it cannot read `max_length` pieces."""
    maker: Any = AutoConfig if _names_type(folder) else BertConfig
    config = maker.from_pretrained(folder)
    if max_length > config.max_position_embeddings:
        raise ConfigError(
            f"model.max_length={max_length}, but the weights in {folder} read at most "
            f"{config.max_position_embeddings} word pieces: lower it"
        )
    return config


def load_body(folder: Path, config: Any) -> Any:
    """Return the body with its pretrained weights in float32; raise WeightsError when some are missing."""
    with _quiet():
        body, report = AutoModel.from_pretrained(folder, config=config, dtype=torch.float32, output_loading_info=True)
    if lost := sorted(name for name in report["missing_keys"] if not name.startswith("pooler.")):
        raise WeightsError(f"weights in {folder} lack {len(lost)} parts ({lost[0]}, ...): is this a BERT-like encoder?")
    return body


def empty_body(config: Any) -> Any:
    """Return the body without its weights, for a state dict to come."""
    return AutoModel.from_config(config, dtype=torch.float32)


def read_text(tokenizer: Any, text: str, max_length: int) -> Window:
    """Return the text as one window, cut at `max_length` pieces."""
    pieces = len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
    inputs = dict(tokenizer(text, truncation=True, max_length=max_length))
    return Window(inputs, [None] * len(inputs["input_ids"]), pieces)


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
            pieces,
        )
        for i in range(len(read["input_ids"]))
    ]


def batch_of(windows: Sequence[Window], pad: int) -> Batch:
    """Return windows as one batch, filled up to the longest; `allowed` marks where an answer may be."""
    width = max(map(len, windows))
    batch = {
        name: torch.tensor([_filled(w.inputs[name], width, pad if name == "input_ids" else 0) for w in windows])
        for name in windows[0].inputs
    }
    allowed = [[int(i == 0 or place is not None) for i, place in enumerate(w.places)] for w in windows]
    return batch | {"allowed": torch.tensor([_filled(row, width, 0) for row in allowed]).bool()}


def target_of(window: Window, start: int, end: int) -> Place:
    """Return the first and last piece of a span of characters; (0, 0) when it is not whole in the window."""
    inside = [i for i, place in enumerate(window.places) if place and place[0] < end and place[1] > start]
    note = [place for place in window.places if place]
    if not inside or note[0][0] > start or note[-1][1] < end:
        return 0, 0
    return inside[0], inside[-1]


def best_passage(note: str, windows: Sequence[Window], scores: Tensor, longest: int) -> tuple[str, float]:
    """Return the likeliest span of the note, as the note writes it, and its log probability.

    `scores`: an Extractor's, (windows, pieces, 2). The span has at most `longest` words, and tears none.
    Empty when the note has no pieces.
    """
    bounds = word_bounds(note)
    best, found = -math.inf, ""
    for window, row in zip(windows, scores, strict=True):
        at = [i for i, place in enumerate(window.places) if place]
        if not at:
            continue
        places = [place for place in window.places if place]
        words = torch.tensor([word_index(bounds, start) for start, _ in places])
        apart = words.unsqueeze(0) - words.unsqueeze(1)
        allowed = (apart < longest).triu()  # the end is not before the start
        both = row[at, 0].unsqueeze(1) + row[at, 1].unsqueeze(0)
        both = both.masked_fill(~allowed, -math.inf)
        top = int(both.argmax())
        if (score := float(both.flatten()[top])) > best:
            first, last = divmod(top, len(at))
            start, end = whole_words(bounds, places[first][0], places[last][1])
            best, found = score, note[start:end]
    return found, best


def _readable(batch: Batch) -> Batch:
    return {name: values for name, values in batch.items() if name not in ("allowed", "target")}


def _filled(row: Sequence[int], width: int, filler: int) -> list[int]:
    return [*row, *[filler] * (width - len(row))]


def _names_type(folder: Path) -> bool:
    return "model_type" in json.loads((folder / "config.json").read_text(encoding="utf-8"))


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the bar and the list of unused heads (an MLM head, a position buffer) while weights load."""
    level, bar = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bar:
            transformers_logging.enable_progress_bar()
