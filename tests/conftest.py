"""What several tests need: a folder to run in, the command line, cells from the real configuration, a server."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

# Threads that wait by spinning make a shared processor ten times slower; read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "2")

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

# A shell's background job ignores Ctrl-C and hands that on; the tests of interruption would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).resolve().parents[1]
KEY = "sk-test-0123456789-never-to-be-seen"
_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache folder for the whole session, so that the GGUF is converted once.

    TEST_WEIGHTS=.cache/weights takes the converted weights from there: half a minute less for one file of tests.
    """
    folder = tmp_path_factory.mktemp("cache")
    base = tmp_path_factory.getbasetemp()
    # Workers of one session share its converted weights, and nothing else.
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    weights = Path(os.environ.get("TEST_WEIGHTS") or shared / "weights").resolve()
    weights.mkdir(exist_ok=True)
    (folder / "weights").symlink_to(weights)
    return folder


@pytest.fixture
def workspace(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working directory, with the session's cache and nobody's keys."""
    monkeypatch.chdir(tmp_path)
    for name, value in environment(shared_cache).items():
        monkeypatch.setenv(name, value)
    for name in set(os.environ) - set(environment(shared_cache)):
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def command(workspace: Path, shared_cache: Path) -> Callable[..., Ended]:
    """Run `run.py` or `analyze.py` in the workspace: `command("run.py", "model=majority")`."""

    def run(script: str, *arguments: str, **variables: str) -> Ended:
        return execute(workspace, shared_cache, script, *arguments, **variables)

    return run


@dataclass(frozen=True)
class Study:
    """A folder with a study's runs, and the command that made them."""

    folder: Path
    arguments: tuple[str, ...]
    ended: Ended


@pytest.fixture(scope="session")
def nine(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Study:
    """The study's command with the majority model on few texts, run once for the session."""
    folder = tmp_path_factory.mktemp("nine")
    grid = ("-m", "model=majority", "perturb=typo,homophone,redact", "level=low,mid,high", "data.split.test=6")
    return Study(folder, grid, execute(folder, shared_cache, "run.py", *grid))


AUDITED = (
    "-m",
    "task=sentiment,qa",
    "model=majority",
    "perturb=none,typo,redact",
    "level=low,high",
    "data.split.test=6",
)


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A folder with the study "demo" of ten cells, its report, and its archive out/demo.zip."""
    folder = tmp_path_factory.mktemp("audited")
    for script, arguments in (("run.py", (*AUDITED, "study=demo")), ("analyze.py", ("study=demo",))):
        ended = execute(folder, shared_cache, script, *arguments)
        assert ended.returncode == 0, ended.stderr
    packed = asked(folder, shared_cache, "bundle", "demo", "--to", "out")
    assert packed.returncode == 0, packed.stderr
    return folder


@pytest.fixture
def ask(audited: Path, shared_cache: Path) -> Callable[..., Ended]:
    """Run `python -m noisyhealth` in that folder: `ask("verify", "demo")`."""
    return lambda *arguments, **variables: asked(audited, shared_cache, *arguments, **variables)


def environment(cache: Path, **variables: str) -> dict[str, str]:
    """Return the environment of a command: no key, no setting of another sweep."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NOISYHEALTH_", "OPENAI_", "MLFLOW_", "HF_"))}
    return {**kept, "NOISYHEALTH_CACHE": str(cache), "OMP_NUM_THREADS": "2", **variables}


def execute(folder: Path, cache: Path, script: str, *arguments: str, **variables: str) -> Ended:
    """Run a script of the repository in a folder and wait for its end."""
    with started(folder, cache, script, *arguments, **variables) as process:
        stdout, stderr = process.communicate(timeout=300)
    return Ended(process.returncode, stdout, stderr)


