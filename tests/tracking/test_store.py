import json
import math
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from conftest import environment

from noisyhealth.errors import StoreError
from noisyhealth.tracking import store as module
from noisyhealth.tracking.store import Store

# MLflow 3.17 with SQLAlchemy 2.1: its own mappers use a loader that will go.
CELL = {"kind": "cell"}
FIRST_USE = """
import sys
from noisyhealth.tracking.store import Store
store = Store(f"sqlite:///{sys.argv[1]}/mlflow.db", f"{sys.argv[1]}/mlruns", "study", f"{sys.argv[1]}/store.lock")
run = store.start(f"run of {sys.argv[2]}", {"kind": "cell", "cell_key": sys.argv[2]}, {"rate": 0.1})
store.end(run, "FINISHED")
print(store.experiment, run)
"""

INTERRUPTED = """
import os, random, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
from noisyhealth.tracking.entries import Point
from noisyhealth.tracking.store import Store
store = Store(*sys.argv[1:])
store.experiment
chance = random.Random(0)
for _ in range(40):
    timer = threading.Timer(chance.random() * 0.1, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        while True:
            run = store.start("cell", {"kind": "cell"}, {"rate": 0.1})
            try:
                store.plot(run, [Point("loss", 0.5, 1)])
                store.tag(run, "key", "value")
                store.end(run, "FINISHED")
            except BaseException:
                store.end(run, "KILLED")
                raise
    except KeyboardInterrupt:
        print("interrupted")
"""


