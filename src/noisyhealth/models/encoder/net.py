"""The network of an encoder: a BERT body with a head for labels, or for where an answer starts and ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, BertConfig
from transformers.utils import logging as transformers_logging

from noisyhealth.errors import ConfigError, WeightsError
from noisyhealth.models.encoder.read import Batch, names_type

# What has the parts that are trained, frozen and pooled here.
_FROM_ZERO = ("bert", "electra")
_FAMILY = (*_FROM_ZERO, "roberta", "camembert", "xlm-roberta")
_AROUND = 10  # pieces on either side; of 0, 3, 6 and 10 it told most about where answers stand


class Classifier(nn.Module):
    """One score a label for each text, from the mean of its pieces or from its first piece (`pooling`).

    `weights`: for each label, how much its texts count in the loss.
    With "cls" the body's own pooler comes first, as in BertForSequenceClassification.
    """

    weights: Tensor

    def __init__(self, body: Any, pooling: str, weights: Sequence[float]) -> None:
        super().__init__()
        if pooling == "mean":
            body.pooler = None  # unused weights stop distributed training
        self.body, self.pooling = body, pooling
        self.dropout = nn.Dropout(body.config.hidden_dropout_prob)
        self.head = nn.Linear(body.config.hidden_size, len(weights))
        self.register_buffer("weights", torch.tensor(weights), persistent=False)

    def forward(self, batch: Batch) -> Tensor:
        """Return scores, shape (texts, labels)."""
        read = self.body(**_readable(batch))
        scores: Tensor = self.head(self.dropout(self._pooled(read, batch["attention_mask"])))
        return scores

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross entropy, weighted by label."""
        return nn.functional.cross_entropy(scores.float(), batch["target"][:, 0], self.weights)

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


def load_config(folder: Path, max_length: int) -> Any:
    """Return the body's settings; raise ConfigError when it cannot read `max_length` pieces."""
    maker: Any = AutoConfig if names_type(folder) else BertConfig
    config = maker.from_pretrained(folder)
    if config.model_type not in _FAMILY:
        raise ConfigError(
            f"the weights in {folder} are of the architecture {config.model_type!r}; model=bluebert fine-tunes "
            f"{', '.join(_FAMILY)}"
        )
    # Positions of the others begin after that of the padding.
    limit = config.max_position_embeddings - (0 if config.model_type in _FROM_ZERO else config.pad_token_id + 1)
    if max_length > limit:
        raise ConfigError(
            f"model.max_length={max_length}, but the weights in {folder} read at most {limit} word pieces: lower it"
        )
    return config


def load_body(folder: Path, config: Any, pooling: str) -> Any:
    """Return the body with its pretrained weights in float32; raise WeightsError when some are missing."""
    with _quiet():
        body, report = AutoModel.from_pretrained(folder, config=config, dtype=torch.float32, output_loading_info=True)
    lost = sorted(report["missing_keys"])
    if pooling == "cls" and lost and all(name.startswith("pooler.") for name in lost):
        raise WeightsError(
            f"weights in {folder} have no pooler, which model.pooling=cls reads: give model.pooling=mean"
        )
    if lost := [name for name in lost if not name.startswith("pooler.")]:
        raise WeightsError(f"weights in {folder} lack {len(lost)} parts ({lost[0]}, ...): is this a BERT-like encoder?")
    return body


def empty_body(config: Any) -> Any:
    """Return the body without its weights, for a state dict to come."""
    maker: Any = AutoModel
    return maker.from_config(config, dtype=torch.float32)


def freeze(body: Any, layers: int) -> None:
    """Stop the training of the embeddings and the lowest `layers`; 0 stops nothing."""
    if layers > (deep := len(body.encoder.layer)):
        raise ConfigError(f"model.frozen={layers}, but the weights have {deep} layers: give {deep} or less")
    parts = [body.embeddings, *body.encoder.layer[:layers]] if layers else []
    for part in parts:
        part.requires_grad_(False)


def _near(hidden: Tensor, asked: Tensor, allowed: Tensor) -> Tensor:
    """Return how near the pieces around each piece are to their nearest in the question, a mean of cosines."""
    states = nn.functional.normalize(hidden, dim=-1)
    cosines = (states @ states.transpose(1, 2)).masked_fill(~asked.unsqueeze(1), -1)
    nearest = cosines.amax(-1) * allowed
    around = nn.functional.avg_pool1d(torch.stack([nearest, allowed.float()], 1), 2 * _AROUND + 1, 1, _AROUND)
    return around[:, 0] / around[:, 1].clamp(min=1e-6)


def _readable(batch: Batch) -> Batch:
    return {name: values for name, values in batch.items() if name not in ("allowed", "asked", "target")}


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
