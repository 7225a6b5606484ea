"""What a server's errors mean: how a reply ends, whether any call could do better, and what may be told of them."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import mktime_tz, parsedate_tz
from typing import TYPE_CHECKING

from noisyhealth.errors import RefusedError
from noisyhealth.models.chat import pace

if TYPE_CHECKING:
    from openai import APIError, APIStatusError

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
NO_CONNECTION = "no connection"
SILENT = 8  # calls in a row that reach nobody, retries included, after which no further one is tried
_LONGEST_WAIT = 120.0  # seconds; the OpenAI client does not retry where a server asks for more
SETTING = "change the setting that it names, under model, prompt or weights.gpt"
TOP_UP = "top up the account or raise its limit"


@dataclass(frozen=True)
class Peer:
    """The server at the other end, as an error tells of it. `variable`: what holds the key, in words."""

    label: str
    url: str
    key: str = field(repr=False)
    variable: str

    def reason(self, error: Exception) -> str:
        """Return the error's kind and its first line, without the key."""
        import httpx2

        if isinstance(error.__cause__, httpx2.DecodingError):
            error = error.__cause__  # "Connection error." says less
        return f"{type(error).__name__}: {self.told(str(error))}"

    def told(self, said: str) -> str:
        """Return the first line of what a server said, without the key."""
        return masked(said, self.key).partition("\n")[0][:300]

    def advice(self, error: APIError) -> str:
        """Return what to do where no further call could do better, "" where one could."""
        import openai

        if not isinstance(error, openai.APIStatusError):
            return ""
        if pace.used_up(error.response):
            return TOP_UP
        wait = _wait(error)
        advice = {
            401: f"set {self.variable} to a key that it accepts",
            403: f"set {self.variable} to a key that may use the model, or change weights.gpt.endpoint.model",
            404: "check weights.gpt.endpoint.model and weights.gpt.endpoint.url",
            408: "",
            409: "",
            429: f"wait the {wait:.0f} s that it asks for" if wait > _LONGEST_WAIT else "",
        }
        return advice.get(error.status_code, SETTING if 400 <= error.status_code < 500 else "")

    def refused(self, said: str, advice: str) -> RefusedError:
        """Return that the server refuses to answer, with its words and what to do."""
        return RefusedError(
            f"{self.label} at {self.url} refuses to answer: {said.rstrip('.')}; {advice}, "
            "then run the same command again: what was answered is kept"
        )

    def silent(self, said: str, advice: str) -> RefusedError:
        """Return that no server answers, with what to do."""
        return RefusedError(
            f"{self.label}: no server answers at {self.url} ({said.rstrip('.')}); {advice}, "
            "then run the same command again: what was answered is kept"
        )


def finish(error: APIError) -> str:
    """Return how a reply that an error took ends: "error", or what this text alone is refused for."""
    status = getattr(error, "status_code", 0)
    if status == 413:
        return "length"
    said = f"{error.code} {error.type} {error.message}".lower() if status == 400 else ""
    return next((end for sign, end in _OF_THIS_TEXT.items() if sign in said), "error")


def silence(error: APIError) -> str:
    """Return how there was no word of a server, not even a wrong one; "" where there was one."""
    import httpx2
    import openai

    cause = error.__cause__
    if not isinstance(error, openai.APIConnectionError) or isinstance(cause, httpx2.DecodingError):
        return ""
    return NO_CONNECTION if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout) else "broken or too slow"


def of_response(status: int, body: object) -> APIStatusError:
    """Return the error that a response is, which came inside another one: a line of a batch."""
    import httpx2
    import openai

    response = httpx2.Response(status, json=body, request=httpx2.Request("POST", "/v1/chat/completions"))
    inner = body.get("error", body) if isinstance(body, dict) else body
    return openai.APIStatusError(f"Error code: {status} - {body}", response=response, body=inner)


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


def _wait(error: APIStatusError) -> float:
    """Return the seconds that the server asks to wait; it may give milliseconds or a date (RFC 9110, 10.2.3)."""
    headers = error.response.headers
    with suppress(KeyError, ValueError):
        return float(headers["retry-after-ms"]) / 1000
    given = headers.get("retry-after", "")
    with suppress(ValueError):
        return float(given)
    date = parsedate_tz(given)
    return mktime_tz(date) - time.time() if date else 0.0
