"""The servers of embedded weights on loopback that a sweep starts, shares and ends; `server` is what runs in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock

from noisyhealth.errors import WeightsError
from noisyhealth.models.chat.server import Served, alive

OWNER = "NOISYHEALTH_OWNER"  # the process whose end ends the servers: a sweep's first one
_START_SECONDS = 180.0


def owner() -> int:
    """Return the process that owns the servers: the sweep's, or this one outside a sweep."""
    return int(os.environ.get(OWNER, os.getpid()))


def ensure(served: Served, cache: str) -> str:
    """Return the base URL of the owner's server for these weights, started if it does not run yet."""
    state = _state_file(served, Path(cache))
    state.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{state}.lock"):
        if running := _read(state):
            return str(running["url"])
        state.unlink(missing_ok=True)
        return _start(served, state)


def stop_all(cache: str) -> None:
    """End every server this process owns."""
    for state in (Path(cache) / "servers").glob(f"{owner()}-*.json"):
        if running := _read(state):
            with suppress(ProcessLookupError):
                os.kill(int(running["pid"]), 15)
        state.unlink(missing_ok=True)
        Path(f"{state}.lock").unlink(missing_ok=True)


def _state_file(served: Served, cache: Path) -> Path:
    return cache / "servers" / f"{owner()}-{sha256(repr(served).encode()).hexdigest()[:12]}.json"


def _read(state: Path) -> dict[str, Any] | None:
    """Return a live server's address and process, or None."""
    try:
        content: dict[str, Any] = json.loads(state.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return content if alive(int(content["pid"])) else None


def _start(served: Served, state: Path) -> str:
    """Start a server and wait until it has written its address."""
    log = state.with_suffix(".log")
    command = [sys.executable, "-m", "noisyhealth.models.chat.server", str(served.folder), "--name", served.name]
    command += ["--dtype", served.dtype, "--batch-tokens", str(served.batch_tokens)]
    command += ["--batch-size", str(served.batch_size), "--owner", str(owner()), "--state", str(state)]
    with log.open("wb") as out:
        # A session of its own: Ctrl-C reaches the sweep alone, which then ends the server in order.
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if running := _read(state):
            return str(running["url"])
        if process.poll() is not None:
            break
        time.sleep(0.05)
    process.kill()
    tail = log.read_text(errors="replace")[-600:]
    raise WeightsError(f"the loopback server of {served.name} did not start; its log {log} ends with: {tail}")
