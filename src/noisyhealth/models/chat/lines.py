"""The lines of a batch's files: a request each in what goes out, what became of it in what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from noisyhealth.models.chat import answer, fault
from noisyhealth.records import Reply

if TYPE_CHECKING:
    from openai import APIError

ROUTE: Final = "/v1/chat/completions"


def line(query: str, body: Mapping[str, object]) -> bytes:
    """Return the line that asks for a query's reply."""
    return json.dumps({"custom_id": query, "method": "POST", "url": ROUTE, "body": body}).encode() + b"\n"


def cut(lines: Mapping[str, bytes], requests: int, size: int) -> Iterator[dict[str, bytes]]:
    """Yield the lines in parts of at most so many lines and bytes, in order; one that is too long stands alone.

    >>> [list(part) for part in cut({"a": b"12", "b": b"34", "c": b"5"}, 9, 4)]
    [['a', 'b'], ['c']]
    """
    part: dict[str, bytes] = {}
    held = 0
    for key, line in lines.items():
        if part and (len(part) == requests or held + len(line) > size):
            yield part
            part, held = {}, 0
        part[key] = line
        held += len(line)
    if part:
        yield part


def read(content: bytes) -> dict[str, dict[str, Any]]:
    """Return the lines of a batch's output by the query they answer, without those that cannot be read."""
    found = {}
    for line in content.split(b"\n"):
        with suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict) and isinstance(row.get("custom_id"), str):
                found[row["custom_id"]] = row
    return found


def taken(query: str, row: Mapping[str, Any]) -> Reply | APIError | str:
    """Return what a line of a batch's output has for a query: a reply, the server's error, or why there is neither."""
    from openai.types.chat import ChatCompletion

    response, error = row.get("response"), row.get("error")
    if not isinstance(response, dict):
        return f"{error.get('code')}: {error.get('message')}" if isinstance(error, dict) else "a line without a reply"
    status, body = response.get("status_code"), response.get("body")
    if isinstance(status, int) and status >= 400:
        return fault.of_response(status, body)
    if not (isinstance(body, dict) and answer.is_answer(body)):
        return f"the server sent no message but {str(body)[:100]!r}"
    return answer.reply(query, ChatCompletion.model_construct(**body), 0.0)
