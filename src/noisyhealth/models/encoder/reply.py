"""What a fitted encoder replies: the likeliest label of a text, or the likeliest span of a note."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors.torch import load_file
from torch import Tensor

from noisyhealth.errors import WeightsError
from noisyhealth.models.encoder.net import Classifier, Extractor, empty_body, load_config
from noisyhealth.models.encoder.read import Window, batch_of, load_tokenizer, read_note, read_text
from noisyhealth.models.encoder.recipe import FACTS, WEIGHTS, Recipe
from noisyhealth.models.encoder.spans import whole_words, word_bounds, word_index
from noisyhealth.records import Query, Reply

Asked: TypeAlias = tuple[Query, list[Window]]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A network with its tokenizer; `labels` is empty when it answers with spans."""

    network: Classifier | Extractor
    tokenizer: Any
    labels: tuple[str, ...]
    recipe: Recipe

    def read(self, query: Query) -> list[Window]:
        """Return what the network reads for a query."""
        limit = self.recipe.max_length
        if self.labels:
            return [read_text(self.tokenizer, query.text, limit)]
        return read_note(self.tokenizer, query.question, query.text, max_length=limit, stride=self.recipe.stride)

    def replies(self, asked: Sequence[Asked]) -> Iterator[Reply]:
        """Yield the replies to one batch; each counts an equal share of its seconds."""
        begun = time.monotonic()
        scores = self._scores([window for _, windows in asked for window in windows])
        made = list(self._choices(asked, scores) if self.labels else self._spans(asked, scores))
        seconds = (time.monotonic() - begun) / len(asked)
        finish = "choice" if self.labels else "span"
        for (query, windows), (text, detail) in zip(asked, made, strict=True):
            measured = {"truncated": self._truncated(windows), "pieces_per_word": _pieces_per_word(query, windows)}
            yield Reply(query.id, text, finish, sum(map(len, windows)), 0, seconds, detail | measured)

    @torch.inference_mode()
    def _scores(self, windows: Sequence[Window]) -> Tensor:
        device = self.recipe.accelerator
        kind = torch.bfloat16 if self.recipe.precision.startswith("bf16") else torch.float16
        batch = {name: v.to(device) for name, v in batch_of(windows, self.tokenizer.pad_token_id).items()}
        with torch.autocast(device, dtype=kind, enabled="mixed" in self.recipe.precision):
            scores: Tensor = self.network(batch)
        if scores.isnan().any():  # max() would take the first label for the likeliest
            raise WeightsError("the fine-tuned encoder gives scores that are no numbers: its weights are damaged")
        return scores.float().cpu()

    def _choices(self, asked: Sequence[Asked], scores: Tensor) -> Iterator[tuple[str, dict[str, object]]]:
        for row in scores.softmax(-1).tolist():
            shares = dict(zip(self.labels, row, strict=True))
            yield max(self.labels, key=lambda label: shares[label]), {"scores": shares}

    def _spans(self, asked: Sequence[Asked], scores: Tensor) -> Iterator[tuple[str, dict[str, object]]]:
        rows = torch.split(scores, [len(windows) for _, windows in asked])
        for (query, windows), row in zip(asked, rows, strict=True):
            text, f1 = best_passage(query.text, windows, row, self.recipe.longest)
            yield text, {"expected_f1": f1}

    def _truncated(self, windows: Sequence[Window]) -> float:
        """Return the share of the text's pieces that were not read, 0 to 1; windows read them all."""
        if not self.labels or not windows[0].pieces:
            return 0.0
        kept: int = len(windows[0]) - self.tokenizer.num_special_tokens_to_add(pair=False)
        return 1 - kept / windows[0].pieces


@lru_cache(maxsize=4)  # three tasks at a time, and no more of a long sweep's fits in memory
def load_fitted(folder: Path, weights: Path, recipe: Recipe) -> Fitted:
    """Return the fit kept in `folder`, ready on its device."""
    labels = tuple(json.loads((folder / FACTS).read_text(encoding="utf-8"))["labels"])
    with torch.random.fork_rng(devices=[]):  # the values drawn are overwritten on the next line
        body = empty_body(load_config(weights, recipe.max_length))
        network = Classifier(body, recipe.pooling, [1.0] * len(labels)) if labels else Extractor(body)
    network.load_state_dict(load_file(folder / WEIGHTS))
    tokenizer = load_tokenizer(weights, recipe.max_length)
    return Fitted(network.to(recipe.accelerator).eval(), tokenizer, labels, recipe)


def best_passage(note: str, windows: Sequence[Window], scores: Tensor, longest: int) -> tuple[str, float]:
    """Return the span of the note with the best expected F1, as the note writes it, and that F1, 0 to 1.

    `scores`: an Extractor's, (windows, pieces, 2). Spans have at most `longest` words and tear none; F1 counts
    pieces. Where the network is sure this is the likeliest span; where it wavers between neighbouring starts
    and ends, the likeliest pair is often a stray one. Empty for a note without pieces.
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


def _pieces_per_word(query: Query, windows: Sequence[Window]) -> float:
    """Return word pieces a word, words being what stands between white space; 0 for no word."""
    words = len(query.text.split())
    return windows[0].pieces / words if words else 0.0


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
