from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import DictConfig

from noisyhealth.models.local import causal
from noisyhealth.models.local.causal import CausalLM
from noisyhealth.models.local.decoding import Decoding, Generated, pick
from noisyhealth.models.local.local import until

SHOTS = "Say how the writer feels.\n\nMessage: all clear after my scan!\nAnswer: positive\n\n"
TEXTS = [
    "so tired of this cough",
    "New inhaler and no wheeze all week, so relieved :)",
    "ok",
    "BP 150/90 again, doc says 2.5 mg more...",
]


@pytest.fixture(scope="module", params=[True, False], ids=["looks back", "copies"])
def lm(request: pytest.FixtureRequest, shared_cache: Path, configured: Callable[..., DictConfig]) -> CausalLM:
    source = instantiate(configured(f"cache={shared_cache}").weights.llama.source)
    loaded = causal.load(source.folder(), "float32", 4096, 3)  # batches of three: the last has one row
    assert loaded.looks_back
    return replace(loaded, looks_back=request.param)


def tokens(lm: CausalLM, text: str) -> list[int]:
    found: list[int] = lm.tokenizer(text, add_special_tokens=False).input_ids
    return found


def prompts_of(lm: CausalLM, texts: list[str]) -> list[list[int]]:
    return [tokens(lm, f"{SHOTS}Message: {text}\nAnswer:") for text in texts]


def talk(lm: CausalLM, texts: list[str]) -> list[list[int]]:
    turns = [[{"role": "user", "content": text}] for text in texts]
    chats = [lm.tokenizer.apply_chat_template(t, tokenize=False, add_generation_prompt=True) for t in turns]
    return [tokens(lm, text) for text in chats]


def naive(lm: CausalLM, prompt: list[int], option: list[int]) -> float:
    """Return the log-likelihood from one pass over the whole, no cache, no padding."""
    with torch.inference_mode():
        logits = lm.model(input_ids=torch.tensor([prompt + option]), use_cache=False).logits[0]
    after = logits[len(prompt) - 1 : -1].float().log_softmax(-1)
    return float(after.gather(1, torch.tensor(option)[:, None]).sum())


def greedy(lm: CausalLM, prompt: list[int], limit: int) -> list[int]:
    """Return what transformers itself writes after one prompt, without the token that ends it."""
    ids = torch.tensor([prompt])
    with torch.inference_mode():
        made = lm.model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=limit, pad_token_id=0
        )
    return [token for token in made[0, len(prompt) :].tolist() if token not in lm._ends]


def written(lm: CausalLM, prompts: list[list[int]], decoding: Decoding) -> list[Generated]:
    return sorted(lm.generate(prompts, decoding), key=lambda made: made.index)


@pytest.mark.parametrize(
    "labels",
    [
        [" positive", " negative"],
        [" neoplasm", " digestive", " cardiovascular"],
        [" not well", " not at all well", " not"],
    ],
    ids=["one token", "several tokens", "same first token"],
)
def test_options_score_as_in_whole_prompts_computed_one_by_one(lm: CausalLM, labels: list[str]) -> None:
    options, prompts = [tokens(lm, label) for label in labels], prompts_of(lm, TEXTS)
    found = dict(lm.likelihoods(prompts, options))
    assert sorted(found) == list(range(len(TEXTS)))
    for index, scores in found.items():
        assert scores == pytest.approx([naive(lm, prompts[index], option) for option in options], abs=1e-3)


def test_the_labels_of_these_tests_are_what_they_stand_for(lm: CausalLM) -> None:
    assert [len(tokens(lm, label)) for label in (" positive", " negative")] == [1, 1]
    assert len(tokens(lm, " neoplasm")) > 1
    assert len({tokens(lm, label)[0] for label in (" not well", " not at all well", " not")}) == 1


def test_one_prompt_alone_scores_as_among_others(lm: CausalLM) -> None:
    prompts, options = prompts_of(lm, TEXTS), [tokens(lm, " positive"), tokens(lm, " cardiovascular")]
    among = dict(lm.likelihoods(prompts, options))
    [(_, alone)] = lm.likelihoods(prompts[1:2], options)
    assert alone == pytest.approx(among[1], abs=1e-3)


def test_prompts_without_a_shared_beginning_score_right(lm: CausalLM) -> None:
    prompts, options = [tokens(lm, "Pain is"), tokens(lm, "My doctor told me that I am")], [tokens(lm, " bad")]
    assert [s for _, [s] in sorted(lm.likelihoods(prompts, options))] == pytest.approx(
        [naive(lm, prompt, options[0]) for prompt in prompts], abs=1e-3
    )