def store_in(folder: Path, study: str = "study") -> Store:
    return Store(f"sqlite:///{folder}/mlflow.db", str(folder / "mlruns"), study, str(folder / "locks" / "store.lock"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def store(folder: Path, request: pytest.FixtureRequest) -> Store:
    """A study of the test's own; making a store takes seconds, so all tests share one."""
    return store_in(folder, request.node.name)


def finish(store: Store, key: str, status: str = "FINISHED", kind: str = "cell") -> str:
    run = store.start(key, {"kind": kind, "cell_key": key}, {})
    store.end(run, status)
    return run


def data(store: Store, run: str) -> Any:
    return store.client.get_run(run).data


@pytest.mark.slow
def test_a_fresh_store_made_by_several_processes_at_once_loses_no_run(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", FIRST_USE, str(tmp_path), f"key{n}"],
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    told = [process.communicate(timeout=120)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len({experiment for experiment, _ in told}) == 1
    made = Store(f"sqlite:///{tmp_path}/mlflow.db", "", "study", str(tmp_path / "store.lock"))
    assert set(made.finished(["key0", "key1", "key2"]).values()) == {run for _, run in told}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused_and_nothing_is_logged(store: Store, tmp_path: Path, bad: float) -> None:
    (tmp_path / "file.txt").write_text("x")
    run = store.start("cell", CELL, {})
    with pytest.raises(StoreError, match=r"metrics .*'f1': .*none of this run's metrics was logged"):
        store.log(run, {"accuracy": 0.5, "f1": bad}, {"category": "stable"}, tmp_path)
    assert data(store, run).metrics == {}
    assert "category" not in data(store, run).tags
    assert store.client.list_artifacts(run) == []


def test_what_is_logged_can_be_read_back(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("kept")
    run = store.start("qa · llama · typo · low", CELL | {"headline": "rougeL"}, {"rate": 0.1}, parent="")
    metrics = {"rougeL": 0.4, "clean/rougeL": 0.5, "n": 6, "outcome/scored": 4, "seconds/total": 1.5, "odd%name": 1.0}
    store.log(run, metrics, {"category": "decrease"}, tmp_path)
    store.end(run, "FINISHED")
    found = data(store, run)
    assert found.metrics == {"odd_name" if name == "odd%name" else name: value for name, value in metrics.items()}
    assert found.params == {"rate": "0.1"}
    assert found.tags["mlflow.runName"] == "qa · llama · typo · low"
    assert Path(store.client.download_artifacts(run, "file.txt")).read_text() == "kept"
    headline = store.headline(run)
    assert (headline.name, headline.score, headline.baseline) == ("rougeL", 0.4, 0.5)
    assert (headline.n, headline.unread) == (6, 2)


@pytest.mark.parametrize("size", [501, 6001, 20_000])
def test_a_parameter_too_long_is_its_hash_never_cut(store: Store, size: int) -> None:
    run = store.start("cell", CELL, {"prompt": "x" * size, "rate": 0.1})
    assert data(store, run).params == {"rate": "0.1", "prompt": f"sha256:{sha256(b'x' * size).hexdigest()}"}


def test_a_run_interrupted_while_it_starts_is_killed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store.client, "log_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.start("cell", CELL, {"rate": 0.1})
    assert [run.info.status for run in store.runs()] == ["KILLED"]


def test_a_parameter_at_the_limit_is_whole(store: Store) -> None:
    run = store.start("cell", CELL, {"prompt": "x" * 500})
    assert len(data(store, run).params["prompt"]) == 500


def test_as_many_parameters_as_a_configuration_may_have_are_kept(store: Store) -> None:
    params = {f"model.setting_{n}": n for n in range(150)}
    assert len(data(store, store.start("cell", CELL, params)).params) == 150


def test_only_finished_cells_count_as_done(store: Store) -> None:
    for status in ("FAILED", "KILLED"):
        finish(store, status, status)
    store.start("running", CELL | {"cell_key": "running"}, {})
    finish(store, "sweep", kind="sweep")
    good = finish(store, "good")
    assert store.finished(["FAILED", "KILLED", "running", "sweep", "good", "never"]) == {"good": good}
    assert store.finished(["FAILED"]) == {}
    assert store.finished(["good"]) == {"good": good}


def test_of_two_finished_runs_of_a_cell_the_same_one_is_found_alone_and_among_others(store: Store) -> None:
    runs = [finish(store, "twice") for _ in range(2)]
    finish(store, "once")
    assert store.finished(["twice"])["twice"] == store.finished(["twice", "once"])["twice"]
    assert store.finished(["twice"])["twice"] in runs


def test_finished_cells_beyond_one_page_are_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # MLflow gives a page at a time, 1,000 runs at most, and says nothing of the others.
    monkeypatch.setattr(module, "_PAGE", 2)
    runs = {f"key{n}": finish(store, f"key{n}") for n in range(7)}
    assert store.finished(list(runs)) == runs
    assert len(store.runs()) == 7


def test_studies_do_not_see_each_others_runs(store: Store, folder: Path) -> None:
    finish(store, "here")
    other = store_in(folder, "another study")
    assert other.finished(["here"]) == {}
    assert other.experiment != store.experiment


def test_a_store_opened_again_is_the_same_study(store: Store, folder: Path) -> None:
    run = finish(store, "kept")
    again = store_in(folder, store.study)
    assert again.experiment == store.experiment
    assert again.finished(["kept"]) == {"kept": run}


def test_a_deleted_study_says_what_to_do(store: Store, folder: Path) -> None:
    store.client.delete_experiment(store.experiment)
    with pytest.raises(StoreError, match="was deleted in MLflow: restore it, or choose study="):
        finish(store_in(folder, store.study), "key")


def test_a_store_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").mkdir()
    with pytest.raises(StoreError, match=r"MLflow at sqlite:///.*mlflow.db cannot be used"):
        finish(store_in(tmp_path), "key")


def test_a_run_under_a_sweep_names_it(store: Store) -> None:
    parent = store.start("sweep", {"kind": "sweep"}, {"cells": 2})
    child = store.start("cell", CELL, {}, parent)
    assert data(store, child).tags["mlflow.parentRunId"] == parent


def test_a_tag_set_later_is_kept(store: Store) -> None:
    run = store.start("cell", CELL, {})
    store.tag(run, "error", json.dumps({"why": "é"}))
    assert data(store, run).tags["error"] == '{"why": "\\u00e9"}'


@pytest.mark.slow
def test_an_interrupt_at_any_moment_leaves_a_store_that_can_be_written(store: Store) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, store.uri, store.artifacts, store.study, store.lock],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.stdout.count("interrupted") == 40, ended.stderr
    found = Counter(run.info.status for run in store.runs())
    assert found["KILLED"] > 0
    assert found["RUNNING"] <= 2, "an interrupt between two lines of Python may leave one"
