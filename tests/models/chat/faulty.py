"""A chat-completions server on loopback that fails by seed, counts what it did, and otherwise echoes.

    python tests/models/chat/faulty.py --latency 0.05

serves without a fault, says its address and ends with its standard input.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from threading import Thread
from typing import Any

WAIT = 0.4  # seconds that a 429 asks for
SLOW = 30.0  # seconds: longer than any test waits


@dataclass(frozen=True)
class Answer:
    """What a call gets: a status, a body with {text} and {authorization} filled in, and how much of it."""

    body: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: float = 1.0  # fraction of the body; after less than all of it the connection breaks
    seconds: float = 0.0


def error(status: int, message: str, code: str | None = None, **headers: str) -> Answer:
    """Return a refusal as the API words it, by a server that repeats the key."""
    said = {"message": f"{message} {{authorization}}", "type": code, "code": code}
    return Answer({"error": said}, status, {name.replace("_", "-"): value for name, value in headers.items()})


def completion(content: str | None = "Answer: {text}", finish: str | None = "stop", **changed: object) -> Answer:
    """Return a reply as the API words it."""
    message = {"role": "assistant", "content": content, "refusal": None}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "server-model"}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return Answer({**whole, "choices": [choice], "usage": usage, **changed})


RIGHT = completion()
# What a server says that holds a reply to the schema of the request.
OBJECT = '{"answer": "{text}", "justification": "none"}'

# After these the same question may be asked again.
PASSING = {
    "429": error(429, "slow down", "rate_limit_exceeded"),
    "429 wait": error(429, "slow down", "rate_limit_exceeded", retry_after=str(WAIT)),
    "500": error(500, "oops"),
    "503": error(503, "overloaded"),
    "slow": Answer("", seconds=SLOW),
    "cut": Answer(completion().body, sent=0.5),
    "cut before a word": Answer("", sent=0.0),
    "no JSON": Answer('{"id": "chatcmpl-1", "choi'),
    "a page": Answer("<html>Bad gateway {authorization}</html>", headers={"content-type": "text/html"}),
    "no choices": completion(choices=[]),
    "no message": completion(choices=[{"index": 0, "message": None, "finish_reason": "stop"}]),
    "an error with status 200": Answer({"error": {"message": "overloaded {authorization}"}}),
}
# These are replies, and end as they say.
REPLIES = {
    "empty": (completion(""), "", "stop"),
    "none": (completion(None), "", "stop"),
    "length": (completion("Answer: {text} and", "length"), "Answer: {text} and", "length"),
    "no finish": (completion(finish=None), "Answer: {text}", "unknown"),
    "other model": (completion(model="another-model"), "Answer: {text}", "stop"),
    "no usage": (completion(usage=None), "Answer: {text}", "stop"),
}
# After these no question need be asked.
FINAL = {
    "quota": error(429, "You exceeded your current quota.", "insufficient_quota"),
    "unknown model": error(404, "The model does not exist.", "model_not_found"),
    "key": error(401, "Incorrect API key provided:", "invalid_api_key"),
}
ALL = {**PASSING, **{name: answer for name, (answer, _, _) in REPLIES.items()}, **FINAL}


@dataclass
class Faulty:
    """The server. `shares`: the fraction of requests that meet each fault; a text meets `most` in all.

    What a request meets depends on seed, text and try alone, not on the order of arrival. `bears`: requests under
    way beyond which every one gets a 429.
    """

    seed: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)
    most: int = 3
    latency: float = 0.0
    bears: float = float("inf")
    url: str = ""
    met: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[str]] = field(default_factory=dict)  # by text, in turn
    calls: list[tuple[float, str, int]] = field(default_factory=list)  # when, which text, how many under way with it
    early: list[str] = field(default_factory=list)  # texts asked again before the wait was over
    keys: set[str] = field(default_factory=set)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    _under_way: int = 0
    _free: dict[str, float] = field(default_factory=dict)

    def texts(self, names: Sequence[str]) -> set[str]:
        """Return the texts that have met one of the faults."""
        return {text for text, met in self.faults.items() if set(met) & set(names)}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; returns whether the connection stays."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        text, key = body["messages"][-1]["content"], headers.get("authorization", "")
        self.bodies.append(body)
        answer = self._meet(text, key)
        if answer is RIGHT and "response_format" in body:
            answer = completion(OBJECT)
        try:
            if (seconds := answer.seconds or self.latency) and await _gone(reader, seconds):
                return False
        finally:
            self._under_way -= 1  # before the answer goes: who has it may send the next
        whole = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        raw = whole.replace("{text}", json.dumps(text)[1:-1]).replace("{authorization}", key).encode()
        told = {"content-type": "application/json", "content-length": str(len(raw)), **answer.headers}
        head = f"HTTP/1.1 {answer.status} X\r\n" + "".join(f"{n}: {v}\r\n" for n, v in told.items()) + "\r\n"
        writer.write((head.encode() + raw[: int(answer.sent * len(raw))]) if answer.sent else b"")
        await writer.drain()
        return answer.sent == 1.0

    def _meet(self, text: str, key: str) -> Answer:
        """Return what one more request gets, put on record."""
        self._under_way += 1
        self.keys.add(key)
        self.calls.append((time.monotonic(), text, self._under_way))
        if time.monotonic() < self._free.get(text, 0.0):
            self.early.append(text)
        name = "429" if self._under_way > self.bears else self._draw(text)
        if not name:
            return RIGHT
        self.met[name] += 1
        self.faults.setdefault(text, []).append(name)
        if name == "429 wait":
            self._free[text] = time.monotonic() + WAIT
        return ALL[name]

    def _draw(self, text: str) -> str:
        met = self.faults.get(text, [])
        if len(met) >= self.most:
            return ""
        draw = Random(f"{self.seed} {text} {len(met)}")
        names = [*self.shares, ""]
        return draw.choices(names, [*self.shares.values(), 1 - sum(self.shares.values())])[0]


async def _gone(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Wait, and return whether the other end did not."""
    try:
        return not await asyncio.wait_for(reader.read(1), seconds)
    except TimeoutError:
        return False


@contextmanager
def running(faulty: Faulty) -> Iterator[Faulty]:
    """Serve in a thread on a free port."""
    loop = asyncio.new_event_loop()

    async def start() -> asyncio.Server:
        server = await asyncio.start_server(faulty.serve, "127.0.0.1", 0, backlog=1024)
        faulty.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        return server

    async def end() -> None:
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = loop.run_until_complete(start())
    thread = Thread(target=loop.run_forever, name="faulty server", daemon=True)
    thread.start()
    try:
        yield faulty
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def main() -> None:
    """Serve without a fault until the standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    with running(Faulty(latency=parser.parse_args().latency)) as faulty:
        print(faulty.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
