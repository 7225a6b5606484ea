"""What a server sent for one text, as a reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noisyhealth.records import Reply

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion


def is_answer(body: object) -> bool:
    """Return whether there is a message in the body of a response.

    >>> is_answer({"choices": [{"message": {"content": None}}]}), is_answer({"choices": []})
    (True, False)
    """
    choices = body.get("choices") if isinstance(body, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return isinstance(message, dict) and isinstance(message.get("content"), str | None)


def reply(query: str, made: ChatCompletion, seconds: float) -> Reply:
    """Return what the model wrote to a query or, where it would not write, its refusal."""
    choice, usage = made.choices[0], made.usage
    text, refusal = choice.message.content or "", choice.message.refusal or ""
    return Reply(
        query,
        text or refusal,
        "refusal" if refusal and not text else choice.finish_reason or "unknown",
        (usage and usage.prompt_tokens) or 0,
        (usage and usage.completion_tokens) or 0,
        seconds,
        {"server_model": made.model, "request_id": made.id, "fingerprint": made.system_fingerprint},
    )
