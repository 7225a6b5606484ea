"""A language model in this process: the study's Llama, or any causal checkpoint of transformers.

Labels are chosen by log-likelihood, free answers are generated.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from statistics import fmean

from noisyhealth import version
from noisyhealth.errors import ConfigError
from noisyhealth.models.local import causal
from noisyhealth.models.local.causal import CausalLM
from noisyhealth.models.local.decoding import Decoding, Tokens
from noisyhealth.models.model import FREE, Price
from noisyhealth.models.weights import Source, as_mapping
from noisyhealth.records import Example, Query, Reply, Training
from noisyhealth.text.prompt import Message, Prompt, Wording

_TEMPLATES = ("chat", "plain")
_CALIBRATIONS = ("none", "content-free", "batch")
_MOST_NEUTRAL = 64
_priors: dict[tuple[int, str, str], list[float]] = {}  # of weights that stay loaded as long as the process runs


@dataclass
class Local:
    """Asks weights in this process.

    `template`: "chat" uses the checkpoint's own chat template, "plain" joins the turns as text,
    which small models follow better. `dtype`: "auto", "float32" or "bfloat16". `max_tokens` and `stop`
    end a free answer. `calibration`: "none", or what is taken from each option's log-likelihood: with "content-free"
    its mean where the text is empty (Zhao et al. 2021, arXiv:2102.09690); with "batch" the logarithm of its mean
    share among the options over texts without labels (Zhou et al. 2023, arXiv:2309.17249), here up to 64 of
    validation. `batch_tokens` bounds the tokens of a batch beyond the shared beginning.
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
    _neutral: tuple[str, ...] = field(default=(), init=False)

    @property
    def batch(self) -> bool:
        """No: it answers at once."""
        return False

    @property
    def label(self) -> str:
        """Who answers, with the weights that do."""
        return f"{self.name}({self.source.name})"

    def check(self) -> None:
        """Raise WeightsError when the weights cannot be had, ConfigError when a setting cannot be used."""
        self.source.check()
        if not 0 <= self.temperature <= 2:
            raise ConfigError(f"model.temperature={self.temperature}: give a number from 0 to 2")
        if self.max_tokens < 1:
            raise ConfigError(f"model.max_tokens={self.max_tokens}: give a whole number of tokens above 0")
        if not -2 <= self.frequency_penalty <= 2:
            raise ConfigError(f"model.frequency_penalty={self.frequency_penalty}: give a number from -2 to 2")
        for name in ("batch_tokens", "batch_size"):
            if (given := getattr(self, name)) < 1:
                raise ConfigError(f"model.{name}={given}: give a whole number above 0")
        if self.template not in _TEMPLATES:
            raise ConfigError(f"weights.{self.name}.template={self.template!r} is none of {', '.join(_TEMPLATES)}")
        if self.dtype not in causal.DTYPES:
            raise ConfigError(f"model.dtype={self.dtype!r} is none of {', '.join(causal.DTYPES)}")
        if self.calibration not in _CALIBRATIONS:
            raise ConfigError(f"model.calibration={self.calibration}: it may be {', '.join(_CALIBRATIONS)}")
        if self.prompt.written:
            raise ConfigError(
                f"{self.prompt.written}, and model={self.name} chooses its answer or writes nothing else: "
                "give prompt=study or model=gpt"
            )

    def fit(self, wording: Wording, training: Training) -> None:
        """Take the shots from the pool for prompts, and the texts that tell what a label has without one."""
        self._wording, self._shots = wording, self.prompt.choose(training.prompt)
        if self.calibration == "content-free":
            self._neutral = ("N/A", "", "[MASK]")
        elif self.calibration == "batch":
            self._neutral = tuple(example.text for example in training.validation[:_MOST_NEUTRAL])
            if not self._neutral:
                raise ConfigError("model.calibration=batch needs validation texts, and there are none")

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
            **({"calibrated_on": _hash(self._neutral)} if self.calibration == "batch" else {}),
            "runtime": causal.runtime(),
            "code": version.of("models/local/local.py", *causal.CODE),
        }

    def request(self, query: Query) -> Mapping[str, object]:
        """Return the conversation and the options."""
        return {"messages": self._messages(query), "options": list(query.options)}

    def price(self) -> Price:
        """Return that nothing is paid."""
        return FREE

    def shots(self) -> tuple[str, ...]:
        """Return the ids of the shots."""
        return tuple(shot.id for shot in self._shots)

    def fitted(self) -> None:
        """Return that nothing is fine-tuned."""
        return

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
        """Return what to take from each option's log-likelihood; it is the same for all cells of a prompt."""
        if not self._neutral:
            return [0.0] * len(options)
        prompts = [self._tokens(lm, Query("", text, "", query.options)) for text in self._neutral]
        key = (id(lm), self.calibration, _hash([prompts, options]))
        if key not in _priors:
            rows = [scores for _, scores in lm.likelihoods(prompts, options)]
            shares = rows if self.calibration == "content-free" else [_shares(row) for row in rows]
            means = [fmean(column) for column in zip(*shares, strict=True)]
            _priors[key] = (
                means
                if self.calibration == "content-free"
                else [math.log(max(mean, sys.float_info.min)) for mean in means]
            )
        return _priors[key]

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

    def text(self, lm: CausalLM, query: Query) -> str:
        """Return the prompt up to and with the lead of the answer."""
        messages = self._messages(query)
        return (plain(messages) if self.template == "plain" else chat(lm, messages)) + self.prompt.lead

    def _tokens(self, lm: CausalLM, query: Query) -> Tokens:
        tokens: Tokens = lm.tokenizer(self.text(lm, query), add_special_tokens=False).input_ids
        return tokens

    @cached_property
    def _dtype(self) -> str:
        return causal.pick_dtype(self.dtype)

    def _lm(self) -> CausalLM:
        return causal.load(self.source.folder(), self._dtype, self.batch_tokens, self.batch_size)


def _shares(likelihoods: Sequence[float]) -> list[float]:
    """Return each option's share of the probability of all options.

    >>> [round(share, 9) for share in _shares([math.log(0.3), math.log(0.1)])]
    [0.75, 0.25]
    """
    most = max(likelihoods)
    weights = [math.exp(one - most) for one in likelihoods]
    return [weight / sum(weights) for weight in weights]


def _hash(content: object) -> str:
    return sha256(repr(content).encode()).hexdigest()


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
