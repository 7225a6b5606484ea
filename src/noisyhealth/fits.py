"""The run of a fit in MLflow: one a study, with the curves of training; all cells that use the fit point to it."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock

from noisyhealth import evidence, version
from noisyhealth.cell import Cell
from noisyhealth.records import Fit, Scores
from noisyhealth.tracking.entries import Point

KIND = "fit"


def run_of(cell: Cell, fit: Fit) -> str:
    """Return the study's run of a fit, logged now where no cell has done so."""
    store = cell.store
    with FileLock(f"{store.lock}.{KIND}"):
        query = f"attributes.status = 'FINISHED' and tags.kind = '{KIND}' and tags.fit = '{fit.key}'"
        if found := store.runs(query):
            return str(found[0].info.run_id)
        recipe = fit.facts.get("recipe")
        name = " · ".join([KIND, cell.task.name, cell.model.label, *([cell.ablation] if cell.ablation else [])])
        begun = fit.facts.get("begun")
        run = store.start(
            name,
            _tags(cell, fit),
            recipe if isinstance(recipe, Mapping) else {},
            begun=begun if isinstance(begun, float) else None,
        )
        try:
            store.plot(run, list(_points(fit)))
            with tempfile.TemporaryDirectory() as folder:
                evidence.write_fit(Path(folder), fit)
                store.log(run, _numbers(fit), {}, Path(folder))
        except BaseException as error:
            store.end(run, "FAILED" if isinstance(error, Exception) else "KILLED")
            raise
        store.end(run, "FINISHED")
        return run


def metrics(fit: Fit) -> Scores:
    """Return what a cell says of its fit, the score on the validation texts under its own name.

    >>> metrics(Fit("k", {"score": "validation_f1", "validation_score": 0.8, "epochs": 3, "seconds": 9.5}, ""))
    {'fit/validation_f1': 0.8, 'fit/epochs': 3, 'fit/seconds': 9.5}
    """
    numbers = _numbers(fit)
    score = {str(fit.facts["score"]): numbers.pop("validation_score")}
    return {f"{KIND}/{name}": value for name, value in (score | numbers).items()}


def objective(scores: Mapping[str, float]) -> float | None:
    """Return what hyperparameters are chosen by, the greater the better, from a cell's metrics; None without a fit.

    It is the F1 on the validation texts, or their loss turned round where answers are spans: never the test texts.

    >>> objective({"accuracy": 0.9, "fit/validation_f1": 0.8}), objective({"fit/validation_loss": 2.5})
    (0.8, -2.5)
    """
    if (f1 := scores.get(f"{KIND}/validation_f1")) is not None:
        return f1
    loss = scores.get(f"{KIND}/validation_loss")
    return None if loss is None else -loss


def _tags(cell: Cell, fit: Fit) -> dict[str, str]:
    return {
        "kind": KIND,
        KIND: fit.key,
        "task": cell.task.name,
        "model": str(cell.model.signature()["model"]),
        "answered_by": cell.model.label,
        "weights": cell.weights,
        "identity": str(cell.model.signature().get("identity", "")),
        "code_hash": version.of(),
        **version.git(),
    }


def _numbers(fit: Fit) -> Scores:
    return {
        name: value
        for name, value in fit.facts.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name != "begun"
    }


def _points(fit: Fit) -> Iterator[Point]:
    """Yield the numbers of the curves, each at its step of the optimizer."""
    for row in csv.DictReader(io.StringIO(fit.curves)):
        step = int(row["step"])
        for name, value in row.items():
            if value and name != "step":
                yield Point(name, float(value), step)