def asked(folder: Path, cache: Path, *arguments: str, **variables: str) -> Ended:
    """Run `python -m noisyhealth` in a folder and wait for its end."""
    command = [sys.executable, "-m", "noisyhealth", *arguments]
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment(cache, **variables),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def started(folder: Path, cache: Path, script: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start a script of the repository in a folder, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / script), *arguments],
        cwd=folder,
        env=environment(cache, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium (`apt-get install chromium`, `pip install playwright`); where there is none, skip and say so.

    NOISYHEALTH_CHROMIUM names another binary; NOISYHEALTH_NEEDS_CHROMIUM=1 makes its absence a failure.
    """
    names = ("chromium", "chromium-browser", "google-chrome")
    binary = os.environ.get("NOISYHEALTH_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if not binary:
        _without(
            "no Chromium: install the package chromium (apt-get install chromium), or name it by NOISYHEALTH_CHROMIUM"
        )
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _without("no playwright: pip install playwright")
    with sync_playwright() as played, played.chromium.launch(executable_path=binary, args=_FLAGS) as started:
        yield started


def listening(port: int) -> set[str]:
    """Return the addresses of this machine at which a port waits for connections."""
    if not Path("/proc/net/tcp").exists():
        pytest.skip("no /proc/net/tcp: what listens cannot be listed here")
    tables = [Path("/proc/net") / name for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    places = [row[1].split(":") for row in rows if row[3] == "0A"]  # the state LISTEN
    return {
        str(ip_address(bytes.fromhex(host)[::-1])) if len(host) == 8 else f"IPv6 {host}"
        for host, at in places
        if int(at, 16) == port
    }


def _without(reason: str) -> None:
    if os.environ.get("NOISYHEALTH_NEEDS_CHROMIUM") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def configured() -> Callable[..., DictConfig]:
    """Compose the real configuration: `configured("model=gpt", "seed=3")`."""

    def composed(*overrides: str) -> DictConfig:
        with initialize_config_dir(str(REPOSITORY / "conf"), version_base="1.3"):
            return compose("config", list(overrides))

    return composed


@dataclass
class Answering:
    """A chat-completions server on loopback that answers "Answer: <last message>", after the faults it is told.

    `faults[text]` are what the first calls with that last message meet instead of an answer, in turn; those
    under "" meet every text. `calls` counts the calls by text.
    """

    url: str = ""
    faults: dict[str, list[Callable[[BaseHTTPRequestHandler], None]]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    authorisations: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, text: str) -> Callable[[BaseHTTPRequestHandler], None]:
        """Return what happens to one more call with a text."""
        with self.lock:
            self.calls[text] += 1
            waiting = self.faults.get(text) or self.faults.get("")
            return waiting.pop(0) if waiting else sends(completion(f"Answer: {text}"))


def completion(content: str | None, finish: str = "stop") -> dict[str, Any]:
    """Return a reply as the API words it."""
    message = {"role": "assistant", "content": content}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "server-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def sends(body: object, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return a handler of one call that sends a body: text as it is, anything else as JSON."""
    raw = body if isinstance(body, str) else json.dumps(body)

    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        kind = "text/html" if raw.startswith("<") else "application/json"
        for name, value in {"content-type": kind, "content-length": str(len(raw)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(raw.encode())

    return handle


def error(status: int, message: str, code: str | None = None, **headers: str) -> Callable[..., None]:
    """Return a handler that refuses as the API does; a message may hold {authorization}."""

    def handle(request: BaseHTTPRequestHandler) -> None:
        said = message.format(authorization=request.headers["authorization"])
        sends({"error": {"message": said, "code": code, "type": code}}, status, **headers)(request)

    return handle


def hangs_up(request: BaseHTTPRequestHandler) -> None:
    """Break the connection without a word."""
    request.close_connection = True
    request.connection.close()


def takes(seconds: float) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return a handler that answers late."""

    def handle(request: BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        sends(completion("late"))(request)

    return handle


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: connections break on purpose."""


@pytest.fixture
def server() -> Iterator[Answering]:
    """A fresh server for one test."""
    with serving() as state:
        yield state


@contextmanager
def serving() -> Iterator[Answering]:
    """Serve on a free port."""
    state = Answering()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            state.authorisations.add(self.headers["authorization"])
            state.next(body["messages"][-1]["content"])(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    made = _Server(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{made.server_port}/v1"
    thread = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield state
    for call in [t for t in threading.enumerate() if t.name == "chat call"]:
        call.join(10)
    made.shutdown()
    made.server_close()
    thread.join()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # connections that broke on purpose
        gc.collect()
