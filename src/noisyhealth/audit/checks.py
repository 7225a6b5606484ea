"""Single checks of a run: each compares what was kept with what follows from the rest."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from omegaconf import DictConfig, ListConfig, OmegaConf

from noisyhealth import experiment, fits, manifest, own_code, scoring, study, version
from noisyhealth.audit.finding import Finding, Verdict
from noisyhealth.audit.kept import KeptRun
from noisyhealth.cell import Cell
from noisyhealth.evidence import METRICS, MODEL
from noisyhealth.scoring import Read, Result
from noisyhealth.study import Asked
from noisyhealth.sweep import jobs
from noisyhealth.tracking.entries import logged_name, logged_params

_SAME = 1e-9
_MEANING = 1e-5  # an encoder's last digits depend on processor and threads
_MEASURED = frozenset({"seconds/total"})  # a clock said it: it follows from nothing


def other_code(run: KeptRun) -> str:
    """Return what may explain a difference: that the run was made by other code, of this package or its author's."""
    then, now = run.logged.tags.get("code_hash", ""), version.of()
    if then != now:
        return f" (the run was made by code {then} of noisyhealth, here is {now})"
    own, here = _own(run), own_code.hashes(run.config)
    changed = [module for module in sorted(own.keys() | here.keys()) if own.get(module) != here.get(module)]
    return f" (the run was made by another {' and '.join(changed)} than is here)" if changed else ""


def _own(run: KeptRun) -> dict[str, str]:
    """Return the hashes of code of its author's that a run was made by."""
    found: dict[str, str] = json.loads(run.logged.tags.get("own_code", "{}"))
    return found


def vouched(run: KeptRun) -> Iterator[Finding]:
    """Compare what a manifest says of its run beside the files with what MLflow says."""
    about = manifest.read(run.folder)
    for name, tag in (("cell_key", "cell_key"), ("code", "code_hash"), ("data", "data_hash")):
        if (kept := about.get(name)) != (logged := run.logged.tags.get(tag)):
            yield Finding(Verdict.DIFFERENT, f"{name} is {kept!r} in {manifest.NAME}, tag {tag} is {logged!r}")


def model(run: KeptRun, cell: Cell) -> Iterator[Finding]:
    """Compare what is said to have decided the replies with the settings, as far as those say it as it is."""
    signature = run.model["signature"]
    if not cell.model.label.startswith(str(signature["model"])):
        told = f"{MODEL} says that {signature['model']!r} answered, the settings name {cell.model.label!r}"
        yield Finding(Verdict.DIFFERENT, told)
    for name, value in run.config["model"].items():
        said = signature.get(name, value)
        if value != "auto" and not isinstance(value, dict) and not _alike(said, value):
            yield Finding(Verdict.DIFFERENT, f"model.{name} is {value!r} in the settings, {said!r} in {MODEL}")


def _alike(one: object, other: object) -> bool:
    """Tell whether two values of a setting are the same; YAML reads 3e-5 as text."""
    try:
        return float(str(one)) == float(str(other))
    except ValueError:
        return one == other


def queries(run: KeptRun, cell: Cell, asked: Asked) -> Iterator[Finding]:
    """Compare what was asked with the texts, and each reply's key with the hash of what was asked."""
    queries = [*asked.clean, *(asked.disturbed if cell.rate else ())]
    keys = [*asked.clean_keys, *(asked.disturbed_keys if cell.rate else ())]
    found = asked.mitigated
    came = [*found.clean.came, *(found.disturbed.came if cell.rate else ())] if found else queries
    for row, query in zip(run.predictions, came, strict=True):
        if (row["text"], row["question"]) != (query.text, query.question):
            yield Finding(Verdict.DIFFERENT, f"text {row['id']}: {row['text']!r} was asked about, not {query.text!r}")
    for row, query, key in zip(run.calls, queries, keys, strict=True):
        if cell.keep_text and not all(
            part in _strings(json.loads(row["request"])) for part in (query.text, query.question)
        ):
            yield Finding(Verdict.DIFFERENT, f"text {row['id']}: what was put to the model does not hold it")
        if row["reply_key"] != key:
            yield Finding(Verdict.DIFFERENT, f"text {row['id']}: its reply's key is not the hash of what was asked")
    if (again := study.key(cell, asked, run.logged.tags["code_hash"], _own(run))) != run.logged.tags["cell_key"]:
        yield Finding(
            Verdict.DIFFERENT, f"cell_key is {run.logged.tags['cell_key']}, what it was made of gives {again}"
        )


