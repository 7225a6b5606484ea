"""`tracking=server` against MLflow on PostgreSQL, both started by scripts/server.sh."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Ended, execute, started

from noisyhealth.tracking.store import Store

pytestmark = pytest.mark.slow

FILES = {"config.yaml", "build.json", "environment.json", "manifest.json", "predictions.parquet", "variants.parquet"}
GRID = ("-m", "model=majority", "perturb=typo,homophone,redact", "level=low,mid,high", "data.split.test=6")
TRACKING = "tracking=server"


@dataclass(frozen=True)
class Served:
    """A server's folder and port, and the folder where commands are run."""

    folder: Path
    port: int
    cache: Path
    work: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def lock(self) -> Path:
        """A lock that whoever starts the server holds meanwhile."""
        return self.work / "starter.lock"

    def script(self, verb: str, **variables: str) -> Ended:
        """Run scripts/server.sh."""
        given = {"SERVER_DIR": str(self.folder), "SERVER_PORT": str(self.port), "PYTHON": sys.executable, **variables}
        command = ["flock", str(self.lock), str(REPOSITORY / "scripts" / "server.sh"), verb]
        ended = subprocess.run(
            command, env={**os.environ, **given}, capture_output=True, text=True, timeout=200, check=False
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def run(self, script: str, *arguments: str) -> Ended:
        """Run a script of the repository that tracks here."""
        return execute(self.work, self.cache, script, *arguments, TRACKING, MLFLOW_TRACKING_URI=self.url)

    def store(self, study: str) -> Store:
        return Store(self.url, "", study, str(self.work / "lock"))

    def runs(self, study: str, kind: str = "cell") -> list[Any]:
        return self.store(study).runs(f"tags.kind = '{kind}'")

    def kill(self) -> None:
        """Take MLflow away in the middle of whatever it does."""
        os.killpg(int((self.folder / "mlflow.pid").read_text()), signal.SIGKILL)


@pytest.fixture(scope="module")
def served(shared_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if not (os.environ.get("POSTGRES_BIN") or list(Path("/usr/lib/postgresql").glob("*/bin/initdb"))):
        pytest.skip("no PostgreSQL: install the package postgresql (apt-get install postgresql)")
    # Not pytest's own folder, which root closes to the user that PostgreSQL runs as.
    folder = Path(tempfile.mkdtemp(prefix="noisyhealth-", dir="/tmp"))
    folder.chmod(0o755)
    server = Served(folder / "server", free_port(), shared_cache, tmp_path_factory.mktemp("served"))
    try:
        begun = server.script("start")
        assert begun.returncode == 0, begun.stderr
        yield server
    finally:
        ended = server.script("stop")
        shutil.rmtree(folder, ignore_errors=True)
    assert ended.returncode == 0, ended.stderr


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def test_four_workers_run_every_cell_once_and_the_report_is_made_from_the_server(served: Served) -> None:
    swept = served.run("run.py", *GRID, "study=four", "hydra/launcher=joblib", "hydra.launcher.n_jobs=4")
    assert swept.returncode == 0, swept.stderr
    found = served.runs("four")
    assert Counter(run.info.status for run in found) == {"FINISHED": 9}
    assert len({run.info.run_name for run in found}) == 9
    [sweep] = served.runs("four", "sweep")
    assert sweep.info.status == "FINISHED"
    assert {run.data.tags["mlflow.parentRunId"] for run in found} == {sweep.info.run_id}

    analysed = served.run("analyze.py", "study=four")
    assert analysed.returncode == 0, analysed.stderr
    assert analysed.stderr == ""
    assert "9 runs, 36 scenarios" in analysed.stdout
    page = (served.work / "reports" / "four" / "index.html").read_bytes()
    [report] = served.runs("four", "analysis")
    assert report.info.status == "FINISHED"
    assert served.store("four").artifact(report, "index.html", served.work / "scratch").read_bytes() == page
    assert not (served.work / "mlruns").exists(), "files of runs are the server's"


def test_a_server_that_goes_away_ends_the_sweep_and_loses_nothing_finished(served: Served) -> None:
    variables = {"MLFLOW_TRACKING_URI": served.url, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
    with started(served.work, served.cache, "run.py", *GRID, TRACKING, "study=away", **variables) as sweep:
        assert sweep.stdout
        for line in sweep.stdout:
            if line.startswith("[2/9]"):
                break
        served.kill()
        said, warned = sweep.communicate(timeout=120)
    assert sweep.returncode == 1
    [told] = [line for line in warned.splitlines() if line.startswith("Stopped: ")]
    assert f"MLflow at {served.url} cannot be used" in told
    assert "run the same command again" in told
    assert "sweep's own run cannot be ended" in warned
    assert "Traceback" not in warned
    assert "not run" in said

    begun = served.script("start")
    assert begun.returncode == 0, begun.stderr
    done = [run for run in served.runs("away") if run.info.status == "FINISHED"]
    assert 2 <= len(done) < 9
    for run in done:
        kept = {file.path for file in served.store("away").client.list_artifacts(run.info.run_id)}
        assert kept >= FILES, "what counts as finished is whole"

    again = served.run("run.py", *GRID, "study=away")
    assert again.returncode == 0, again.stderr
    finished = [run for run in served.runs("away") if run.info.status == "FINISHED"]
    assert len(finished) == len({run.info.run_name for run in finished}) == 9
    assert {run.info.run_id for run in done} <= {run.info.run_id for run in finished}


def test_a_server_that_was_never_there_is_said_at_once(served: Served) -> None:
    nowhere = f"tracking.uri=http://127.0.0.1:{free_port()}"
    ended = served.run("run.py", *GRID, nowhere)
    assert ended.returncode == 2
    assert f"UnreachableError: MLflow at {nowhere.removeprefix('tracking.uri=')} cannot be used" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_second_start_says_that_it_runs_already(served: Served) -> None:
    again = served.script("start")
    assert again.returncode == 0, again.stderr
    assert again.stdout == f"runs already: {served.url}, data in {served.folder}\n"


def test_a_server_keeps_nothing_open_that_its_starter_had(served: Served) -> None:
    free = subprocess.run(["flock", "--nonblock", str(served.lock), "true"], check=False)
    assert free.returncode == 0, "the starter's lock is free, though the server runs"


def test_a_port_in_use_is_named_with_what_to_set(served: Served) -> None:
    ended = served.script("start", SERVER_DIR=str(served.folder.parent / "other"))
    assert ended.returncode == 1
    assert f"port {served.port} is in use by another program: choose another by SERVER_PORT" in ended.stderr
    assert not (served.folder.parent / "other" / "postgres").exists(), "nothing is left half started"


def test_a_machine_without_postgresql_is_told_the_package(tmp_path: Path) -> None:
    server = Served(tmp_path / "server", free_port(), tmp_path, tmp_path)
    ended = server.script("start", POSTGRES_BIN=str(tmp_path))
    assert ended.returncode == 1
    assert f"no PostgreSQL in {tmp_path}: apt-get install postgresql" in ended.stderr


def test_nobody_else_may_enter_the_database(served: Served) -> None:
    assert (served.folder / "postgres").stat().st_mode & 0o077 == 0
    listening = subprocess.run(["cat", "/proc/net/tcp", "/proc/net/tcp6"], capture_output=True, text=True, check=True)
    postmaster = (served.folder / "postgres" / "data" / "postmaster.pid").read_text().splitlines()
    assert postmaster[5] == "", "PostgreSQL listens on no address"
    assert f"0100007F:{served.port:04X}" in listening.stdout, "MLflow listens on 127.0.0.1"
    assert f"00000000:{served.port:04X}" not in listening.stdout
