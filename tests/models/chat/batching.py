"""A server on loopback with OpenAI's batch API: it fails as told, and counts what it would be paid for."""

import json
import os
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

UPLOAD, CREATE, LIST, LOOK, CONTENT, DELETE = ROUTES = (
    "POST files",
    "POST batches",
    "GET batches",
    "GET batch",
    "GET content",
    "DELETE file",
)
# What one request may meet; after "cut after" the server has done what was asked.
PASSING = ("500", "429", "cut before", "cut after", "a page", "no name")
# What a file may meet besides: a body that was cut where nobody sees it.
TORN = ("empty", "half of the lines")
PAGES = {"a page": b"<html>Bad gateway</html>", "no name": b'{"error": {"message": "overloaded"}}'}


def error(status: int, message: str, code: str | None = None) -> tuple[int, dict[str, Any]]:
    """Return a refusal as the API words it, by a server that repeats the key."""
    return status, {"error": {"message": f"{message} {{authorization}}", "type": code, "code": code}}


REFUSALS = {
    "401": error(401, "Incorrect API key provided:", "invalid_api_key"),
    "404": error(404, "There is no such thing."),
    "quota": error(429, "You exceeded your current quota.", "insufficient_quota"),
    "500": error(500, "oops"),
    "429": error(429, "slow down", "rate_limit_exceeded"),
}


