"""How text is written from the probabilities of the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import torch

Tokens: TypeAlias = list[int]


@dataclass(frozen=True, slots=True)
class Generated:
    """Tokens written for prompt `index`; `finish` is "stop" or "length"."""

    index: int
    tokens: Tokens
    finish: str


@dataclass(frozen=True, slots=True)
class Decoding:
    """How text is written, in the terms of the chat-completions API.

    `max_tokens`: at most. `stop`: strings that end it. `temperature`: 0 takes the likeliest token.
    `frequency_penalty`: taken from a token's logit for each time it was written, against loops.
    """

    max_tokens: int
    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0


def pick(
    following: torch.Tensor, written: Sequence[Tokens], decoding: Decoding, chances: Sequence[torch.Generator]
) -> torch.Tensor:
    """Return one token a row from the log-probabilities of the next one, drawn from the row's own chance."""
    import torch

    if decoding.frequency_penalty:
        for row, tokens in enumerate(written):
            for token in tokens:
                following[row, token] -= decoding.frequency_penalty
    if decoding.temperature == 0:
        return following.argmax(-1)
    likely = (following / decoding.temperature).softmax(-1).cpu()  # where the generators are
    drawn = [torch.multinomial(row, 1, generator=own) for row, own in zip(likely, chances, strict=True)]
    return torch.cat(drawn).to(following.device)


def chance(seed: int, prompt: Tokens) -> torch.Generator:
    """Return a prompt's own source of random numbers: what is drawn does not depend on its batch."""
    import torch

    key = blake2b(f"{seed} {prompt}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(key) >> 1)
