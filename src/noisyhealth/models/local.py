"""A language model in this process: the study's Llama, or any causal checkpoint of transformers.

Labels are chosen by log-likelihood, free answers are generated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from noisyhealth import version
from noisyhealth.errors import ConfigError
from noisyhealth.models import causal
from noisyhealth.models.causal import CausalLM, Decoding, Tokens
from noisyhealth.models.model import FREE, Price
from noisyhealth.models.weights import Source, as_mapping
from noisyhealth.records import Example, Query, Reply, Training
from noisyhealth.text.prompt import Message, Prompt, Wording


@dataclass
class Local:
    """Asks weights in this process.

    `template`: "chat" uses the checkpoint's own chat template, "plain" joins the turns as text,
    which small models follow better. `dtype`: "auto", "float32" or "bfloat16". `max_tokens` and `stop`
    end a free answer. `calibration`: "none", or "content-free" to take from each option's
    log-likelihood what it has when the text is empty (Zhao et al. 2021, arXiv:2102.09690).
    `batch_tokens` bounds the tokens of a batch beyond the shared beginning.
    """

    name: str
    source: Source
    prompt: Prompt
    template: str
    dtype: str
    max_tokens: int
    stop: Sequence[str]
    temperature: float
    frequency_penalty: float
    seed: int
    calibration: str
    batch_tokens: int
    batch_size: int
    _wording: Wording | None = field(default=None, init=False)
    _shots: tuple[Example, ...] = field(default=(), init=False)

    @property
    def label(self) -> str:
        """Who answers, with the weights that do."""
        return f"{self.name}({self.source.name})"

    def check(self) -> None:
        """Raise WeightsError when the weights cannot be had, ConfigError for a prompt that wants a server."""
        self.source.check()
        if self.prompt.format != "text":
            raise ConfigError(
                f"prompt.format={self.prompt.format} is for a server, and model={self.name} answers in this process: "
                "give prompt=study or model=gpt"
            )

    def fit(self, wording: Wording, training: Training) -> None:
        """Take the shots from the pool for prompts."""
        self._wording, self._shots = wording, self.prompt.choose(training.prompt)

    def signature(self) -> Mapping[str, object]:
        """Return weights, number format and decoding."""
        return {
            "model": self.name,
            **as_mapping(self.source),
            "dtype": self._dtype,
            "template": self.template,
            "lead": self.prompt.lead,
            "max_tokens": self.max_tokens,
            "stop": list(self.stop),
            "temperature": self.temperature,
            "frequency_penalty": self.frequency_penalty,
            "seed": self.seed,
            "calibration": self.calibration,
            "runtime": causal.runtime(),
            "code": version.of("models/local.py", "models/causal.py"),
        }

    def request(self, query: Query) -> Mapping[str, object]:
        """Return the conversation and the options."""
        return {"messages": self._messages(query), "options": list(query.options)}

    def price(self) -> Price:
        """Return that nothing is paid."""
        return FREE

    def notes(self) -> Mapping[str, str]:
        """Return nothing: all there is to tell stands in the signature."""
        return {}

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        """Yield replies: those of closed questions first, then those of free ones."""
        closed = [q for q in queries if q.options]
        free = [q for q in queries if not q.options]
        if closed:
            yield from self._choose(closed)
        if free:
            yield from self._write(free)

    def _choose(self, queries: Sequence[Query]) -> Iterator[Reply]:
        lm, labels = self._lm(), list(queries[0].options)
        options = [lm.tokenizer(f" {label}", add_special_tokens=False).input_ids for label in labels]
        prompts = [self._tokens(lm, q) for q in queries]
        prior = self._prior(lm, queries[0], options)
        clock = _Clock()
        for index, scores in lm.likelihoods(prompts, options):
            adjusted = [score - before for score, before in zip(scores, prior, strict=True)]
            best = max(range(len(labels)), key=lambda i: (adjusted[i], -i))
            detail = {"scores": dict(zip(labels, adjusted, strict=True))}
            size = len(prompts[index])
            yield Reply(queries[index].id, labels[best], "choice", size, 0, clock.lap(), detail)

    def _prior(self, lm: CausalLM, query: Query, options: Sequence[Tokens]) -> list[float]:
        """Return what to take from each option's log-likelihood."""
        if self.calibration == "none":
            return [0.0] * len(options)
        empty = [self._tokens(lm, Query("", text, "", query.options)) for text in ("N/A", "", "[MASK]")]
        rows = [scores for _, scores in lm.likelihoods(empty, options)]
        return [sum(column) / len(rows) for column in zip(*rows, strict=True)]

    def _write(self, queries: Sequence[Query]) -> Iterator[Reply]:
        lm = self._lm()
        prompts = [self._tokens(lm, q) for q in queries]
        clock = _Clock()
        decoding = Decoding(self.max_tokens, tuple(self.stop), self.temperature, self.frequency_penalty, self.seed)
        for made in lm.generate(prompts, decoding):
            text = until(lm.tokenizer.decode(made.tokens, skip_special_tokens=True), self.stop).strip()
            size = len(prompts[made.index])
            yield Reply(queries[made.index].id, text, made.finish, size, len(made.tokens), clock.lap())

    def _messages(self, query: Query) -> list[Message]:
        if self._wording is None:
            raise RuntimeError("fit comes before a query: the shots are not chosen yet")
        return self.prompt.messages(self._wording, self._shots, query)

    def _tokens(self, lm: CausalLM, query: Query) -> Tokens:
        """Return the prompt up to and with the lead of the answer."""
        messages = self._messages(query)
        text = plain(messages) if self.template == "plain" else chat(lm, messages)
        tokens: Tokens = lm.tokenizer(text + self.prompt.lead, add_special_tokens=False).input_ids
        return tokens

    @cached_property
    def _dtype(self) -> str:
        return causal.pick_dtype(self.dtype)

    def _lm(self) -> CausalLM:
        return causal.load(self.source.folder(), self._dtype, self.batch_tokens, self.batch_size)


class _Clock:
    """Tells the time since the last reply, so that the times of all replies add up to the whole."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        """Return seconds since the last lap."""
        before, self._last = self._last, time.perf_counter()
        return self._last - before


def plain(messages: Sequence[Message]) -> str:
    """Return a conversation as text: an answer on the line after its input, an empty line between turns.

    >>> plain([{"role": "system", "content": "S"}, {"role": "user", "content": "U"},
    ...        {"role": "assistant", "content": "A"}, {"role": "user", "content": "V"}])
    'S\\n\\nU\\nA\\n\\nV\\n'
    """
    return "".join(m["content"] + ("\n" if m["role"] == "user" else "\n\n") for m in messages)


def chat(lm: CausalLM, messages: Sequence[Message]) -> str:
    """Return a conversation in the checkpoint's own chat template, up to the reply."""
    text: str = lm.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return text


def until(text: str, stop: Sequence[str]) -> str:
    """Return the text before the first stop string.

    >>> until("aspirin\\nJustification: none", ["\\n"])
    'aspirin'
    """
    return min((text.partition(s)[0] for s in stop), key=len, default=text)
