"""The network of an encoder: a BERT body with a head, the word pieces it reads, how its output is read."""

from __future__ import annotations

import json
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

_AROUND = 10  # pieces on either side; of 0, 3, 6 and 10 it told most about where answers stand


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


class Classifier(nn.Module):
    """One score a label for each text, from the mean of its pieces or from its first piece (`pooling`).

    With "cls" the body's own pooler comes first, as in BertForSequenceClassification.
    """

    def __init__(self, body: Any, pooling: str, labels: int) -> None:
        super().__init__()
        if pooling == "mean":
            body.pooler = None  # unused weights stop distributed training
        self.body, self.pooling = body, pooling
        self.dropout = nn.Dropout(body.config.hidden_dropout_prob)
        self.head = nn.Linear(body.config.hidden_size, labels)

    def forward(self, batch: Batch) -> Tensor:
        """Return scores, shape (texts, labels)."""
        read = self.body(**_readable(batch))
        scores: Tensor = self.head(self.dropout(self._pooled(read, batch["attention_mask"])))
        return scores

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
    A piece counts for its own state and for how near its surroundings are to the question's pieces (late
    interaction, as ColBERT's: Khattab and Zaharia 2020, doi:10.1145/3397271.3401075). That nearness says
    something before any training, which a few dozen notes could not teach; its weight is trained as well.
    """

    def __init__(self, body: Any) -> None:
        super().__init__()
        body.pooler = None
        self.body = body
        self.dropout = nn.Dropout(body.config.hidden_dropout_prob)
        self.head = nn.Linear(body.config.hidden_size, 2)
        self.nearness = nn.Parameter(torch.full((2,), 10.0))

    def forward(self, batch: Batch) -> Tensor:
        """Return log probabilities, shape (windows, pieces, 2); -inf for pieces that are not the note's."""
        hidden: Tensor = self.body(**_readable(batch)).last_hidden_state
        near = _near(hidden.float(), batch["asked"], batch["allowed"])
        scores: Tensor = self.head(self.dropout(hidden)).float() + near.unsqueeze(-1) * self.nearness
        shut: Tensor = ~batch["allowed"].unsqueeze(-1)
        return scores.masked_fill(shut, -torch.inf).log_softmax(1)

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
    maker: Any = AutoModel
    return maker.from_config(config, dtype=torch.float32)


def freeze(body: Any, layers: int) -> None:
    """Stop the training of the embeddings and the lowest `layers`; 0 stops nothing."""
    parts = [body.embeddings, *body.encoder.layer[:layers]] if layers else []
    for part in parts:
        part.requires_grad_(False)


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


def best_passage(note: str, windows: Sequence[Window], scores: Tensor, longest: int) -> tuple[str, float]:
    """Return the span of the note with the best expected F1, as the note writes it, and that F1, 0 to 1.

    `scores`: an Extractor's, (windows, pieces, 2). Spans have at most `longest` words and tear none; F1 counts
    pieces. Where the network is sure this is the likeliest span; where it wavers between neighbouring starts
    and ends, the likeliest pair is often a stray one (`docs/log.md` has numbers). Empty for a note without pieces.
    """
    bounds = word_bounds(note)
    best, found = -1.0, ""
    for window, row in zip(windows, scores, strict=True):
        if not (at := [i for i, place in enumerate(window.places) if place]):
            continue
        places = [place for place in window.places if place]
        words = torch.tensor([word_index(bounds, start) for start, _ in places])
        allowed = ((words.unsqueeze(0) - words.unsqueeze(1)) < longest).triu()  # no end before its start
        f1 = _expected_f1(row[at, 0], row[at, 1], row[0].sum(), allowed)
        top = int(f1.argmax())
        if (score := float(f1.flatten()[top])) > best:
            first, last = divmod(top, len(at))
            start, end = whole_words(bounds, places[first][0], places[last][1])
            best, found = score, note[start:end]
    return found, max(best, 0.0)


def _expected_f1(starts: Tensor, ends: Tensor, none: Tensor, allowed: Tensor) -> Tensor:
    """Return for each first and last piece the F1 to expect when spans are as likely as said; -1 where not allowed.

    `starts`, `ends`: log probabilities; `none`: that the answer is not here. The length of the true span is
    taken at its mean.
    """
    both = (starts.unsqueeze(1) + ends.unsqueeze(0)).masked_fill(~allowed, -torch.inf)
    likely = torch.cat([both.flatten(), none.view(1)]).double().softmax(0)[:-1].view_as(both)
    place = torch.arange(len(starts))
    length = place.unsqueeze(0) - place.unsqueeze(1) + 1
    mean_length = (likely * length).sum() / likely.sum().clamp(min=1e-12)
    # A piece is in every span that starts at or before it and ends at or after it.
    held = likely.flip(1).cumsum(1).flip(1).cumsum(0).diagonal()
    upto = held.cumsum(0)
    shared = upto.unsqueeze(0) - upto.unsqueeze(1) + held.unsqueeze(1)
    return (2 * shared / (length + mean_length)).masked_fill(~allowed, -1)


def _near(hidden: Tensor, asked: Tensor, allowed: Tensor) -> Tensor:
    """Return how near the pieces around each piece are to their nearest in the question, a mean of cosines."""
    states = nn.functional.normalize(hidden, dim=-1)
    cosines = (states @ states.transpose(1, 2)).masked_fill(~asked.unsqueeze(1), -1)
    nearest = cosines.amax(-1) * allowed
    around = nn.functional.avg_pool1d(torch.stack([nearest, allowed.float()], 1), 2 * _AROUND + 1, 1, _AROUND)
    return around[:, 0] / around[:, 1].clamp(min=1e-6)


def _readable(batch: Batch) -> Batch:
    return {name: values for name, values in batch.items() if name not in ("allowed", "asked", "target")}


def _filled(row: Sequence[int], width: int, filler: int) -> list[int]:
    return [*row, *[filler] * (width - len(row))]


def _names_type(folder: Path) -> bool:
    return "model_type" in json.loads((folder / "config.json").read_text(encoding="utf-8"))


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the bar and the list of unused heads (an MLM head, a position buffer) while weights load."""
    messages: Any = transformers_logging
    level, bar = messages.get_verbosity(), messages.is_progress_bar_enabled()
    messages.set_verbosity_error()
    messages.disable_progress_bar()
    try:
        yield
    finally:
        messages.set_verbosity(level)
        if bar:
            messages.enable_progress_bar()
