"""The runs of an archive as a report asks for them, without MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from noisyhealth import manifest
from noisyhealth.audit.bundle import Bundle
from noisyhealth.audit.kept import KeptRun, Logged
from noisyhealth.errors import StoreError

if TYPE_CHECKING:
    from mlflow.entities import Run


@dataclass(frozen=True)
class Archived:
    """The study of an archive: a `report.source.Source`. `folders`: by a run's id, where its files are."""

    study: str
    logged: Mapping[str, Logged]
    folders: Mapping[str, Path]

    @classmethod
    def of(cls, packed: Bundle, runs: Sequence[KeptRun]) -> Archived:
        """Return it for an archive and its finished runs; raise DataError where the others cannot be read."""
        study = str(manifest.read(packed.folder).get("study", ""))
        logged = {**{run.id: run.logged for run in runs}, **packed.others()}
        return cls(study, logged, {run.id: run.folder for run in runs})

    def runs(self, query: str = "") -> list[Run]:
        """Return the runs that a query finds, of the form "tags.kind = 'cell'"; all for none."""
        kind = query.partition("'")[2].rstrip("'")
        return [_run(run, one) for run, one in self.logged.items() if not kind or one.tags.get("kind") == kind]

    def artifact(self, run: Run, name: str, scratch: Path) -> Path:
        """Return where a file of a run lies; raise StoreError where it does not."""
        path = self.folders[run.info.run_id] / name if run.info.run_id in self.folders else None
        if path is None or not path.is_file():
            raise StoreError(f"run {run.info.run_id} has no file {name} in the archive")
        return path


def _run(run: str, one: Logged) -> Run:
    """Return what MLflow's own class would say of a run, as far as a report asks."""
    info = SimpleNamespace(run_id=run, run_name=one.name, status=one.status, start_time=one.started)
    data = SimpleNamespace(metrics=dict(one.metrics), params=dict(one.params), tags=dict(one.tags))
    return cast("Run", SimpleNamespace(info=info, data=data))
