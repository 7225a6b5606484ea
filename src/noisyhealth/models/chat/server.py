"""An OpenAI-compatible server over embedded weights, on loopback, for the time of one sweep.

    python -m noisyhealth.models.chat.server FOLDER --name SmolLM2-135M --owner PID --state FILE

It answers `/v1/chat/completions` and `/v1/models` in batches. It ends when its owner does, however
that ended. It stands for a real server so that the same client code runs as against OpenAI.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from noisyhealth.models.local.decoding import Decoding

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse


@dataclass(frozen=True)
class Served:
    """What a server serves; two sweeps' cells that want the same share it."""

    folder: Path
    name: str
    dtype: str
    batch_tokens: int
    batch_size: int


class _Batcher:
    """Takes requests one by one, answers those that wait together in one batch."""

    def __init__(self, served: Served) -> None:
        from noisyhealth.models.local import causal

        dtype = causal.pick_dtype(served.dtype)
        self.lm = causal.load(served.folder, dtype, served.batch_tokens, served.batch_size)
        self.size = served.batch_size
        self._waiting: asyncio.Queue[_Call] = asyncio.Queue()

    async def ask(self, body: dict[str, Any], decoding: Decoding) -> dict[str, Any]:
        """Return the completion of one request, as the API gives it."""
        call = _Call(body, decoding, asyncio.get_running_loop().create_future())
        await self._waiting.put(call)
        result: dict[str, Any] = await call.done
        return result

    async def run(self) -> None:
        """Answer batches for ever."""
        while True:
            calls = [await self._waiting.get()]
            await asyncio.sleep(0.01)  # calls sent together arrive together
            while not self._waiting.empty() and len(calls) < 4 * self.size:
                calls.append(self._waiting.get_nowait())
            for group in _alike(calls):
                await asyncio.to_thread(self._answer, group, asyncio.get_running_loop())

    def _answer(self, calls: list[_Call], loop: asyncio.AbstractEventLoop) -> None:
        """Answer calls of one decoding; those whose messages make no prompt fail alone."""
        sound, prompts = list[_Call](), list[list[int]]()
        for call in calls:
            try:
                prompts.append(self._prompt(call.body))
                sound.append(call)
            except Exception as error:  # whatever a template raises
                said = f"messages: {type(error).__name__}: {error}"
                loop.call_soon_threadsafe(_fail, call, _MalformedError(said))
        if sound:
            self._generate(sound, prompts, loop)

    def _prompt(self, body: dict[str, Any]) -> list[int]:
        """Return the tokens of a request's conversation."""
        tokenizer = self.lm.tokenizer
        text = tokenizer.apply_chat_template(body["messages"], tokenize=False, add_generation_prompt=True)
        tokens: list[int] = tokenizer(text, add_special_tokens=False).input_ids
        return tokens

    def _generate(self, calls: list[_Call], prompts: list[list[int]], loop: asyncio.AbstractEventLoop) -> None:
        from noisyhealth.models.local.local import until

        try:
            decoding, tokenizer = calls[0].decoding, self.lm.tokenizer
            for made in self.lm.generate(prompts, decoding):
                call = calls[made.index]
                text = until(tokenizer.decode(made.tokens, skip_special_tokens=True), decoding.stop)
                answer = _completion(call.body, text, made.finish, len(prompts[made.index]), len(made.tokens))
                loop.call_soon_threadsafe(call.done.set_result, answer)
        except Exception as error:  # the server must outlive a bad batch; the callers get the error
            for call in calls:
                loop.call_soon_threadsafe(_fail, call, error)


class _MalformedError(ValueError):
    """A conversation that makes no prompt."""


@dataclass
class _Call:
    body: dict[str, Any]
    decoding: Decoding
    done: asyncio.Future[dict[str, Any]]


def _fail(call: _Call, error: Exception) -> None:
    if not call.done.done():
        call.done.set_exception(error)