def factors(run: KeptRun, cell: Cell) -> Iterator[Finding]:
    """Compare the values of an ablation's factors with the settings; a group's choice is in the cell's key alone."""
    for name, value in cell.factors:
        found = OmegaConf.select(OmegaConf.create(run.config), name)
        if not isinstance(found, DictConfig) and jobs.text(_plain(found)) != value:
            told = f"factor {name} is {value!r}, the run's settings have {jobs.text(_plain(found))!r}"
            yield Finding(Verdict.DIFFERENT, told)


def _plain(node: object) -> object:
    return OmegaConf.to_container(node) if isinstance(node, ListConfig) else node


def _strings(node: object) -> str:
    """Return all texts of a request, one after the other."""
    if isinstance(node, dict):
        return "\n".join(map(_strings, node.values()))
    return "\n".join(map(_strings, node)) if isinstance(node, list) else str(node)


def answers(run: KeptRun, cell: Cell, result: Result) -> Iterator[Finding]:
    """Compare what was read in each reply, and how right it is."""
    read: tuple[Read, ...] = (result.clean, result.disturbed) if cell.rate else (result.clean,)
    answers = [pair for one in read for pair in zip(one.answers, one.right, strict=True)]
    for row, (answer, right) in zip(run.predictions, answers, strict=True):
        kept, again = (row["value"], row["outcome"], row["right"]), (answer.value, str(answer.outcome), right)
        if kept != again:
            told = f"text {row['id']} ({row['version']}): its reply is read as {again}, the run has {kept}"
            yield Finding(Verdict.DIFFERENT, told + other_code(run))


def numbers(run: KeptRun, cell: Cell, asked: Asked, result: Result, counts: dict[str, int]) -> Iterator[Finding]:
    """Compare every number with what texts and answers give, and the words that stand for them."""
    fit = run.fit
    again = {**scoring.metrics(cell, asked, result), **(fits.metrics(fit) if fit else {})}
    kept = {name: value for name, value in run.numbers["metrics"].items() if name not in _MEASURED}
    counts["numbers"] = len(again)
    for name in sorted(again.keys() | kept.keys()):
        if not _close(name, kept.get(name), again.get(name)):
            told = f"{name} is {kept.get(name)} in {METRICS}, texts and answers give {again.get(name)}{other_code(run)}"
            yield Finding(Verdict.DIFFERENT, told)
    about = {"data_hash": asked.build.hash, "model": str(run.model["signature"]["model"])}
    for name, value in {**scoring.findings(cell, result), **experiment.design_tags(cell), **about}.items():
        if (found := run.numbers["tags"].get(name)) != value:
            yield Finding(Verdict.DIFFERENT, f"tag {name} is {found!r} in {METRICS}, texts and answers give {value!r}")


def _close(name: str, one: float | None, other: float | None) -> bool:
    tolerance = _MEANING if "bertscore" in name else _SAME
    return one is not None and other is not None and math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def logged(run: KeptRun, cell: Cell) -> Iterator[Finding]:
    """Compare what MLflow has with what the run wrote down."""
    if not run.logged.name.startswith(cell.name):
        yield Finding(Verdict.DIFFERENT, f"the run is called {run.logged.name!r} in MLflow, its cell {cell.name!r}")
    # People may add tags of their own, and write into the description.
    tags = {name: value for name, value in run.numbers["tags"].items() if not name.startswith("mlflow.")}
    pairs = [
        ("metric", run.logged.metrics, {logged_name(name): value for name, value in run.numbers["metrics"].items()}),
        ("tag", {name: run.logged.tags.get(name) for name in tags}, tags),
        ("parameter", run.logged.params, logged_params(experiment.params(cell))),
    ]
    for kind, logged, kept in pairs:
        for name in sorted(logged.keys() | kept.keys()):
            if logged.get(name) != kept.get(name):
                told = f"{kind} {name} is {logged.get(name)!r} in MLflow, the run had {kept.get(name)!r}"
                yield Finding(Verdict.DIFFERENT, told)
