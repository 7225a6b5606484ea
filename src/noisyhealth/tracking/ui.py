"""MLflow's pages over the runs of this folder, for this machine alone.

They ask for no name and no password, so they listen on 127.0.0.1 and nowhere else.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NoReturn
from urllib.request import pathname2url

from noisyhealth.errors import StoreError
from noisyhealth.tracking import view

HOST = "127.0.0.1"
# One worker and no jobs: 0.5 GB instead of 3.4 (measured, MLflow 3.17). Nothing is told to MLflow's makers.
_LIGHT = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}


def serve(store: Path, artifacts: Path, port: int) -> NoReturn:
    """Say where each study is, and become MLflow's server.

    `store`: the SQLite file of the runs, `artifacts`: the folder of their files. Raises StoreError where no run is.
    """
    if not store.is_file():
        raise StoreError(f"{store.resolve()}: no runs there yet; run a cell first, or `make demo`")
    server = f"http://{HOST}:{port}"
    found = studies(store)
    with socket.socket() as there:
        if not there.connect_ex((HOST, port)):
            raise StoreError(f"port {port} is taken, by somebody's pages perhaps; give --port {port % 65535 + 1}")
    print(f"MLflow's pages, in some seconds on {server}. Cells of")
    for name, experiment in found.items():
        print(f"  {name}: {view.address(server, experiment)}")
    sys.stdout.flush()
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", HOST, "--port", str(port)]
    command += ["--backend-store-uri", f"sqlite:///{store.resolve()}", "--artifacts-destination", str(artifacts)]
    os.execve(sys.executable, command, {**os.environ, **_LIGHT})


def studies(store: Path) -> Mapping[str, str]:
    """Return the ids of the studies in an SQLite store by name, the newest first; reads without MLflow's 3 seconds."""
    query = "select name, experiment_id from experiments where lifecycle_stage = 'active' order by creation_time desc"
    with closing(sqlite3.connect(f"file:{pathname2url(str(store.resolve()))}?mode=ro", uri=True)) as db:
        try:
            return {str(name): str(one) for name, one in db.execute(query) if name != "Default"}
        except sqlite3.Error as error:
            raise StoreError(f"{store.resolve()} is no database of runs: {error}") from None
