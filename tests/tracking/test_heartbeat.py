"""Runs whose process is gone are told from those that go on, and ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Ended

from noisyhealth.tracking import heartbeat
from noisyhealth.tracking.heartbeat import HEARTBEAT, PROCESS, Heartbeats, signs, vanished
from noisyhealth.tracking.store import Store

BEGIN = """
import sys, time
from noisyhealth.tracking.store import Store
folder, name = sys.argv[1:]
store = Store(f"sqlite:///{folder}/mlflow.db", f"{folder}/mlruns", "noisyhealth", f"{folder}/store.lock")
print(store.start(name, {"kind": "cell", "cell_key": name}, {}), flush=True)
time.sleep(600)
"""


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Another process, which does nothing."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_this_process_is_there() -> None:
    assert not vanished(signs())


def test_a_process_of_this_machine_has_vanished_as_soon_as_it_is_gone(other: subprocess.Popen[str]) -> None:
    tags = {**signs(), PROCESS: heartbeat._process_of(other.pid)}
    assert str(other.pid) in tags[PROCESS]
    assert not vanished(tags)
    other.kill()
    other.communicate()
    assert vanished(tags)


def test_another_process_under_the_same_number_is_not_it() -> None:
    tags = signs()
    earlier = tags[PROCESS].rpartition(" ")[0] + " 12345"
    assert vanished({**tags, PROCESS: earlier})


@pytest.mark.parametrize(("silent", "gone"), [(10, False), (200, False), (400, True)])
def test_of_another_machine_only_the_heartbeat_is_known(silent: int, gone: bool) -> None:
    tags = {PROCESS: "elsewhere pid 1 begun 2", HEARTBEAT: f"{time.time() - silent:.0f} 2026"}
    assert vanished(tags) is gone


def test_a_run_without_signs_of_life_is_left_alone() -> None:
    assert not vanished({})


def test_open_runs_are_beaten_for_and_ended_ones_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY", 0.01)
    told: list[str] = []
    beats = Heartbeats(lambda run, now: told.append(run))
    beats.begin("one")
    beats.begin("two")
    _wait(lambda: {"one", "two"} <= set(told))
    beats.end("one")
    time.sleep(0.1)  # a beat under way may still come
    told.clear()
    _wait(lambda: len(told) > 3)
    assert set(told) == {"two"}
    beats.end("two")


def test_a_store_that_fails_does_not_end_the_beating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY", 0.01)
    tries: list[str] = []

    def beat(run: str, now: str) -> None:
        tries.append(run)
        raise OSError("away")

    beats = Heartbeats(beat)
    beats.begin("one")
    _wait(lambda: len(tries) > 2)
    beats.end("one")


@pytest.mark.slow
def test_a_run_that_was_killed_outright_is_ended_at_the_next_start_and_a_live_one_is_not(
    workspace: Path, command: Callable[..., Ended]
) -> None:
    processes = [_begun(workspace, name) for name in ("dead", "alive")]
    try:
        os.kill(processes[0].pid, signal.SIGKILL)
        processes[0].wait()
        ended = command("run.py", "model=majority", "data.split.test=6")
        assert ended.returncode == 0, ended.stderr
        assert "Marked KILLED, since their process vanished: dead." in ended.stdout
        store = Store(f"sqlite:///{workspace}/mlflow.db", "", "noisyhealth", str(workspace / "store.lock"))
        found = {run.info.run_name: run for run in store.runs()}
        assert (found["dead"].info.status, found["alive"].info.status) == ("KILLED", "RUNNING")
        assert "its process vanished" in found["dead"].data.tags["error"]
        assert "vanished" not in command("run.py", "model=majority", "data.split.test=6", "perturb=none").stdout
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _begun(folder: Path, name: str) -> subprocess.Popen[str]:
    """Return a process that has started a run and goes on."""
    process = subprocess.Popen([sys.executable, "-c", BEGIN, str(folder), name], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert len(process.stdout.readline().strip()) == 32
    return process


def _wait(done: Callable[[], bool]) -> None:
    for _ in range(1000):
        if done():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")
