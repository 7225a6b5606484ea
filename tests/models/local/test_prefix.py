"""Checkpoints of other architectures, with random weights: they score the same whether they can look back or not."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers

from noisyhealth.models.local import prefix
from noisyhealth.models.local.causal import CausalLM
from noisyhealth.models.local.decoding import Decoding

SMALL = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
CAN = {
    "Llama": {},
    "Qwen2": {},
    "Qwen3": {"head_dim": 8},
    "Mistral": {"sliding_window": None},
    "Phi3": {},
    "SmolLM3": {},
    "GPTNeoX": {},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256},
}
# A window that ends within the beginning, a cap on the scores, sinks, positions as a bias.
CANNOT = {
    "Mistral": {"sliding_window": 6},
    "Gemma2": {"head_dim": 8, "sliding_window": 6},
    "Gemma3Text": {"head_dim": 8, "sliding_window": 6},
    "GptOss": {"head_dim": 8, "sliding_window": 6, "num_local_experts": 2, "num_experts_per_tok": 1},
    "Bloom": {"n_layer": 2, "n_head": 4},
}
BEGINNING = list(range(3, 23))
PROMPTS = [[*BEGINNING, 30, 31], [*BEGINNING, 40], [*BEGINNING, 50, 51, 52, 53, 54], [*BEGINNING, 60, 61]]
OPTIONS = [[70], [71, 72, 73], [71, 74]]
TOKENIZER = SimpleNamespace(eos_token_id=2)


def made(name: str, settings: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    wanted = {**SMALL, **settings} if name != "GPT2" else {"vocab_size": 97, **settings}
    config = getattr(transformers, f"{name}Config")(**wanted)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def naive(model: Any, prompt: list[int], option: list[int]) -> float:
    """Return the log-likelihood from one pass over the whole, no cache, no padding."""
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([prompt + option]), use_cache=False).logits[0]
    after = logits[len(prompt) - 1 : -1].float().log_softmax(-1)
    return float(after.gather(1, torch.tensor(option)[:, None]).sum())


@pytest.mark.parametrize(
    ("name", "settings", "looks_back"),
    [*((name, more, True) for name, more in CAN.items()), *((name, more, False) for name, more in CANNOT.items())],
)
def test_options_score_as_in_whole_prompts_in_every_architecture(
    name: str, settings: dict[str, Any], looks_back: bool
) -> None:
    model = made(name, settings)
    wanted = [[naive(model, prompt, option) for option in OPTIONS] for prompt in PROMPTS]
    assert prefix.prepare(model) is looks_back
    lm = CausalLM(model, TOKENIZER, 64, 3, shares := prefix.is_full(model), looks_back)
    assert [scores for _, scores in sorted(lm.likelihoods(PROMPTS, OPTIONS))] == [
        pytest.approx(row, abs=1e-4) for row in wanted
    ]
    assert lm._prefix == (BEGINNING if shares else [])


@pytest.mark.parametrize(("name", "settings"), CAN.items())
def test_text_is_the_same_with_and_without_looking_back(name: str, settings: dict[str, Any]) -> None:
    model = made(name, settings)
    assert prefix.prepare(model)
    made_by = [
        sorted(
            CausalLM(model, TOKENIZER, 64, 3, True, looks_back).generate(PROMPTS, Decoding(max_tokens=8)),
            key=lambda one: one.index,
        )
        for looks_back in (True, False)
    ]
    assert made_by[0] == made_by[1]


def test_a_model_that_cannot_look_back_is_left_as_it_was() -> None:
    model = made("Gemma2", CANNOT["Gemma2"])
    before = model.config._attn_implementation
    assert not prefix.prepare(model)
    assert model.config._attn_implementation == before
