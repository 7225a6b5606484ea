"""Four workers on an empty folder: every cell once, one build a task, one fit, no run lost.

NOISYHEALTH_REPEATS=20 runs each sweep twenty times, each on an empty folder of its own.
"""

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import Ended, execute, started

from noisyhealth.tracking.store import Store

pytestmark = pytest.mark.slow

REPEATS = int(os.environ.get("NOISYHEALTH_REPEATS", "1"))
LAUNCHERS = {
    "joblib": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=4"),
    "submitit_local": ("hydra/launcher=submitit_local",),  # four at once, unless hydra.sweeper.max_batch_size says more
}
# What each is given to do, as tasks, perturbations, levels. A process a cell takes seconds to start.
GRIDS = {
    "joblib": (("sentiment", "condition"), ("none", "typo", "homophone", "redact"), ("low", "mid", "high")),
    "submitit_local": (("sentiment", "condition"), ("none", "typo"), ("low", "mid")),
}
SMALL = ("data.split.test=6", "threads=1", "cache=cache")


def sweep(folder: Path, weights: Path, launcher: str, *grid: str) -> Ended:
    """Run a sweep by four workers where nothing is but converted weights, which no cell here makes."""
    (folder / "cache").mkdir()
    (folder / "cache" / "weights").symlink_to(weights)
    return execute(folder, weights.parent, "run.py", "-m", *LAUNCHERS[launcher], *SMALL, *grid, OMP_NUM_THREADS="1")


def runs(folder: Path, kind: str) -> list[Any]:
    store = Store(f"sqlite:///{folder}/mlflow.db", "", "noisyhealth", str(folder / "lock"))
    return store.runs(f"tags.kind = '{kind}'")


def lines(ledger: Path) -> list[str]:
    return [line for line in ledger.read_text().split("\n") if line]


def check(folder: Path, ended: Ended, cells: int, tasks: int) -> list[Any]:
    """Check what four workers may spoil, and return the runs of the cells."""
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert f"{cells} done" in ended.stdout
    found, [parent] = runs(folder, "cell"), runs(folder, "sweep")
    assert [run.info.status for run in (*found, parent)] == ["FINISHED"] * (cells + 1)
    assert len({run.data.tags["cell_key"] for run in found}) == cells
    assert {run.data.tags["mlflow.parentRunId"] for run in found} == {parent.info.run_id}
    for run in found:
        assert run.data.metrics["n"] == 6
        assert len(list(Path(run.info.artifact_uri.removeprefix("file://")).iterdir())) >= 6
    [ledger] = folder.glob("multirun/*/cells.jsonl")
    done = [json.loads(line) for line in lines(ledger)]
    assert sorted(row["run"] for row in done) == sorted(run.info.run_id for run in found)
    builds = [path for path in (folder / "cache" / "datasets").iterdir() if path.is_dir()]
    assert len(builds) == tasks
    begun = parent.info.start_time / 1000
    assert all(file.stat().st_mtime < begun for build in builds for file in build.iterdir()), "no worker built again"
    return found


@pytest.mark.parametrize("repeat", range(REPEATS))
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_four_workers_on_an_empty_folder_do_every_cell_once(
    tmp_path: Path, shared_cache: Path, launcher: str, repeat: int
) -> None:
    tasks, perturbs, levels = GRIDS[launcher]
    each = 1 + (len(perturbs) - 1) * len(levels)
    grid = (f"task={','.join(tasks)}", f"perturb={','.join(perturbs)}", f"level={','.join(levels)}")
    ended = sweep(tmp_path, (shared_cache / "weights").resolve(), launcher, "model=majority", *grid)
    found = check(tmp_path, ended, len(tasks) * each, len(tasks))
    assert Counter(run.data.tags["task"] for run in found) == dict.fromkeys(tasks, each)


@pytest.mark.parametrize("repeat", range(REPEATS))
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_four_workers_that_need_one_fit_make_it_once(
    tmp_path: Path, shared_cache: Path, launcher: str, repeat: int
) -> None:
    grid = (
        "model=bluebert", "model.epochs=1", "model.max_length=32", "model.frozen=6", "perturb=none,typo",
        "level=low,mid,high",
    )  # fmt: skip
    ended = sweep(tmp_path, (shared_cache / "weights").resolve(), launcher, *grid)
    found = check(tmp_path, ended, 4, 1)
    [fit] = runs(tmp_path, "fit")
    assert fit.info.status == "FINISHED"
    assert {(run.data.tags["fit"], run.data.tags["fit_run"]) for run in found} == {
        (fit.data.tags["fit"], fit.info.run_id)
    }
    [made] = (path for path in (tmp_path / "cache" / "fits").iterdir() if path.is_dir())
    assert made.name == fit.data.tags["fit"]
    begun = json.loads((made / "fit.json").read_text())["begun"]
    files = [Path(run.info.artifact_uri.removeprefix("file://")) / "fit.json" for run in found]
    assert {json.loads(file.read_text())["begun"] for file in files} == {begun}, "no later fit took its place"


def test_two_sweeps_at_once_share_what_they_do(tmp_path: Path, shared_cache: Path) -> None:
    grid = ("-m", *SMALL, "model=majority", "perturb=typo,redact", "level=low,mid,high")
    with (
        started(tmp_path, shared_cache, "run.py", *grid) as first,
        started(tmp_path, shared_cache, "run.py", *grid) as second,
    ):
        said = [sweep.communicate(timeout=200) for sweep in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    found = runs(tmp_path, "cell")
    assert [run.info.status for run in found] == ["FINISHED"] * 6
    assert len({run.data.tags["cell_key"] for run in found}) == 6
    told = [json.loads(line) for ledger in tmp_path.glob("multirun/*/cells.jsonl") for line in lines(ledger)]
    assert Counter(row["run"] for row in told if row["status"] == "done") == {run.info.run_id: 1 for run in found}


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_four_workers_leaves_no_run_running_and_the_same_command_goes_on(
    tmp_path: Path, shared_cache: Path, sent: signal.Signals
) -> None:
    tasks, perturbs, levels = GRIDS["joblib"]
    grid = ("model=majority", f"task={','.join(tasks)}", f"perturb={','.join(perturbs)}", f"level={','.join(levels)}")
    command = ("run.py", "-m", *LAUNCHERS["joblib"], *SMALL, *grid)
    with started(tmp_path, shared_cache, *command, OMP_NUM_THREADS="1") as sweeping:
        until = time.monotonic() + 200
        while not any(lines(ledger) for ledger in tmp_path.glob("multirun/*/cells.jsonl")):
            assert time.monotonic() < until, "no cell was ever finished"
            time.sleep(0.05)
        # Ctrl-C goes to all processes of a terminal, SIGTERM to the one that it is sent to.
        (os.killpg if sent is signal.SIGINT else os.kill)(sweeping.pid, sent)
        _, told = sweeping.communicate(timeout=100)
    assert sweeping.returncode == 130, told
    assert "Traceback" not in told
    assert "the same command goes on from here" in told
    statuses = Counter(run.info.status for kind in ("cell", "sweep") for run in runs(tmp_path, kind))
    assert set(statuses) <= {"FINISHED", "KILLED"}
    assert statuses["FINISHED"] < 20
    again = execute(tmp_path, shared_cache, *command, OMP_NUM_THREADS="1")
    assert again.returncode == 0, again.stdout + again.stderr
    finished = [run for run in runs(tmp_path, "cell") if run.info.status == "FINISHED"]
    assert len({run.data.tags["cell_key"] for run in finished}) == len(finished) == 20
