"""A model behind a chat-completions server: the study's GPT."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisyhealth.errors import ConfigError, RefusedError
from noisyhealth.models.chat import answer, fault, pace
from noisyhealth.models.chat.batch import Batches
from noisyhealth.models.chat.batch import client as batch_client
from noisyhealth.models.chat.endpoint import Address, Endpoint, Loopback
from noisyhealth.models.chat.intent import Intents
from noisyhealth.models.model import Price
from noisyhealth.records import Example, Query, Reply, Training
from noisyhealth.text.prompt import Prompt, Wording

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


# What may be given, and that in words.
_SETTINGS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "max_tokens": (lambda given: type(given) is int and given > 0, "a whole number of tokens above 0"),
    "temperature": (lambda given: _is_number(given) and 0 <= given <= 2, "a number from 0 to 2"),
    "frequency_penalty": (lambda given: _is_number(given) and -2 <= given <= 2, "a number from -2 to 2"),
    "concurrency": (lambda given: type(given) is int and given > 0, "a whole number of calls above 0"),
    "requests_per_minute": (lambda given: given is None or _is_positive(given), "a number above 0, or null"),
    "tokens_per_minute": (lambda given: given is None or _is_positive(given), "a number above 0, or null"),
    "timeout": (_is_positive, "seconds above 0"),
    "retries": (lambda given: type(given) is int and given >= 0, "a whole number of 0 or more"),
    "batch": (lambda given: isinstance(given, bool), "true or false"),
    "batch_share": (lambda given: _is_positive(given) and given <= 1, "a fraction of the price above 0 and up to 1"),
    "poll_seconds": (_is_positive, "seconds above 0"),
}


@dataclass
class Chat:
    """Asks a server, many questions at once, each in a conversation of its own.

    `max_tokens`: tokens a reply may have. `concurrency`: requests under way at once, fewer while the server
    answers 429. `requests_per_minute`, `tokens_per_minute`: None for no limit. `timeout`: seconds until a request
    is given up. `retries`: further tries after a time-out, a 429, a 5xx, a broken connection or a broken answer.

    `batch`: the texts go to the provider as a batch, which may take a day and costs `batch_share` of the price
    (fraction, above 0 and up to 1); it is looked after every `poll_seconds`, and `cache` is the folder that remembers
    it. Then `concurrency` and the limits a minute do nothing.
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
    batch: bool
    batch_share: float
    poll_seconds: float
    cache: str
    _wording: Wording | None = field(default=None, init=False)
    _shots: tuple[Example, ...] = field(default=(), init=False)

    @property
    def label(self) -> str:
        """Who answers, with the weights that do."""
        return f"{self.name}({self.endpoint.name})"

    def check(self) -> None:
        """Raise WeightsError when the endpoint cannot be used, ConfigError when a setting cannot."""
        self.endpoint.check()
        for setting, (sound, said) in _SETTINGS.items():
            if not sound(value := getattr(self, setting)):
                raise ConfigError(f"model.{setting}={value}: give {said}")
        if self.batch and isinstance(self.endpoint, Loopback):
            raise ConfigError(
                "model.batch=true is for a provider's batch API, and the embedded server has none: "
                "give model.batch=false, or weights=study for OpenAI's"
            )
        if self.prompt.format == "json_schema" and isinstance(self.endpoint, Loopback):
            raise ConfigError(
                f"prompt.format={self.prompt.format} is for a server that supports it, and the embedded one does not: "
                "give prompt=json_in_words or prompt=study, or the address of another server"
            )

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
        """Return what the endpoint's model costs, by the table of prices, in a batch its share."""
        price = self.endpoint.price(self.prices)
        return price.times(self.batch_share) if price and self.batch else price

    def shots(self) -> tuple[str, ...]:
        """Return the ids of the shots."""
        return tuple(shot.id for shot in self._shots)

    def fitted(self) -> None:
        """Return that nothing is fine-tuned."""
        return

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        """Return replies as they arrive; a call that no retry saved gives a reply with finish "error".

        A batch is handed over at once, before the first reply is asked for.

        A text that the server refuses, where it would take others, has an empty reply with finish "length" (too long)
        or "content_filter". Raises RefusedError as soon as the server refuses key, model, settings or account, when
        eight calls in a row had no word of a server, and when the last found none: no further call could do better.
        """
        if not queries:
            return iter(())
        address = self.endpoint.open()
        if not re.fullmatch(r"[!-~]+", address.key):
            raise RefusedError(
                f"{self.label}: the key in {self._variable()} has a blank, a line end or a letter "
                "outside ASCII, and no request can carry it: set the variable again without it"
            )
        if self.batch:
            return self._batches(address).ask({query.id: self._body(address, query) for query in queries})
        return pace.in_background(partial(self._ask, address, queries))

    def _batches(self, address: Address) -> Batches:
        return Batches(
            opened=partial(batch_client, address, self.timeout, self.retries),
            peer=self._peer(address),
            intents=Intents(Path(self.cache) / "batches", self.endpoint.identity),
            poll_seconds=self.poll_seconds,
            retries=self.retries,
        )

    async def _ask(self, address: Address, queries: Sequence[Query], give: Callable[[Reply], Awaitable[None]]) -> None:
        """Give a reply to every query."""
        from openai import AsyncOpenAI

        waiting = iter(queries)
        own = pace.Pace(self.concurrency, self.requests_per_minute, self.tokens_per_minute)
        http = pace.client(own, self.timeout, self.max_tokens)
        silent = unfound = asked = 0

        async def work(client: AsyncOpenAI) -> None:
            nonlocal silent, unfound, asked
            for query in waiting:
                reply = await self._call(client, address, query)
                silence, asked = reply.detail.get("silence"), asked + 1
                silent = silent + 1 if silence else 0
                unfound = unfound + 1 if silence == fault.NO_CONNECTION else 0
                if silent >= fault.SILENT or (unfound and asked == len(queries)):
                    raise self._peer(address).silent(str(reply.detail["error"]), self._where())
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

        start, peer = time.perf_counter(), self._peer(address)
        try:
            made: ChatCompletion = await client.chat.completions.create(**self._body(address, query))
            return answer.reply(query.id, made, time.perf_counter() - start)
        except openai.APIError as error:
            finish, said = fault.finish(error), peer.reason(error)
            if finish == "error" and (advice := peer.advice(error)):
                raise peer.refused(said, advice) from None
            detail = {"error": said, "silence": fault.silence(error)}
            return Reply(query.id, "", finish, 0, 0, time.perf_counter() - start, detail)

    def _body(self, address: Address, query: Query) -> dict[str, Any]:
        """Return what is sent for one query."""
        return {"model": address.model, **self.request(query), **self._decoding()}

    def _peer(self, address: Address) -> fault.Peer:
        return fault.Peer(self.label, address.url, address.key, self._variable())

    def _where(self) -> str:
        """Return what to do about a server that is not there."""
        if isinstance(self.endpoint, Loopback):
            return f"see its log in {self.endpoint.cache}/servers"
        return "start it or correct weights.gpt.endpoint.url"

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
