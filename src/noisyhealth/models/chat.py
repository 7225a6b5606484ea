"""A model behind a chat-completions server: the study's GPT."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from noisyhealth.errors import ConfigError, RefusedError
from noisyhealth.models import pace
from noisyhealth.models.endpoint import Address, Endpoint, Loopback
from noisyhealth.models.model import Price
from noisyhealth.records import Example, Query, Reply, Training
from noisyhealth.text.prompt import Prompt, Wording

if TYPE_CHECKING:
    from openai import APIError, APIStatusError, AsyncOpenAI
    from openai.types.chat import ChatCompletion

# Why a server refuses one text and would take the next, as codes or words of its error, and how such a reply ends.
# OpenAI: platform.openai.com/docs/guides/error-codes; Azure: content_filter; llama.cpp: exceed_context_size_error
# (pull request 15780); vLLM has no code, but words.
_OF_THIS_TEXT = {
    "context_length_exceeded": "length",
    "exceed_context_size_error": "length",
    "maximum context length": "length",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "invalid_prompt": "content_filter",
}
_UNFOUND = "no connection"
_SILENT = 8  # calls in a row that reach nobody, retries included, after which no further one is tried
_LONGEST_WAIT = 120.0  # seconds; the OpenAI client does not retry where a server asks for more


@dataclass
class Chat:
    """Asks a server, many questions at once, each in a conversation of its own.

    `max_tokens`: tokens a reply may have. `concurrency`: requests under way at once, fewer while the server
    answers 429. `requests_per_minute`, `tokens_per_minute`: None for no limit. `timeout`: seconds until a request
    is given up. `retries`: further tries after a time-out, a 429, a 5xx, a broken connection or a broken answer.
    """

    name: str
    endpoint: Endpoint
    prompt: Prompt
    prices: Mapping[str, Mapping[str, float]]
    max_tokens: int
    stop: Sequence[str]
    temperature: float
    frequency_penalty: float
    seed: int
    concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    timeout: float
    retries: int
    _wording: Wording | None = field(default=None, init=False)
    _shots: tuple[Example, ...] = field(default=(), init=False)

    @property
    def label(self) -> str:
        """Who answers, with the weights that do."""
        return f"{self.name}({self.endpoint.name})"

    def check(self) -> None:
        """Raise WeightsError when the endpoint cannot be used, ConfigError when a setting cannot."""
        self.endpoint.check()
        for setting in ("concurrency", "requests_per_minute", "tokens_per_minute", "timeout"):
            value = getattr(self, setting)
            if not (value is None or value >= (1 if setting == "concurrency" else 1e-9)):
                raise ConfigError(f"model.{setting}={value} leaves no call to be made: give a number above 0")

    def fit(self, wording: Wording, training: Training) -> None:
        """Take the shots from the pool for prompts."""
        self._wording, self._shots = wording, self.prompt.choose(training.prompt)

    def signature(self) -> Mapping[str, object]:
        """Return the endpoint and the decoding."""
        return {"model": self.name, "endpoint": self.endpoint.identity, **self._decoding()}

    def request(self, query: Query) -> Mapping[str, object]:
        """Return the conversation, and the form of the reply where the prompt asks for one."""
        if self._wording is None:
            raise RuntimeError("fit comes before a query: the shots are not chosen yet")
        return {"messages": self.prompt.messages(self._wording, self._shots, query), **self.prompt.form(query)}

    def price(self) -> Price | None:
        """Return what the endpoint's model costs, by the table of prices."""
        return self.endpoint.price(self.prices)

    def notes(self) -> Mapping[str, str]:
        """Return nothing: all there is to tell stands in the signature."""
        return {}

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        """Yield replies as they arrive; a call that no retry saved gives a reply with finish "error".

        A text that the server refuses, where it would take others, has an empty reply with finish "length" (too long)
        or "content_filter". Raises RefusedError as soon as the server refuses key, model, settings or account, when
        eight calls in a row had no word of a server, and when none at all found one: no further call could do better.
        """
        if queries:
            address = self.endpoint.open()
            if not re.fullmatch(r"[!-~]+", address.key):
                raise RefusedError(
                    f"{self.label}: the key in {self._variable()} has a blank, a line end or a letter "
                    "outside ASCII, and no request can carry it: set the variable again without it"
                )
            yield from pace.in_background(partial(self._ask, address, queries))

    async def _ask(self, address: Address, queries: Sequence[Query], give: Callable[[Reply], Awaitable[None]]) -> None:
        """Give a reply to every query."""
        from openai import AsyncOpenAI

        waiting = iter(queries)
        own = pace.Pace(self.concurrency, self.requests_per_minute, self.tokens_per_minute)
        http = pace.client(own, self.timeout, self.max_tokens)
        silent = unfound = 0

        async def work(client: AsyncOpenAI) -> None:
            nonlocal silent, unfound
            for query in waiting:
                reply = await self._call(client, address, query)
                silence = reply.detail.get("silence")
                silent = silent + 1 if silence else 0
                unfound += silence == _UNFOUND
                if silent >= _SILENT or unfound == len(queries):
                    raise self._nobody(address, str(reply.detail["error"]))
                await give(reply)

        made = AsyncOpenAI(
            base_url=address.url, api_key=address.key, timeout=http.timeout, max_retries=self.retries, http_client=http
        )
        async with made as client:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.concurrency, len(queries))):
                        group.create_task(work(client))
            except ExceptionGroup as failed:
                raise failed.exceptions[0] from None

    async def _call(self, client: AsyncOpenAI, address: Address, query: Query) -> Reply:
        """Return one reply, or one that says why there is none; raises RefusedError."""
        import openai

        start = time.perf_counter()
        try:
            body: dict[str, Any] = {"model": address.model, **self.request(query), **self._decoding()}
            made: ChatCompletion = await client.chat.completions.create(**body)
            return _reply(query, made, time.perf_counter() - start)
        except openai.APIError as error:
            finish, said = _finish(error), _reason(error, address.key)
            if finish == "error" and isinstance(error, openai.APIStatusError) and (advice := self._advice(error)):
                raise RefusedError(
                    f"{self.label} at {address.url} refuses to answer: {said.rstrip('.')}; {advice}, "
                    "then run the same command again: what was answered is kept"
                ) from None
            detail = {"error": said, "silence": _silence(error)}
            return Reply(query.id, "", finish, 0, 0, time.perf_counter() - start, detail)

    def _nobody(self, address: Address, said: str) -> RefusedError:
        """Return that no server answers, with what to do."""
        advice = "start it or correct weights.gpt.endpoint.url"
        if isinstance(self.endpoint, Loopback):
            advice = f"see its log in {self.endpoint.cache}/servers"
        return RefusedError(
            f"{self.label}: no server answers at {address.url} ({said.rstrip('.')}); {advice}, "
            "then run the same command again: what was answered is kept"
        )

    def _advice(self, error: APIStatusError) -> str:
        """Return what to do where no further call could do better, "" where one could."""
        if pace.used_up(error.response):
            return "top up the account or raise its limit"
        if error.status_code == 401:
            return f"set {self._variable()} to a key that it accepts"
        if error.status_code == 403:
            return f"set {self._variable()} to a key that may use the model, or change weights.gpt.endpoint.model"
        if error.status_code == 404:
            return "check weights.gpt.endpoint.model and weights.gpt.endpoint.url"
        if error.status_code == 429:
            wait = _wait(error)
            return f"wait the {wait:.0f} s that it asks for" if wait > _LONGEST_WAIT else ""
        refused = 400 <= error.status_code < 500 and error.status_code not in (408, 409)
        return "change the setting that it names, under model, prompt or weights.gpt" if refused else ""

    def _variable(self) -> str:
        """Return what holds the key, in words."""
        name = getattr(self.endpoint, "key_variable", "")
        return f"the environment variable {name}" if name else "weights.gpt.endpoint.key_variable and that variable"

    def _decoding(self) -> dict[str, object]:
        return {
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "frequency_penalty": self.frequency_penalty,
            "seed": self.seed,
            **({"stop": list(self.stop)} if self.stop else {}),
        }


