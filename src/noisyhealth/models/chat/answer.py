"""What a server sent for one text, as a reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noisyhealth.records import Reply

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion


def is_answer(body: object) -> bool:
    """Return whether there is a message in the body of a response, and nothing that `reply` could not read.

    >>> is_answer({"choices": [{"message": {"content": None}}]}), is_answer({"choices": []})
    (True, False)
    """
    choices = body.get("choices") if isinstance(body, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not (isinstance(body, dict) and isinstance(first, dict) and isinstance(message, dict)):
        return False
    said = (message.get("content"), message.get("refusal"), first.get("finish_reason"))
    return all(isinstance(one, str | None) for one in said) and _is_usage(body.get("usage"))


def _is_usage(usage: object) -> bool:
    """Return whether a response's usage is nothing, or has whole numbers of tokens or leaves them out."""
    if not isinstance(usage, dict):
        return usage is None
    tokens = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    return all(one is None or (isinstance(one, int) and one >= 0) for one in tokens)


def reply(query: str, made: ChatCompletion, seconds: float) -> Reply:
    """Return what the model wrote to a query or, where it would not write, its refusal.

    Where the server did not count tokens, they are 0 and `detail["usage"]` is "unknown".
    """
    choice, usage = made.choices[0], made.usage
    text, refusal = choice.message.content or "", choice.message.refusal or ""
    prompt_tokens, reply_tokens = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
    counted = bool(prompt_tokens) and reply_tokens is not None  # no prompt has 0 tokens
    return Reply(
        query,
        text or refusal,
        "refusal" if refusal and not text else choice.finish_reason or "unknown",
        prompt_tokens or 0,
        reply_tokens or 0,
        seconds,
        {
            "server_model": made.model,
            "completion_id": made.id,
            # What the provider's support asks for; a reply that came by batch has none.
            "request_id": getattr(made, "_request_id", None),
            "fingerprint": made.system_fingerprint,
            **({} if counted else {"usage": "unknown"}),
        },
    )
