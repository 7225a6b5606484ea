"""A model behind a chat-completions server: the study's GPT."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from noisyhealth.errors import CallError
from noisyhealth.models.endpoint import Address, Endpoint
from noisyhealth.records import Example, Query, Reply, Training
from noisyhealth.text.prompt import Prompt, Wording

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletion


@dataclass
class Chat:
    """Asks a server, many questions at once, each in a conversation of its own.

    `max_tokens`: tokens a reply may have. `concurrency`: calls under way at once. `timeout`: seconds
    until a call is given up. `retries`: further tries after a time-out, a 429 or a 5xx.
    """

    name: str
    endpoint: Endpoint
    prompt: Prompt
    max_tokens: int
    stop: Sequence[str]
    temperature: float
    frequency_penalty: float
    seed: int
    concurrency: int
    timeout: float
    retries: int
    _wording: Wording | None = field(default=None, init=False)
    _shots: tuple[Example, ...] = field(default=(), init=False)

    @property
    def label(self) -> str:
        """Who answers, with the weights that do."""
        return f"{self.name}({self.endpoint.name})"

    def check(self) -> None:
        """Raise WeightsError when the endpoint cannot be used."""
        self.endpoint.check()

    def fit(self, wording: Wording, training: Training) -> None:
        """Take the shots from the pool for prompts."""
        self._wording, self._shots = wording, self.prompt.choose(training.prompt)

    def signature(self) -> Mapping[str, object]:
        """Return the endpoint and the decoding."""
        return {"model": self.name, "endpoint": self.endpoint.identity, **self._decoding()}

    def request(self, query: Query) -> Mapping[str, object]:
        """Return the conversation."""
        if self._wording is None:
            raise RuntimeError("fit comes before a query: the shots are not chosen yet")
        return {"messages": self.prompt.messages(self._wording, self._shots, query)}

    def notes(self) -> Mapping[str, str]:
        """Return nothing: all there is to tell stands in the signature."""
        return {}

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        """Yield replies as they arrive; a call that no retry saved gives a reply with finish "error".

        Raises CallError when the server refuses the key or the request itself: no further call could do
        better.
        """
        from openai import OpenAI

        if not queries:
            return
        address = self.endpoint.open()
        client = OpenAI(base_url=address.url, api_key=address.key, timeout=self.timeout, max_retries=self.retries)
        waiting, answered = deque(queries), SimpleQueue[Reply | Exception]()
        working = deque(range(min(self.concurrency, len(queries))))

        def work() -> None:
            with suppress(IndexError):  # nobody waits any more
                while True:
                    answered.put(self._call(client, address, waiting.popleft()))
            working.pop()
            if not working:
                client.close()  # by the last one: a client that closes under a call leaves that call hanging

        for _ in list(working):
            # Daemons: interrupted, the process does not stay for calls that nobody wants any more.
            Thread(target=work, name="chat call", daemon=True).start()
        try:
            for _ in queries:
                reply = answered.get()
                if isinstance(reply, Exception):
                    raise reply
                yield reply
        finally:
            waiting.clear()

    def _call(self, client: OpenAI, address: Address, query: Query) -> Reply | Exception:
        """Return one reply, one that says why there is none, or what ends all calls."""
        import openai

        start = time.perf_counter()
        try:
            body: dict[str, Any] = {"model": address.model, **self.request(query), **self._decoding()}
            made: ChatCompletion = client.chat.completions.create(**body)
            return _reply(query, made, time.perf_counter() - start)
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.BadRequestError) as error:
            return CallError(f"{self.label} at {address.url} refuses to answer: {_reason(error, address.key)}")
        except (openai.APIError, ValueError) as error:  # the client raises ValueError itself where a body is no JSON
            seconds = time.perf_counter() - start
            return Reply(query.id, "", "error", 0, 0, seconds, {"error": _reason(error, address.key)})
        except Exception as error:
            return error

    def _decoding(self) -> dict[str, object]:
        return {
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "frequency_penalty": self.frequency_penalty,
            "seed": self.seed,
            **({"stop": list(self.stop)} if self.stop else {}),
        }


def _reply(query: Query, made: ChatCompletion, seconds: float) -> Reply:
    """Return what the server sent; raises ValueError where that is no message, and so no answer."""
    try:
        choice, usage = made.choices[0], made.usage
        detail = {"server_model": made.model, "request_id": made.id, "fingerprint": made.system_fingerprint}
        text, finish = choice.message.content or "", choice.finish_reason
    except (AttributeError, IndexError, TypeError):
        raise ValueError(f"the server sent no message but {str(made)[:100]!r}") from None
    return Reply(
        query.id,
        text,
        finish,
        usage.prompt_tokens if usage else 0,
        usage.completion_tokens if usage else 0,
        seconds,
        detail,
    )


def _reason(error: Exception, key: str) -> str:
    """Return the error's kind and its first line, without the key: a server may repeat it."""
    first = str(error).replace(key, "[key]").partition("\n")[0]
    return f"{type(error).__name__}: {first[:300]}"