def _alike(calls: list[_Call]) -> list[list[_Call]]:
    """Return the calls grouped by decoding: only those can share a batch."""
    groups: dict[Decoding, list[_Call]] = {}
    for call in calls:
        groups.setdefault(call.decoding, []).append(call)
    return list(groups.values())


def _decoding(body: dict[str, Any]) -> Decoding:
    """Return a request's decoding, with the API's defaults; `stop` is a string or a list of them."""
    stop = body.get("stop") or []
    return Decoding(
        max_tokens=int(body.get("max_tokens") or 256),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        temperature=1.0 if body.get("temperature") is None else float(body["temperature"]),
        frequency_penalty=float(body.get("frequency_penalty") or 0.0),
        seed=int(body.get("seed") or 0),
    )


def _completion(body: dict[str, Any], text: str, finish: str, asked: int, written: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written},
    }


def app(served: Served) -> Starlette:
    """Return the server's application; it answers to loopback host names alone."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    batcher = _Batcher(served)

    async def complete(request: Request) -> JSONResponse:
        body = await request.json()
        if body.get("model") != served.name:
            message = f"the model {body.get('model')!r} does not exist, this server has {served.name!r}"
            return JSONResponse({"error": {"message": message, "code": "model_not_found"}}, status_code=404)
        if body.get("response_format") not in (None, {"type": "text"}):
            message = "this server does not support response_format: give prompt.format=text, or a server that has it"
            error = {"message": message, "param": "response_format", "code": "unsupported_parameter"}
            return JSONResponse({"error": error}, status_code=400)
        try:
            decoding = _decoding(body)  # here, where a bad one harms no other request
        except (TypeError, ValueError) as error:
            return JSONResponse({"error": {"message": f"{type(error).__name__}: {error}"}}, status_code=400)
        try:
            return JSONResponse(await batcher.ask(body, decoding))
        except _MalformedError as error:
            return JSONResponse({"error": {"message": str(error), "param": "messages"}}, status_code=400)
        except Exception as error:  # said to the caller as the API says it
            return JSONResponse({"error": {"message": f"{type(error).__name__}: {error}"}}, status_code=500)

    async def models(_: Request) -> JSONResponse:
        return JSONResponse({"object": "list", "data": [{"id": served.name, "object": "model"}]})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        worker = asyncio.create_task(batcher.run())
        yield
        worker.cancel()

    return Starlette(
        routes=[Route("/v1/chat/completions", complete, methods=["POST"]), Route("/v1/models", models)],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
        lifespan=lifespan,
    )


def alive(pid: int) -> bool:
    """Return whether a process runs, as far as can be told."""
    try:
        os.kill(pid, 0)
        # A process that ended, but whose parent has not asked how, still takes signals: state Z.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except OSError:  # another user's, or a system without /proc
        return True


def _end_with(pid: int) -> None:
    """End this process soon after its owner is gone, even when that was killed."""

    def watch() -> None:
        while alive(pid):
            time.sleep(0.5)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Serve until the owner ends."""
    import uvicorn

    parser = argparse.ArgumentParser(description="Serve embedded weights as chat completions on loopback.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--owner", type=int, required=True)
    parser.add_argument("--state", type=Path, required=True)
    given = parser.parse_args()
    _end_with(given.owner)
    served = Served(given.folder, given.name, given.dtype, given.batch_tokens, given.batch_size)
    config = uvicorn.Config(app(served), host="127.0.0.1", port=0, log_level="warning")
    socket = config.bind_socket()
    socket.listen(2048)  # a call that comes before the server runs waits
    state = {"url": f"http://127.0.0.1:{socket.getsockname()[1]}/v1", "pid": os.getpid()}
    part = given.state.with_suffix(".part")
    part.write_text(json.dumps(state))
    os.replace(part, given.state)
    uvicorn.Server(config).run(sockets=[socket])


if __name__ == "__main__":
    main()
