"""A causal language model in this process: likelihoods of options, and text.

Prompts of a cell share a long beginning (role, examples, instructions). Its keys and values are
computed once and every batch looks at them. The beginning is cut where the *tokens* of all
prompts part, so no token is split at a seam.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisyhealth.models.local.decoding import Decoding, Generated, Tokens, chance, pick

if TYPE_CHECKING:
    import torch
    from transformers import Cache

    from noisyhealth.models.local.prefix import Prefix

# What decides a likelihood or a text, besides weights and libraries.
CODE = ("models/local/causal.py", "models/local/decoding.py", "models/local/prefix.py")
_PADDING = 8  # tokens: another batch costs more


@dataclass
class CausalLM:
    """Loaded weights with their tokenizer, and the keys and values of the last shared beginning."""

    model: Any
    tokenizer: Any
    batch_tokens: int
    batch_size: int
    shares: bool  # a beginning is computed once; not where a row's padding would shift a sliding window
    looks_back: bool  # its attention can look at what is shared; else each row gets a copy
    _prefix: Tokens = field(default_factory=list)
    _prefix_cache: Any = None

    def likelihoods(self, prompts: Sequence[Tokens], options: Sequence[Tokens]) -> Iterator[tuple[int, list[float]]]:
        """Yield, a prompt at a time, its index and the log-likelihood of each option after it.

        The likelihood of an option is summed over all its tokens.
        """
        import torch

        with torch.inference_mode():
            for batch in self._batches(prompts, padding=0.125):
                scores = self._score(batch, [prompts[i] for i in batch], options)
                yield from zip(batch, scores, strict=True)

    def generate(self, prompts: Sequence[Tokens], decoding: Decoding) -> Iterator[Generated]:
        """Yield what the model writes after each prompt, as each ends; the text may run past a stop string."""
        import torch

        with torch.inference_mode():
            for batch in self._batches(prompts, padding=1.0):  # each batch reads all weights once a token
                yield from self._write(batch, [prompts[i] for i in batch], decoding)

    def _batches(self, prompts: Sequence[Tokens], padding: float) -> Iterator[list[int]]:
        """Yield indices of prompts, alike in length, as many as the token budget allows.

        `padding`: what fraction of a row may be padding, which is read like text; a few tokens always may.
        """
        self._share(prompts)
        order = sorted(range(len(prompts)), key=lambda i: (-len(prompts[i]), i))
        while order:
            widest = len(prompts[order[0]])
            row = widest - len(self._prefix)
            most = max(1, min(self.batch_size, self.batch_tokens // max(1, row)))
            spare = max(_PADDING, row * padding)
            yield (batch := [i for i in order[:most] if widest - len(prompts[i]) <= spare])
            order = order[len(batch) :]

    def _share(self, prompts: Sequence[Tokens]) -> None:
        """Make the shared beginning of the prompts the current prefix, computed unless it is already."""
        import torch

        common = _common_beginning(prompts) if self.shares else []
        known = _agree(self._prefix, common)
        if known * 4 > len(common):  # what prompts that come one by one share shows with the second
            if known < len(self._prefix):
                self._prefix_cache.crop(known - len(self._prefix))
                self._prefix = common[:known]
            return
        self._prefix, self._prefix_cache = common, None
        if common:
            with torch.inference_mode():
                ids = torch.tensor([common], device=self.model.device)
                self._prefix_cache = self.model(input_ids=ids, use_cache=True, logits_to_keep=1).cache

    def _start(self, prompts: Sequence[Tokens]) -> _State:
        """Return the left-padded rest of the prompts, ready to be read."""
        import torch
        from transformers import DynamicCache

        from noisyhealth.models.local.prefix import Prefix

        rests = [p[len(self._prefix) :] for p in prompts]
        width, device = max(map(len, rests)), self.model.device
        ids = torch.tensor([[0] * (width - len(r)) + r for r in rests], device=device)
        mask = torch.tensor([[0] * (width - len(r)) + [1] * len(r) for r in rests], device=device)
        positions = (mask.cumsum(1) - 1).clamp(min=0) + len(self._prefix)
        if not self._prefix:
            return _State(ids, mask, positions, DynamicCache(config=self.model.config), None)
        if self.looks_back:
            return _State(ids, mask, positions, DynamicCache(), Prefix.of(self._prefix_cache))
        cache = copy.deepcopy(self._prefix_cache)
        cache.batch_repeat_interleave(len(rests))
        return _State(ids, torch.cat([mask.new_ones(len(rests), len(self._prefix)), mask], 1), positions, cache, None)

    def _step(self, state: _State, keep: int) -> torch.Tensor:
        """Return log-probabilities of the next token after each of the last `keep` tokens."""
        out = self.model(
            input_ids=state.ids,
            attention_mask=state.mask,
            position_ids=state.positions,
            cache=state.cache,
            use_cache=True,
            logits_to_keep=keep,
            **({"prefix": state.prefix} if state.prefix else {}),
        )
        logits: torch.Tensor = out.logits.float()
        return logits.log_softmax(-1)

    def _score(self, batch: list[int], prompts: list[Tokens], options: Sequence[Tokens]) -> list[list[float]]:
        import torch

        state = self._start(prompts)
        first = self._step(state, 1)[:, -1]
        columns = []
        for option in options:
            total = first[:, option[0]]
            if more := len(option) - 1:
                follow = state.followed(torch.tensor([option[:-1]] * len(batch), device=first.device))
                after = self._step(follow if self.shares else replace(follow, cache=copy.deepcopy(state.cache)), more)
                wanted = torch.tensor(option[1:], device=first.device).expand(len(batch), more)
                total = total + after.gather(2, wanted[..., None]).squeeze(2).sum(1)
                if self.shares:  # a cache with a sliding window cannot be cut
                    state.cache.crop(-more)
            columns.append(total)
        scores: list[list[float]] = torch.stack(columns, 1).tolist()
        return scores

    def _write(self, batch: list[int], prompts: list[Tokens], decoding: Decoding) -> Iterator[Generated]:
        """Yield each row when it ends; rows that have ended leave the batch."""
        import torch

        state = self._start(prompts)
        rows, written = list(batch), {i: list[int]() for i in batch}
        drawn_from = {i: chance(decoding.seed, prompt) for i, prompt in zip(batch, prompts, strict=True)}
        for _ in range(decoding.max_tokens):
            following = self._step(state, 1)[:, -1]
            tokens = pick(following, [written[row] for row in rows], decoding, [drawn_from[row] for row in rows])
            keep = []
            for at, (row, token) in enumerate(zip(rows, tokens.tolist(), strict=True)):
                ended = token in self._ends
                if not ended:
                    written[row].append(token)
                    ended = any(s in self.tokenizer.decode(written[row]) for s in decoding.stop)
                if ended:
                    yield Generated(row, written[row], "stop")
                else:
                    keep.append(at)
            if not keep:
                return
            if len(keep) < len(rows):
                chosen = torch.tensor(keep, device=tokens.device)
                state, rows, tokens = state.of_rows(chosen), [rows[at] for at in keep], tokens[chosen]
            state = state.followed(tokens[:, None])
        for row in rows:
            yield Generated(row, written[row], "length")

    @cached_property
    def _ends(self) -> set[int]:
        ends = self.model.generation_config.eos_token_id
        return set(ends) if isinstance(ends, list) else {ends, self.tokenizer.eos_token_id}


@dataclass(frozen=True, slots=True)
class _State:
    """What is read next, rows x tokens, and what was read before: `mask` and `cache` have all of a row's tokens."""

    ids: torch.Tensor
    mask: torch.Tensor
    positions: torch.Tensor
    cache: Cache
    prefix: Prefix | None

    def followed(self, ids: torch.Tensor) -> _State:
        """Return the state in which further tokens are read, the same number in each row."""
        import torch

        more = torch.arange(ids.shape[1], device=ids.device)
        mask = torch.cat([self.mask, self.mask.new_ones(ids.shape)], 1)
        return _State(ids, mask, self.positions[:, -1:] + 1 + more, self.cache, self.prefix)

    def of_rows(self, rows: torch.Tensor) -> _State:
        """Return the state of some rows; the others are gone from the cache."""
        self.cache.batch_select_indices(rows)
        return _State(self.ids[rows], self.mask[rows], self.positions[rows], self.cache, self.prefix)


