"""A report as a run in MLflow, beside the runs it rests on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from noisyhealth import version
from noisyhealth.report.outline import Report
from noisyhealth.report.runs import in_order

if TYPE_CHECKING:
    from mlflow.entities import Run

    from noisyhealth.tracking.store import Store

_FILES = "index.html among the artifacts is the report. It rests on"
_NOTE = 7_900  # characters; MLflow cuts a tag at 8,000


def log(
    store: Store,
    report: Report,
    runs: Sequence[Run],
    folder: Path,
    settings: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """Log the files of a report, and by which settings it was made; return the run's id."""
    ids = [str(run.info.run_id) for run in runs]
    tags = {"kind": "analysis", "complete": str(not report.warning).lower(), **version.git()}
    run_id = store.start("analysis", tags, {"runs": len(ids), "runs_hash": _hash(ids), **settings}, source="analyze.py")
    try:
        store.log(run_id, _counts(report), {"mlflow.note.content": _note(store, report, runs)}, folder)
        store.end(run_id, "FINISHED")
    except Exception:
        store.end(run_id, "FAILED")
        raise
    except BaseException:
        store.end(run_id, "KILLED")
        raise
    return run_id


def _hash(ids: Sequence[str]) -> str:
    return sha256(json.dumps(sorted(ids)).encode()).hexdigest()[:16]


def _counts(report: Report) -> dict[str, float]:
    """Return how many scenarios are in each category, for the columns of MLflow's table."""
    metrics: dict[str, float] = {}
    for section in report.sections:
        for table in section.tables:
            if table.name.startswith("categories_") and not table.name.startswith("categories_by_"):
                weights = table.name.removeprefix("categories_")
                names = ("increase", "stable", "decrease", "catastrophic", "undefined")
                metrics |= {f"{weights}/{name}": float(table.frame[name].sum()) for name in names}
    return metrics


def _note(store: Store, report: Report, runs: Sequence[Run]) -> str:
    """Return the summary with links to the runs, as many as a description may have."""
    address = f"#/experiments/{store.experiment}/runs"
    note = "\n\n".join([*([report.warning] if report.warning else []), *report.summary, _FILES])
    for at, run in enumerate(ordered := in_order(runs)):
        link = f"\n- [{run.info.run_name}]({address}/{run.info.run_id})"
        if len(note) + len(link) > _NOTE:
            return f"{note}\n- and {len(ordered) - at} more in tables/runs.csv"
        note += link
    return note
