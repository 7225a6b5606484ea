"""MLflow: one experiment a study, one run a cell under one parent a sweep; with `client` all that imports it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from filelock import FileLock

from noisyhealth.errors import StoreError
from noisyhealth.tracking import heartbeat, view
from noisyhealth.tracking.client import Client, ready
from noisyhealth.tracking.entries import Headline, Point, logged_name, logged_params
from noisyhealth.tracking.heartbeat import Heartbeats
from noisyhealth.tracking.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_VANISHED = "its process vanished: it was killed outright, or the machine stopped"
_PAGE = 1000  # the most that MLflow reads or takes at once


@dataclass(frozen=True)
class Store:
    """The runs of one study.

    `uri`: MLflow's tracking address. `artifacts`: the folder for artifacts, "" where a server decides.
    `study`: the MLflow experiment. `lock`: a file that processes of this machine agree on.
    """

    uri: str
    artifacts: str
    study: str
    lock: str

    @cached_property
    def experiment(self) -> str:
        """The id of the study's experiment, made first where it is not there.

        Under a lock: processes that race to make it log elsewhere without a word (measured, MLflow 3.17).
        """
        client = self.client
        from mlflow import MlflowException

        with FileLock(self.lock):
            try:
                found = client.get_experiment_by_name(self.study)
                if found is None:
                    location = Path(self.artifacts).resolve() / self.study if self.artifacts else None
                    return client.create_experiment(
                        self.study, location.as_uri() if location else None, dict(view.TAGS)
                    )
            except MlflowException as error:
                raise StoreError(f"MLflow at {self.uri} cannot be used: {error}") from error
        if found.lifecycle_stage != "active":
            raise StoreError(
                f"the study {self.study!r} was deleted in MLflow: restore it, or choose study=another_name"
            )
        return found.experiment_id

    @cached_property
    def client(self) -> MlflowClient:
        """MLflow's client for this store, whose tables are made first where they are not there.

        Under a lock: several processes that make a store at once break it (measured, MLflow 3.17).
        """
        ready(self.uri)
        Path(self.lock).parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.lock):
            return cast("MlflowClient", Client(self.uri))

    def studies(self) -> list[str]:
        """Return the names of all studies of this store, the newest first; makes nothing."""
        _, sqlite, path = self.uri.partition("sqlite:///")
        if sqlite and not Path(path).exists():
            return []
        return [str(one.name) for one in self.client.search_experiments() if one.name != "Default"]

    def exists(self) -> bool:
        """Return whether the study has been started; makes nothing."""
        _, sqlite, path = self.uri.partition("sqlite:///")
        return not (sqlite and not Path(path).exists()) and self.client.get_experiment_by_name(self.study) is not None

    def start(
        self,
        name: str,
        tags: Mapping[str, str],
        params: Mapping[str, object],
        parent: str = "",
        *,
        begun: float | None = None,
        source: str = "run.py",
    ) -> str:
        """Start a run and return its id; interrupted in between, the run ends as KILLED.

        `begun`: when its work began, in seconds since 1970, where that was before now. `source`: the script.
        """
        whole = {
            **tags,
            **heartbeat.signs(),
            "mlflow.runName": name,
            "mlflow.source.name": source,
            "mlflow.source.type": "LOCAL",
        }
        if parent:
            whole["mlflow.parentRunId"] = parent
        run_id = ""
        try:
            with uninterrupted():
                run = self.client.create_run(
                    self.experiment, None if begun is None else int(begun * 1000), tags=whole, run_name=name
                )
                run_id = str(run.info.run_id)
                self._heartbeats.begin(run_id)
                self._log_params(run_id, params)
        except BaseException:
            if run_id:
                self.end(run_id, "KILLED")
            raise
        return run_id

    def _log_params(self, run: str, params: Mapping[str, object]) -> None:
        from mlflow.entities import Param

        self.client.log_batch(run, params=[Param(name, text) for name, text in logged_params(params).items()])

    def log(self, run: str, metrics: Mapping[str, float], tags: Mapping[str, str], folder: Path) -> None:
        """Log metrics, tags and every file of a folder; a number that is not finite is an error."""
        from time import time

        from mlflow.entities import Metric, RunTag

        if bad := {k: v for k, v in metrics.items() if not math.isfinite(v)}:
            raise StoreError(f"metrics {bad} are not numbers: none of this run's metrics was logged")
        now = int(time() * 1000)
        rows = [Metric(logged_name(key), float(value), now, 0) for key, value in metrics.items()]
        with uninterrupted():
            self.client.log_batch(run, metrics=rows, tags=[RunTag(k, v) for k, v in tags.items()])
        self.client.log_artifacts(run, str(folder))

    def plot(self, run: str, points: Sequence[Point]) -> None:
        """Log numbers that change over a run: a curve for each name."""
        from time import time

        from mlflow.entities import Metric

        now = int(time() * 1000)
        rows = [Metric(logged_name(point.name), point.value, now, point.step) for point in points]
        for at in range(0, len(rows), _PAGE):
            with uninterrupted():
                self.client.log_batch(run, metrics=rows[at : at + _PAGE])

    def metrics(self, run: str) -> dict[str, float]:
        """Return the last value of each metric of a run."""
        return dict(self._read(run).data.metrics)

    def end(self, run: str, status: str) -> None:
        """End a run as FINISHED, FAILED or KILLED."""
        self._heartbeats.end(run)
        with uninterrupted():
            self.client.set_terminated(run, status)

    @cached_property
    def _heartbeats(self) -> Heartbeats:
        return Heartbeats(lambda run, now: self.client.set_tag(run, heartbeat.HEARTBEAT, now))

    def bury(self, why: str = _VANISHED) -> list[str]:
        """End as KILLED the study's runs whose process is gone without having ended them; return their names."""
        if not self.exists():
            return []
        gone = [run for run in self.runs("attributes.status = 'RUNNING'") if heartbeat.vanished(run.data.tags)]
        for run in gone:
            self.tag(run.info.run_id, "error", why)
            self.end(run.info.run_id, "KILLED")
        return [str(run.info.run_name) for run in gone]

    def tag(self, run: str, key: str, value: str) -> None:
        """Set one tag."""
        with uninterrupted():
            self.client.set_tag(run, key, value)

    def finished(self, keys: Sequence[str]) -> dict[str, str]:
        """Return, for each cell key that has a finished run, the run's id; the oldest where there are two."""
        query = "attributes.status = 'FINISHED' and tags.kind = 'cell'"
        if len(keys) == 1:
            query += f" and tags.cell_key = '{keys[0]}'"
        found = {run.data.tags["cell_key"]: str(run.info.run_id) for run in self.runs(query)}
        return {key: found[key] for key in keys if key in found}

    def headline(self, run: str) -> Headline:
        """Return what a finished run found, in short."""
        data = self._read(run).data
        name = data.tags["headline"]
        return Headline(
            name=name,
            score=data.metrics[name],
            baseline=data.metrics.get(f"clean/{name}"),
            category=data.tags.get("category", ""),
            n=int(data.metrics["n"]),
            unread=int(data.metrics["n"] - data.metrics["outcome/scored"]),
        )

    def _read(self, run: str) -> Run:
        with uninterrupted():
            return self.client.get_run(run)

    def artifact(self, run: Run, name: str, scratch: Path) -> Path:
        """Return where a file of a run lies on this machine; from a server it is fetched into `scratch` first.

        Raises StoreError when it is not there.
        """
        found = self._fetched(run, f"/{name}", scratch)
        if not found.is_file():
            raise StoreError(f"run {run.info.run_id} has no file {name} at {found}: was its folder moved or deleted?")
        return found

    def folder(self, run: Run, scratch: Path) -> Path:
        """Return the folder with all files of a run; from a server they are fetched into `scratch` first.

        Raises StoreError when it is not there.
        """
        return self._fetched(run, "", scratch)

    def _fetched(self, run: Run, name: str, scratch: Path) -> Path:
        from mlflow import MlflowException
        from mlflow.artifacts import download_artifacts

        here = urlsplit(run.info.artifact_uri).scheme in ("", "file")
        to = None if here else str(scratch / str(run.info.run_id))
        if to:
            Path(to).mkdir(parents=True, exist_ok=True)
        try:
            return Path(download_artifacts(f"{run.info.artifact_uri}{name}", dst_path=to, tracking_uri=self.uri))
        except (MlflowException, OSError) as error:
            raise StoreError(f"run {run.info.run_id} has no file {name.lstrip('/') or 'at all'}: {error}") from error

    def run(self, run_id: str) -> Run:
        """Return a run of any study.

        Raises StoreError when there is none.
        """
        from mlflow import MlflowException

        try:
            return self._read(run_id)
        except MlflowException as error:
            raise StoreError(f"there is no run {run_id} at {self.uri}: {error.message}") from error

    def runs(self, query: str = "") -> list[Run]:
        """Return all runs of the study that a query finds, however many."""
        runs: list[Run] = []
        token = None
        while True:
            with uninterrupted():
                page = self.client.search_runs([self.experiment], query, max_results=_PAGE, page_token=token)
            runs += page
            if not (token := page.token):
                return runs