def _common_beginning(prompts: Sequence[Tokens]) -> Tokens:
    """Return the tokens all prompts begin with, leaving each at least one of its own.

    >>> _common_beginning([[1, 2, 3, 4], [1, 2, 5]]), _common_beginning([[1, 2]]), _common_beginning([[1], [1, 2]])
    ([1, 2], [1], [])
    """
    if not prompts:
        return []
    low, high = min(prompts), max(prompts)
    return low[: min(_agree(low, high), min(map(len, prompts)) - 1)]


def _agree(one: Tokens, other: Tokens) -> int:
    """Return with how many tokens both begin."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


DTYPES = ("auto", "float32", "bfloat16", "float16")


def pick_dtype(dtype: str) -> str:
    """Return the number format to compute in: `dtype`, or for "auto" bfloat16 where the hardware has it."""
    import torch

    if dtype != "auto":
        return dtype
    if torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bfloat16" if native else "float32"


def runtime() -> str:
    """Return what else the last digits of a likelihood depend on: libraries, device, threads."""
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    libraries = " ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    return f"{libraries} on {device}, {torch.get_num_threads()} threads"


@cache
def load(folder: Path, dtype: str, batch_tokens: int, batch_size: int) -> CausalLM:
    """Return the model in `folder`, loaded once a process."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    from noisyhealth.models.local import prefix

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    model.to(device).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return CausalLM(model, tokenizer, batch_tokens, batch_size, prefix.is_full(model), prefix.prepare(model))