def _reply(query: Query, made: ChatCompletion, seconds: float) -> Reply:
    """Return what the server sent: what the model wrote or, where it would not write, its refusal."""
    choice, usage = made.choices[0], made.usage
    text, refusal = choice.message.content or "", choice.message.refusal or ""
    detail = {"server_model": made.model, "request_id": made.id, "fingerprint": made.system_fingerprint}
    return Reply(
        query.id,
        text or refusal,
        "refusal" if refusal and not text else choice.finish_reason or "unknown",
        (usage and usage.prompt_tokens) or 0,
        (usage and usage.completion_tokens) or 0,
        seconds,
        detail,
    )


def _finish(error: APIError) -> str:
    """Return how a reply that an error took ends: "error", or what this text alone is refused for."""
    status = getattr(error, "status_code", 0)
    if status == 413:
        return "length"
    said = f"{error.code} {error.type} {error.message}".lower() if status == 400 else ""
    return next((finish for sign, finish in _OF_THIS_TEXT.items() if sign in said), "error")


def _silence(error: APIError) -> str:
    """Return how there was no word of a server, not even a wrong one; "" where there was one."""
    import httpx2
    import openai

    cause = error.__cause__
    if not isinstance(error, openai.APIConnectionError) or isinstance(cause, httpx2.DecodingError):
        return ""
    return _UNFOUND if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout) else "broken or too slow"


def _wait(error: APIStatusError) -> float:
    """Return the seconds that the server asks to wait."""
    try:
        return float(error.response.headers["retry-after"])
    except (KeyError, ValueError):
        return 0.0


def _reason(error: Exception, key: str) -> str:
    """Return the error's kind and its first line, without the key."""
    import httpx2

    if isinstance(error.__cause__, httpx2.DecodingError):
        error = error.__cause__  # "Connection error." says less
    first = masked(str(error), key).partition("\n")[0]
    return f"{type(error).__name__}: {first[:300]}"


def masked(text: str, key: str) -> str:
    """Return a text without the key and without words that show a part of it: servers repeat it whole, cut or starred.

    >>> masked("Incorrect API key provided: sk-12***********cdef.", "sk-1234567890abcdef")
    'Incorrect API key provided: [key]'
    """

    def shows(word: str) -> bool:
        ends = [end for end in re.split(r"\*+|\.{2,}|…", word.strip(".")) if len(end) > 2]
        cut = any(key.startswith(end) or key.endswith(end) for end in ends) and word not in ends
        return cut or any(key[at : at + 6] in word for at in range(len(key) - 5))

    whole = text.replace(key, "[key]")
    return re.sub(r"[^\s'\"(){},:;=]+", lambda found: "[key]" if shows(found[0]) else found[0], whole)
