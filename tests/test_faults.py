"""A full disk, a locked database, a killed sweep: no half run counts as done, and nothing finished is lost."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Answering, Ended, completion, environment, sends, started

from noisyhealth.tracking.store import Store

pytestmark = pytest.mark.slow

GRID = ("model=majority", "data.split.test=6", "cache=cache")
NINE = ("perturb=typo,homophone,redact", "level=low,mid,high")


def finished(database: Path) -> dict[str, str]:
    """Return the finished cells of a store by name, and see that none is finished twice."""
    found = cells(database, "FINISHED")
    names = [run.info.run_name for run in found]
    assert len(set(names)) == len(names)
    for run in found:
        assert run.data.metrics["n"] == 6
        assert "accuracy" in run.data.metrics
    return {run.info.run_name: run.info.run_id for run in found}


def cells(database: Path, status: str) -> list[Any]:
    """Return the cells of a store that have a status."""
    store = Store(f"sqlite:///{database}", "", "noisyhealth", str(database.parent / "lock"))
    return store.runs(f"tags.kind = 'cell' and attributes.status = '{status}'")


def said(ended: Ended) -> str:
    """Return what a command said, which is never a traceback."""
    whole = ended.stdout + ended.stderr
    assert "Traceback" not in whole
    return whole


def check_files(runs: Path, run: str) -> None:
    """Check that a run's files are whole, by the hashes that it kept."""
    [folder] = runs.glob(f"*/{run}/artifacts")
    manifest = json.loads((folder / "manifest.json").read_text())["files"]
    hashes = {name: sha256((folder / name).read_bytes()).hexdigest() for name in manifest}
    assert hashes == manifest
    assert {"variants.parquet", "predictions.parquet"} <= set(hashes)


def outcome(folder: Path, name: str) -> Ended:
    """Return what `disk_full.sh` kept of a sweep."""
    code, stdout, stderr = ((folder / f"{name}.{kind}").read_text() for kind in ("code", "out", "err"))
    return Ended(int(code), stdout, stderr)


def can_mount() -> bool:
    """Return whether a small disk can be mounted here, seen by one command alone."""
    command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


needs_mounts = pytest.mark.skipif(
    not can_mount(),
    reason="this system lets nobody here mount a small disk (unshare -m, mount -t tmpfs: needs Linux and root)",
)


@needs_mounts
@pytest.mark.parametrize(
    ("rooms", "workers"),
    [("20 350", ()), ("350", ("hydra/launcher=joblib", "hydra.launcher.n_jobs=4"))],
    ids=["one process", "four workers"],
)
def test_a_full_disk_ends_a_sweep_that_goes_on_once_there_is_room(
    tmp_path: Path, shared_cache: Path, rooms: str, workers: tuple[str, ...]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    script = [str(Path(__file__).with_name("disk_full.sh")), str(disk), str(tmp_path), rooms]
    sweep = [sys.executable, str(REPOSITORY / "run.py"), "-m", *GRID, *workers]
    ended = subprocess.run(
        ["unshare", "-m", "sh", *script, *sweep],
        env=environment(shared_cache), capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    before: dict[str, str] = {}
    for room in rooms.split():
        full = outcome(tmp_path, room)
        assert full.returncode in (1, 2)
        assert "see that the disk has room" in said(full)
        assert "database or disk is full" in said(full) or "No space left on device" in said(full)
        now = finished(tmp_path / f"{room}.db")
        assert before.items() <= now.items()
        assert 1 <= len(now) < 10
        before = now
    again, after = outcome(tmp_path, "again"), finished(tmp_path / "again.db")
    assert again.returncode == 0, said(again)
    assert len(after) == 10
    assert before.items() <= after.items(), "nothing finished is lost, or run again"
    for run in after.values():
        check_files(tmp_path / "mlruns", run)


def hold(database: Path) -> sqlite3.Connection:
    """Lock a database as a backup or another program does."""
    other = sqlite3.connect(database, timeout=60, isolation_level=None)
    other.execute("begin exclusive")
    return other


def until(process: subprocess.Popen[str], begin: str) -> None:
    """Read what a command says until a line begins so."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(begin):
            return
    raise AssertionError(f"it never said {begin}")


def test_a_database_that_is_locked_for_seconds_is_waited_for(workspace: Path, shared_cache: Path) -> None:
    with started(workspace, shared_cache, "run.py", "-m", *GRID, *NINE) as sweep:
        until(sweep, "[1/")
        with closing(hold(workspace / "mlflow.db")):
            time.sleep(6)  # longer than SQLite's own 5 seconds
            assert sweep.poll() is None
        stdout, stderr = sweep.communicate(timeout=120)
    assert sweep.returncode == 0, stdout + stderr
    assert len(finished(workspace / "mlflow.db")) == 9


def test_a_database_that_stays_locked_ends_a_sweep_that_goes_on_later(
    workspace: Path, shared_cache: Path, command: Callable[..., Ended]
) -> None:
    with started(workspace, shared_cache, "run.py", "-m", *GRID, *NINE) as sweep:
        until(sweep, "[1/")
        with closing(hold(workspace / "mlflow.db")):
            stdout, stderr = sweep.communicate(timeout=200)
    assert sweep.returncode == 1
    assert "mlflow.db cannot be used: database is locked; see that" in said(Ended(1, stdout, stderr))
    assert "not run" in stdout
    before = finished(workspace / "mlflow.db")
    assert 1 <= len(before) < 9
    again = command("run.py", "-m", *GRID, *NINE)
    assert again.returncode == 0, said(again)
    after = finished(workspace / "mlflow.db")
    assert len(after) == 9
    assert before.items() <= after.items()


def slow(request: BaseHTTPRequestHandler) -> None:
    """Answer after a while, so that there is a middle of a cell."""
    time.sleep(0.1)
    sends(completion("Answer: positive"))(request)


def test_a_sweep_that_is_killed_outright_is_completed_by_the_same_command(
    workspace: Path, shared_cache: Path, command: Callable[..., Ended], server: Answering
) -> None:
    server.faults[""] = [slow] * 999
    grid = (
        "-m", "model=gpt", "weights=study", f"weights.gpt.endpoint.url={server.url}", "model.concurrency=2",
        "weights.gpt.endpoint.key_variable=", *GRID[1:], "perturb=none,typo", "level=low,mid,high",
    )  # fmt: skip
    with started(workspace, shared_cache, "run.py", *grid) as sweep:
        until(sweep, "[2/")
        calls = server.calls.total()
        while server.calls.total() < calls + 3:
            time.sleep(0.01)
        os.kill(sweep.pid, signal.SIGKILL)
        sweep.communicate(timeout=60)
    before, asked = finished(workspace / "mlflow.db"), server.calls.total()
    assert len(before) == 2
    assert asked < 24, "it was in the middle of a cell"
    again = command("run.py", *grid)
    assert again.returncode == 0, said(again)
    assert "2 reused, 2 done" in again.stdout
    after = finished(workspace / "mlflow.db")
    assert len(after) == 4
    assert before.items() <= after.items()
    assert len(server.calls) == 24, "six clean texts, and each at three levels"
    assert server.calls.total() <= 24 + 2, "only what was under way is asked again"
    assert len(cells(workspace / "mlflow.db", "FAILED")) == 0
