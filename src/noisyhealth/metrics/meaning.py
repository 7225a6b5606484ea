"""BERTScore: how near each word of an answer is to some word of the reference, and back.

Zhang et al. 2020, arxiv.org/abs/1904.09675, by their own package bert-score. torchmetrics' BERTScore
mismatches the pairs (Lightning-AI/torchmetrics issue 2728). Not rescaled, no idf weights.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from noisyhealth.errors import WeightsError
from noisyhealth.metrics import pairs
from noisyhealth.progress import steps
from noisyhealth.records import Scores

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_PAIRS = 64  # scored in one go; no score depends on it
_NAMES = ("bertscore_precision", "bertscore_recall", "bertscore_f1")


def scores(references: Sequence[str], candidates: Sequence[str], folder: Path, layers: int) -> Scores:
    """Return the means of `bertscore_precision`, `bertscore_recall` and `bertscore_f1`.

    `folder` holds a BERT-like encoder and its tokenizer, `layers` counts from the bottom the
    layers used. A pair with an empty side scores 0. A text longer than the encoder can read is
    read up to its limit. Numbers depend on the encoder and the layers: report both.

    Raises DataError for no examples or unequal lengths, WeightsError for an unfit folder.
    """
    each = pairwise(references, candidates, folder, layers)
    return {name: sum(column) / len(each) for name, column in zip(_NAMES, zip(*each, strict=True), strict=True)}


def pairwise(
    references: Sequence[str], candidates: Sequence[str], folder: Path, layers: int
) -> list[tuple[float, float, float]]:
    """Return (precision, recall, F1) of every pair, in order.

    Every text goes through the encoder alone, because the padding of a batch changes the last
    digits: so a pair's score is the same whatever it is scored together with, and is computed once
    a process; the cells of a study share their clean replies.
    """
    pairs.check(references, candidates)
    every, known = list(zip(references, candidates, strict=True)), _known(folder.resolve(), layers)
    if told := [pair for pair in dict.fromkeys(every) if pair not in known and all(map(str.strip, pair))]:
        known.update(zip(told, _bert_scores(told, folder, layers), strict=True))
    return [known.get(pair, (0.0, 0.0, 0.0)) for pair in every]


@cache
def _known(folder: Path, layers: int) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return the scores of pairs that this process has computed with an encoder, which `pairwise` adds to."""
    return {}


def _bert_scores(told: Sequence[tuple[str, str]], folder: Path, layers: int) -> list[tuple[float, float, float]]:
    """Return bert-score's numbers; empty texts must be gone, it cannot encode them with transformers 5."""
    from bert_score.utils import bert_cos_score_idf

    model, tokenizer = _load(folder.resolve(), layers)
    idf = dict.fromkeys(range(len(tokenizer)), 1.0) | {tokenizer.cls_token_id: 0.0, tokenizer.sep_token_id: 0.0}
    references, candidates = map(list, zip(*told, strict=True))
    found: list[list[float]] = []
    for at in steps(range(0, len(told), _PAIRS), "scoring by BERTScore", unit="part"):
        part = slice(at, at + _PAIRS)
        given = references[part], candidates[part]
        found += bert_cos_score_idf(model, *given, tokenizer, idf, batch_size=1, device="cpu").tolist()
    # A cosine of a vector with itself is 1.0000001 in 32 bits.
    return [(min(p, 1.0), min(r, 1.0), min(f, 1.0)) for p, r, f in found]


@lru_cache(maxsize=2)
def _load(folder: Path, layers: int) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """Return the encoder cut to its lower layers and the tokenizer, once a process.

    Loaded here and not by bert-score's `get_model`, which takes any path with "t5" in it for a
    T5 and any that starts with "scibert" for a download.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if not (folder / "config.json").is_file():
        raise WeightsError(f"{folder} has no config.json: name the folder of a transformers encoder for BERTScore")
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
    stack = getattr(getattr(model, "encoder", None), "layer", None)
    if stack is None or not 1 <= layers <= len(stack):
        depth = "no stack of encoder layers" if stack is None else f"{len(stack)} layers"
        raise WeightsError(f"{folder} has {depth}, BERTScore asks for {layers}: set its layers or its folder right")
    model.encoder.layer = stack[:layers]
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    tokenizer.model_max_length = min(tokenizer.model_max_length, _positions(model))
    return model, tokenizer


def _positions(model: "PreTrainedModel") -> int:
    """Return how many tokens the encoder reads; RoBERTa's kind starts counting behind the padding."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return int(model.config.max_position_embeddings) - (0 if padding is None else padding + 1)
