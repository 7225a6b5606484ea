"""Attention over a beginning that every row of a batch shares: its keys are neither copied nor read once a row.

A softmax over two sets of keys is the mean of the softmax over each, weighted by their sums of exponentials. So all
rows look at the beginning in one large product and at their own tokens in small ones (Juravsky et al. 2024, "Hydragen",
arXiv:2402.05099).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward
from transformers.masking_utils import eager_mask

_NAME = "sdpa_with_shared_prefix"
# What some checkpoints' attention is told besides; where it is, the keys of the beginning may not all count, or not so.
_UNKNOWN = ("sliding_window", "softcap", "s_aux", "position_bias")


class UnsupportedError(Exception):
    """A checkpoint's attention cannot be computed in two parts."""


@dataclass
class Prefix:
    """The keys and values of a shared beginning: for each layer two tensors of 1 x heads x tokens x size of a head."""

    layers: Sequence[tuple[torch.Tensor, torch.Tensor]]
    read: int = field(default=0, init=False)  # how many layers have looked at it

    @classmethod
    def of(cls, cache: Any) -> Prefix:
        """Return what a cache of one row holds."""
        return cls([(layer.keys, layer.values) for layer in cache.layers])


def is_full(model: Any) -> bool:
    """Return whether every layer looks at all tokens before: no sliding window, no state instead of keys."""
    return all(type(layer) is DynamicLayer for layer in DynamicCache(config=model.config).layers)


def prepare(model: Any) -> bool:
    """Let a model attend to a shared beginning; return whether it can, and leave it as it was where it cannot.

    On a GPU it cannot: PyTorch gives no sums of exponentials there that work for every card.
    """
    if model.device.type != "cpu" or not is_full(model):
        return False
    before = model.config._attn_implementation
    try:
        model.set_attn_implementation(_NAME)
        with torch.inference_mode():
            ids = torch.tensor([[0]])
            prefix = Prefix.of(model(input_ids=ids, use_cache=True).cache)
            model(input_ids=ids, attention_mask=torch.ones_like(ids), position_ids=ids + 1, prefix=prefix)
        if prefix.read == len(prefix.layers):
            return True
    except (UnsupportedError, TypeError, ValueError):
        pass  # told what cannot be done in two parts; takes no `prefix`; has no attention to choose
    model.set_attn_implementation(before)
    return False


def _attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    prefix: Prefix | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Return what each token takes from the beginning and from its own row: rows x tokens x heads x size of a head."""
    if told := [name for name in _UNKNOWN if options.get(name) is not None]:
        raise UnsupportedError(", ".join(told))
    if prefix is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **options)
    prefix.read += 1
    shared, shared_sum = _shared(query, prefix.layers[module.layer_idx], scaling)
    groups = query.shape[1] // key.shape[1]
    own, own_sum = _flash(query, repeat_kv(key, groups), repeat_kv(value, groups), scaling, attention_mask)
    weight = torch.sigmoid(own_sum - shared_sum)[..., None].to(query.dtype)
    return torch.lerp(shared, own, weight).transpose(1, 2).contiguous(), None


def _shared(
    query: torch.Tensor, keys: tuple[torch.Tensor, torch.Tensor], scaling: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the attention of all rows to one set of keys, and its log-sums of exponentials."""
    rows, heads, tokens, size = query.shape
    key, value = keys
    few = key.shape[1]  # several heads may look at the same keys
    as_one = query.reshape(rows, few, -1, size).transpose(0, 1).reshape(1, few, -1, size)
    found, sums = _flash(as_one, key, value, scaling, None)
    found = found.reshape(few, rows, -1, size).transpose(0, 1).reshape(rows, heads, tokens, size)
    return found, sums.reshape(few, rows, -1).transpose(0, 1).reshape(rows, heads, tokens)


def _flash(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None, mask: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention and its log-sums of exponentials; a row that sees nothing has zeros."""
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    found, sums = attend(query, key, value, 0.0, False, attn_mask=mask, scale=scaling)
    return found, sums


AttentionInterface.register(_NAME, _attend)
AttentionMaskInterface.register(_NAME, eager_mask)
