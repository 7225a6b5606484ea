"""One cell from its settings to its run: ask, read, score, compare with the clean text, log."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from noisyhealth import evidence, fits, own_code, scoring, study, version
from noisyhealth.calls import EMPTY, ask, journal
from noisyhealth.cell import Cell
from noisyhealth.errors import StoreError
from noisyhealth.records import Reply
from noisyhealth.scoring import Result
from noisyhealth.study import Asked, Record
from noisyhealth.tracking import preview
from noisyhealth.tracking.budget import UNLIMITED, Budget


def run(
    cell: Cell,
    asked: Asked,
    key: str,
    *,
    budget: Budget = UNLIMITED,
    parent: str = "",
    given: Mapping[str, Reply] = EMPTY,
) -> Record:
    """Run one cell unless it is done, and return what became of it.

    `key` is the cell's, `parent` the sweep's run, `budget` what its calls may spend, `given` what `ask_ahead` returned.
    The run ends as FINISHED, as FAILED when anything was raised, and as KILLED when it was interrupted; the exception
    goes on to the caller.
    """
    start = time.perf_counter()
    if done := cell.store.finished([key]):
        return record(cell, key, study.REUSED, done[key])
    tags = _tags(cell, asked, key)
    run_id = cell.store.start(cell.name, tags, params(cell), parent)
    try:
        result = _result(cell, asked, budget, given)
        fit = cell.model.fitted()
        metrics = {**scoring.metrics(cell, asked, result), **(fits.metrics(fit) if fit else {})}
        metrics["seconds/total"] = time.perf_counter() - start
        found = scoring.findings(cell, result) | ({"fit": fit.key, "fit_run": fits.run_of(cell, fit)} if fit else {})
        with tempfile.TemporaryDirectory() as folder:
            kept = evidence.write(Path(folder), cell, asked, result, metrics, tags | found)
            seen = preview.TAGS if cell.keep_text else {}
            cell.store.log(run_id, metrics, {**found, **seen, "manifest": kept}, Path(folder))
        cell.store.end(run_id, "FINISHED")
    except Exception as error:
        _end(cell, run_id, "FAILED", error)
        raise
    except BaseException as error:
        _end(cell, run_id, "KILLED", error)
        raise
    return record(cell, key, study.DONE, run_id)


def _end(cell: Cell, run_id: str, status: str, error: BaseException) -> None:
    """End a run that something went wrong with; where that cannot be written either, the first error is the one told.

    Such a run stays RUNNING, which nobody takes for done, until its missing heartbeat is noticed.
    """
    try:
        if status == "FAILED":
            cell.store.tag(run_id, "error", f"{type(error).__name__}: {error}"[:4000])
        cell.store.end(run_id, status)
    except StoreError as worse:
        error.add_note(f"nor could run {run_id} be ended: {worse}")


def record(cell: Cell, key: str, status: str, run_id: str) -> Record:
    """Return the record of a cell that has a finished run."""
    return Record(cell.name, key, status, run_id, cell.store.headline(run_id))


def _result(cell: Cell, asked: Asked, budget: Budget, given: Mapping[str, Reply]) -> Result:
    """Return replies, answers and scores of both texts."""
    keys = [*asked.clean_keys, *asked.disturbed_keys]
    replies = ask(cell.model, [*asked.clean, *asked.disturbed], keys, journal(cell), budget, given)
    return scoring.result(cell, asked, replies)


def _tags(cell: Cell, asked: Asked, key: str) -> dict[str, str]:
    signature = cell.model.signature()
    own = own_code.hashes(cell.resolved)
    return {
        **design_tags(cell),
        "model": str(signature["model"]),
        # What model.dtype=auto came to.
        **({"dtype": str(signature["dtype"])} if "dtype" in signature else {}),
        "cell_key": key,
        "data_hash": asked.build.hash,
        "code_hash": version.of(),
        **({"own_code": json.dumps(own)} if own else {}),
        **version.git(),
    }


def design_tags(cell: Cell) -> dict[str, str]:
    """Return the tags that follow from the configuration alone."""
    return {
        "kind": "cell",
        "task": cell.task.name,
        "answered_by": cell.model.label,
        "weights": cell.weights,
        "perturb": cell.perturb,
        "level": cell.level,
        "prompt": cell.prompt,
        "prompt_hash": sha256(json.dumps(cell.resolved["prompt"], sort_keys=True).encode()).hexdigest()[:16],
        "homophones": str(cell.resolved["homophones"]["_target_"]).rpartition(".")[2],
        "headline": cell.task.headline,
        "scenarios": ",".join(cell.scenarios),
        "labels": json.dumps(list(cell.task.labels), ensure_ascii=False),
        "field": cell.field,
        "keep_text": str(cell.keep_text).lower(),
        **({"mitigate": cell.mitigation.name} if cell.mitigation else {}),
        **({"factors": json.dumps(dict(cell.factors), sort_keys=True, ensure_ascii=False)} if cell.factors else {}),
    }


def params(cell: Cell) -> dict[str, object]:
    """Return the choices and the settings as flat names: "model.temperature"."""
    shown = {
        k: v
        for k, v in cell.resolved.items()
        if k in ("task", "model", "data", "metric", "seed", "draw", "repeat", "study", "threads")
    }
    own = {} if not cell.rate else {"perturb": cell.resolved["perturb"]}
    own |= {"mitigate": cell.resolved["mitigate"]} if cell.mitigation else {}
    return {"rate": cell.rate, "level": cell.level, "perturb": cell.perturb, **flat({**shown, **own})}


def flat(nested: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return a nested mapping as one with dotted names.

    >>> flat({"model": {"name": "gpt", "stop": ["x"]}})
    {'model.name': 'gpt', 'model.stop': ['x']}
    """
    items: dict[str, object] = {}
    for name, value in nested.items():
        whole = f"{prefix}{name}"
        items |= flat(value, f"{whole}.") if isinstance(value, dict) else {whole: value}
    return items