def completion(text: str) -> dict[str, Any]:
    """Return a reply as the API words it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "server-model",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def torn(content: bytes, met: str) -> bytes:
    """Return what is left of a file's content after what it met."""
    rows = content.splitlines(keepends=True)
    return {"empty": b"", "half of the lines": b"".join(rows[: len(rows) // 2])}.get(met, content)


@dataclass
class Batching:
    """The server. `faults`: by route, what its next requests meet, in turn.

    `seed`, `share`: the fraction of requests that meet a fault that passes. `looks`: how often a batch is looked at
    before it ends, as `ending` says (the next ones as `endings` say); a batch that did not complete has the replies of
    its first `done` texts. `counting`: whether a batch says how many lines it has. `unseen`: first lists
    that show no batch yet. `lines`: by text, or by place from a
    batch's end, what stands in the output instead of a reply: a status and body, a line, or None for no line.
    """

    seed: int = 0
    share: float = 0.0
    looks: int = 1
    ending: str = "completed"
    endings: list[str] = field(default_factory=list)
    done: int = 10**9
    counting: bool = True
    unseen: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    lines: dict[str | int, Any] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    url: str = ""
    paid: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    texts_asked: dict[str, list[str]] = field(default_factory=dict)
    served: list[tuple[str, str]] = field(default_factory=list)  # routes, and the faults that they met
    log: list[str] = field(default_factory=list)  # the routes, in the order of their requests
    victim: int = 0  # the process that dies of "kill before" and "kill after"
    latency: float = 0.0  # seconds
    keys: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def meet(self, route: str) -> str:
        """Return what one more request meets, "" for nothing."""
        self.requests[route] += 1
        self.log.append(route)
        if self.faults.get(route):
            return self.faults[route].pop(0)
        draw = Random(f"{self.seed} {route} {self.requests[route]}")
        return draw.choice(PASSING + TORN * (route == CONTENT)) if draw.random() < self.share else ""

    def upload(self, content: bytes, kind: str) -> dict[str, Any]:
        """Keep a file."""
        boundary = b"--" + kind.partition("boundary=")[2].encode()
        fields = {}
        for part in content.split(boundary)[1:-1]:
            head, _, body = part.strip(b"\r\n").partition(b"\r\n\r\n")
            fields[head.partition(b'name="')[2].partition(b'"')[0]] = body
        assert fields[b"purpose"] == b"batch"
        name = f"file-{len(self.files) + 1}"
        self.files[name] = fields[b"file"]
        return {"id": name, "object": "file", "purpose": "batch", "bytes": len(fields[b"file"])}

    def create(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Begin a batch."""
        assert (asked["endpoint"], asked["completion_window"]) == ("/v1/chat/completions", "24h")
        assert asked["input_file_id"] in self.files
        name = f"batch_{len(self.batches) + 1}"
        ending = self.endings.pop(0) if self.endings else self.ending
        fixed = {
            "object": "batch",
            "created_at": int(time.time()),
            "completion_window": "24h",
            "endpoint": asked["endpoint"],
        }
        self.batches[name] = {
            **fixed,
            "id": name,
            "input_file_id": asked["input_file_id"],
            "metadata": asked["metadata"],
            "status": "validating",
            "looks": self.looks,
            "ending": ending,
        }
        self.texts_asked[name] = [text for _, text in self.texts(name)]
        if ending != "failed":
            self.paid.update(self.texts_asked[name][: self.done])
        return self.batches[name]

    def texts(self, batch: str) -> list[tuple[str, str]]:
        """Return what a batch was asked: custom ids and last messages."""
        rows = [json.loads(line) for line in self.files[self.batches[batch]["input_file_id"]].splitlines()]
        assert all((row["method"], row["url"]) == ("POST", "/v1/chat/completions") for row in rows)
        return [(row["custom_id"], row["body"]["messages"][-1]["content"]) for row in rows]

    def look(self, name: str) -> dict[str, Any]:
        """Return a batch, nearer to its end."""
        batch = self.batches[name]
        if batch["status"] == batch["ending"]:
            return batch
        if batch["looks"]:
            batch["looks"] -= 1
            batch["status"] = "in_progress"
            return batch
        batch["status"] = batch["ending"]
        if batch["ending"] == "failed":
            batch["errors"] = {"object": "list", "data": self.errors}
            return batch
        found: dict[str, list[str]] = {"output_file_id": [], "error_file_id": []}
        batch["request_counts"] = {"total": len(self.texts(name)), "completed": 0, "failed": 0}
        asked = self.texts(name)
        for at, (key, text) in enumerate(asked):
            given = self.lines.get(text, self.lines.get(at - len(asked), (200, completion(f"Answer: {text}"))))
            kind, line = self.line(batch["ending"], key, given, at)
            found[kind] += [line] if line else []
            if line and at < self.done:
                batch["request_counts"]["completed" if kind == "output_file_id" else "failed"] += 1
        if not self.counting:
            del batch["request_counts"]
        for kind, lines in found.items():
            if lines:
                batch[kind] = f"file-{name}-{kind}"
                self.files[batch[kind]] = "\n".join(lines[::-1]).encode()  # in no order
        return batch

    def line(self, ending: str, key: str, given: Any, at: int) -> tuple[str, str]:
        """Return the file and the line in it that a text has in the end."""
        whole: dict[str, Any] = {"id": f"batch_req_{key}", "custom_id": key, "response": None, "error": None}
        if at >= self.done:
            said = {"code": "batch_expired", "message": "This request could not be executed before it expired."}
            return "error_file_id", json.dumps({**whole, "error": said}) if ending == "expired" else ""
        if given is None or isinstance(given, str):
            return "output_file_id", (given or "").replace("{key}", key)
        status, body = given
        line = json.dumps({**whole, "response": {"status_code": status, "request_id": "r", "body": body}})
        return "output_file_id" if status < 400 else "error_file_id", line


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: Batching

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0].removeprefix("/v1/").split("/")
        after = self.path.partition("after=")[2].partition("&")[0]
        state, key = self.state, self.headers["authorization"]
        time.sleep(state.latency)
        with state.lock:
            state.keys.add(key)
            does: Any
            match (self.command, *path):
                case ("POST", "files"):
                    route, does = UPLOAD, lambda: state.upload(raw, self.headers["content-type"])
                case ("POST", "batches"):
                    route, does = CREATE, lambda: state.create(json.loads(raw))
                case ("GET", "batches"):
                    route, does = LIST, lambda: self._page(after)
                case ("GET", "batches", name):
                    route, does = LOOK, lambda: state.look(name)
                case ("GET", "files", name, "content"):
                    route, does = CONTENT, lambda: state.files[name].replace(b"{authorization}", key.encode())
                case ("DELETE", "files", name):
                    route, does = DELETE, lambda: {"id": name, "deleted": bool(state.files.pop(name))}
                case _:
                    self._send(404, b"{}")
                    return
            met = state.meet(route)
            assert met in {"", *PASSING, *TORN, *REFUSALS, "kill before", "kill after"}
            state.served += [(route, met)] if met else []
            if met in REFUSALS:
                status, body = REFUSALS[met]
                self._send(status, json.dumps(body).replace("{authorization}", key).encode())
                return
            if met in PAGES:
                does()
                self._send(200, PAGES[met])
                return
            made = b"" if met.endswith("before") else does()
            if met.startswith("kill"):
                while not state.victim:
                    time.sleep(0.001)
                os.kill(state.victim, signal.SIGKILL)
                state.victim = 0
            whole = made if isinstance(made, bytes) else json.dumps(made).encode()
        if not met.startswith("kill"):
            self._send(200, torn(whole, met), cut=met.startswith("cut"))

    do_GET = do_POST = do_DELETE = _answer

    def _page(self, after: str) -> dict[str, Any]:
        """Return two batches, the newest first."""
        names = [] if self.state.requests[LIST] <= self.state.unseen else list(self.state.batches)[::-1]
        names = names[names.index(after) + 1 :] if after else names
        page = [self.state.batches[name] for name in names[:2]]
        return {"object": "list", "data": page, "has_more": len(names) > 2}

    def _send(self, status: int, raw: bytes, cut: bool = False) -> None:
        if cut:
            # Half of it, so that the other end has no word of whether it was done.
            self.close_connection = True
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(raw) + 9}\r\n\r\n"
            self.wfile.write(head.encode() + raw)
            return
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        if status in (429, 500):
            self.send_header("retry-after", "0.01")
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: connections break on purpose."""


@contextmanager
def running(state: Batching) -> Iterator[Batching]:
    """Serve in a thread on a free port."""

    class Handler(_Handler):
        pass

    Handler.state = state
    made = _Server(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{made.server_port}/v1"
    thread = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        made.shutdown()
        made.server_close()
        thread.join()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # connections that broke on purpose