def test_another_beginning_afterwards_does_not_meet_the_kept_one(lm: CausalLM) -> None:
    options = [tokens(lm, " positive")]
    list(lm.likelihoods(prompts_of(lm, TEXTS), options))
    other = [tokens(lm, f"Abstract: {text}\nSubject:") for text in TEXTS[:2]]
    assert [s for _, [s] in sorted(lm.likelihoods(other, options))] == pytest.approx(
        [naive(lm, prompt, options[0]) for prompt in other], abs=1e-3
    )


@pytest.mark.parametrize("padding", [0.125, 1.0])
def test_batches_hold_every_prompt_once_and_no_more_padding_or_tokens_than_allowed(padding: float) -> None:
    alone = CausalLM(None, None, 1000, 8, shares=False, looks_back=False)
    prompts = [[at] * (7 * at % 400 + 1) for at in range(100)]
    batches = list(alone._batches(prompts, padding))
    assert sorted(at for batch in batches for at in batch) == list(range(100))
    for batch in batches:
        sizes = [len(prompts[at]) for at in batch]
        assert max(sizes) - min(sizes) <= max(8, padding * max(sizes))
        assert len(sizes) == 1 or (len(sizes) <= 8 and len(sizes) * max(sizes) <= 1000)
    assert len(batches) < (60 if padding == 0.125 else 30)


def test_prompts_that_come_one_by_one_share_their_beginning_too(lm: CausalLM) -> None:
    options = [tokens(lm, " positive"), tokens(lm, " cardiovascular")]
    fresh = replace(lm, _prefix=[], _prefix_cache=None)
    whole = prompts_of(lm, TEXTS)
    for prompt in whole:
        [(_, scores)] = fresh.likelihoods([prompt], options)
        assert scores == pytest.approx([naive(lm, prompt, option) for option in options], abs=1e-3)
    assert fresh._prefix == causal._common_beginning(whole)
    assert len(fresh._prefix) > 20


def test_no_prompt_gives_no_answer(lm: CausalLM) -> None:
    assert list(lm.likelihoods([], [[1]])) == []
    assert written(lm, [], Decoding(max_tokens=3)) == []


def test_greedy_text_is_that_of_transformers(lm: CausalLM) -> None:
    prompts = talk(lm, ["What is a cough?", "Name two fruits.", "hi", "Is 2.5 mg more than 5.2 mg?"])
    made = written(lm, prompts, Decoding(max_tokens=10))
    assert [m.tokens for m in made] == [greedy(lm, prompt, 10) for prompt in prompts]


def test_rows_that_end_at_different_times_do_not_disturb_each_other(lm: CausalLM) -> None:
    prompts = talk(lm, ["Say only the word yes.", "Count from one to twenty.", "What is the capital of France?"])
    made = written(lm, prompts, Decoding(max_tokens=12))
    assert len({len(m.tokens) for m in made}) > 1
    assert {m.finish for m in made} == {"stop", "length"}
    assert [m.tokens for m in made] == [greedy(lm, prompt, 12) for prompt in prompts]
    assert all(len(m.tokens) == 12 for m in made if m.finish == "length")


def test_text_ends_at_the_first_stop_string(lm: CausalLM) -> None:
    prompts = prompts_of(lm, TEXTS[:3])
    whole = [lm.tokenizer.decode(greedy(lm, prompt, 12)) for prompt in prompts]
    assert all("\n" in text for text in whole)
    made = written(lm, prompts, Decoding(max_tokens=12, stop=("\n",)))
    assert [m.finish for m in made] == ["stop"] * 3
    assert [until(lm.tokenizer.decode(m.tokens), ["\n"]) for m in made] == [text.partition("\n")[0] for text in whole]
    assert all(len(m.tokens) < 12 for m in made)


def test_a_penalty_lowers_what_was_written_before_by_its_count() -> None:
    following = torch.tensor([[1.0, 0.9, 0.0], [1.0, 0.9, 0.0]])
    picked = pick(following, [[0], [0, 1, 1]], Decoding(max_tokens=1, frequency_penalty=0.5), [])
    assert picked.tolist() == [1, 0]


def test_the_same_seed_gives_the_same_sample_and_another_one_another(lm: CausalLM) -> None:
    prompts = talk(lm, ["Tell me a story."])
    texts = [written(lm, prompts, Decoding(6, temperature=1.0, seed=seed))[0].tokens for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]


def test_what_is_drawn_for_a_prompt_does_not_depend_on_its_batch(lm: CausalLM) -> None:
    prompts = prompts_of(lm, TEXTS)
    decoding = Decoding(6, temperature=1.0, seed=4)
    together = [made.tokens for made in written(lm, prompts, decoding)]
    assert [written(lm, [prompt], decoding)[0].tokens for prompt in prompts] == together
    assert len(set(map(tuple, together))) > 1
