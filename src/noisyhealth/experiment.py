"""One cell from its settings to its run: ask, read, score, compare with the clean text, log."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import fmean

from noisyhealth import evidence, fits, study, version
from noisyhealth.analysis import impact
from noisyhealth.calls import EMPTY, ask, journal
from noisyhealth.evidence import Read, Result
from noisyhealth.models.model import FREE, Model, Price
from noisyhealth.records import Outcome, Reply, Scores
from noisyhealth.settings import Cell
from noisyhealth.study import Asked, Record
from noisyhealth.text.flags import FLAGS
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
    run_id = cell.store.start(cell.name, _tags(cell, asked, key), _params(cell), parent)
    try:
        result = _result(cell, asked, budget, given)
        fit = cell.model.fitted()
        metrics = {**_metrics(cell, asked, result), **(fits.metrics(fit) if fit else {})}
        metrics["seconds/total"] = time.perf_counter() - start
        tags = _findings(cell, result, metrics) | ({"fit": fit.key, "fit_run": fits.run_of(cell, fit)} if fit else {})
        with tempfile.TemporaryDirectory() as folder:
            evidence.write(Path(folder), cell, asked, result)
            cell.store.log(run_id, metrics, tags, Path(folder))
        cell.store.end(run_id, "FINISHED")
    except Exception as error:
        cell.store.tag(run_id, "error", f"{type(error).__name__}: {error}"[:4000])
        cell.store.end(run_id, "FAILED")
        raise
    except BaseException:
        cell.store.end(run_id, "KILLED")
        raise
    return record(cell, key, study.DONE, run_id)


def record(cell: Cell, key: str, status: str, run_id: str) -> Record:
    """Return the record of a cell that has a finished run."""
    return Record(cell.name, key, status, run_id, cell.store.headline(run_id))


def _result(cell: Cell, asked: Asked, budget: Budget, given: Mapping[str, Reply]) -> Result:
    """Return replies, answers and scores of both texts."""
    keys = [*asked.clean_keys, *asked.disturbed_keys]
    replies = ask(cell.model, [*asked.clean, *asked.disturbed], keys, journal(cell), budget, given)
    clean = _read(cell, asked, replies[: len(asked.clean)])
    # The baseline's texts are the clean ones: scoring them twice would only cost time.
    disturbed = _read(cell, asked, replies[len(asked.clean) :]) if cell.rate else clean
    return Result(clean, disturbed)


def _read(cell: Cell, asked: Asked, replies: Sequence[Reply]) -> Read:
    answers = tuple(cell.task.read(reply) for reply in replies)
    right = tuple(cell.task.right(example, answer) for example, answer in zip(asked.examples, answers, strict=True))
    return Read(tuple(replies), answers, right, cell.task.score(asked.examples, answers))


def _metrics(cell: Cell, asked: Asked, result: Result) -> Scores:
    """Return everything that is a number: scores, changes, outcomes, dose, tokens and seconds."""
    costs = _costs(cell.model, result.disturbed.replies)
    metrics: Scores = {"n": len(asked.examples), **result.disturbed.scores, **costs, **_reading(result.disturbed)}
    for name, interval in cell.task.intervals(asked.examples, result.disturbed.answers, cell.seed).items():
        metrics |= {f"ci_low/{name}": interval.low, f"ci_high/{name}": interval.high}
    metrics |= _outcomes(result.disturbed, "outcome")
    if cell.rate:
        metrics |= _outcomes(result.clean, "clean_outcome") | _changes(result) | _dose(asked)
        metrics |= {f"clean/{name}": score for name, score in result.clean.scores.items()}
        spent = _costs(cell.model, result.clean.replies) | _reading(result.clean)
        metrics |= {f"clean_{name}": cost for name, cost in spent.items()}
    return metrics


def _costs(model: Model, replies: Sequence[Reply]) -> Scores:
    """Return tokens, money and seconds of replies, as they were when each was first given.

    No money where the price is not known, or a reply is paid for whose tokens the server did not count.
    """
    price = model.price()
    unknown = sum(reply.detail.get("usage") == "unknown" for reply in replies)
    known = price and (price == FREE or not unknown)
    return {
        **({"cost/usd": sum(_usd(model, price, reply) for reply in replies)} if price and known else {}),
        **({"tokens/unknown": unknown} if unknown else {}),
        "tokens/prompt": sum(reply.prompt_tokens for reply in replies),
        "tokens/reply": sum(reply.reply_tokens for reply in replies),
        "seconds/replies": sum(reply.seconds for reply in replies),
    }


def _reading(read: Read) -> Scores:
    """Return how a model that has a limit read the texts, as means over them; nothing where no reply says.

    `tokens/per_word`: word pieces a word, which typing errors drive up. `tokens/truncated`: fraction of a text's
    pieces beyond the limit, which the model never saw.
    """
    found = {"tokens/per_word": "pieces_per_word", "tokens/truncated": "truncated"}
    values = {name: [float(str(r.detail[key])) for r in read.replies if key in r.detail] for name, key in found.items()}
    return {name: fmean(shares) for name, shares in values.items() if shares}


def _usd(model: Model, price: Price, reply: Reply) -> float:
    """Return what a reply cost by the way it came, in a batch or not; the price is that of the model's own way."""
    share = float(getattr(model, "batch_share", 1.0))
    as_it_came = (share if "batch" in reply.detail else 1.0) / (share if model.batch else 1.0)
    return price.times(as_it_came).usd(reply.prompt_tokens, reply.reply_tokens)


def _outcomes(read: Read, prefix: str) -> Scores:
    counts = Counter(a.outcome for a in read.answers)
    return {f"{prefix}/{outcome}": counts[outcome] for outcome in Outcome}


def _changes(result: Result) -> Scores:
    """Return the relative change of each score; none where the clean score is 0."""
    found = {name: impact.change(s, result.clean.scores[name]) for name, s in result.disturbed.scores.items()}
    return {f"change/{name}": change for name, change in found.items() if change is not None}


def _dose(asked: Asked) -> Scores:
    """Return what the disturbance really was, as means over the texts.

    `touched/...`: fraction of the texts in which a negation, a number, a side or a drug name was touched.
    """
    doses = [variant.dose for variant in asked.variants]
    touched = [{flag for edit in variant.edits for flag in edit.flags} for variant in asked.variants]
    return {
        "dose/words": fmean(dose.words for dose in doses),
        "dose/valid_words": fmean(dose.valid_words for dose in doses),
        "dose/characters": fmean(dose.characters for dose in doses),
        "dose/edit_distance": fmean(dose.edit_distance for dose in doses),
        "dose/medical": fmean(dose.medical for dose in doses),
        "dose/edits": fmean(len(variant.edits) for variant in asked.variants),
        **{f"touched/{flag}": fmean(flag in found for found in touched) for flag in FLAGS},
    }


def _findings(cell: Cell, result: Result, metrics: Scores) -> dict[str, str]:
    """Return the tags that can only be known at the end: who answered, categories, and the run's description."""
    servers = _servers([*result.clean.replies, *result.disturbed.replies])
    if not cell.rate:
        return servers
    scores = {name: (result.disturbed.scores[name], result.clean.scores[name]) for name in cell.task.scenarios}
    tags = {f"category/{name}": str(impact.category(*pair)) for name, pair in scores.items()}
    head, n = cell.task.headline, int(metrics["n"])
    score, clean = scores[head]
    relative = impact.change(score, clean)
    shown = "undefined change" if relative is None else f"{relative:+.1%}"
    category = tags[f"category/{head}"]
    note = f"{head} {clean:.3f} → {score:.3f} ({shown}, **{category}**) on {n} texts"
    return {**servers, **tags, "category": category, "mlflow.note.content": note}


def _servers(replies: Sequence[Reply]) -> dict[str, str]:
    """Return which models answered, by the servers' own words; nothing where no server said."""
    names = sorted({str(name) for reply in replies if (name := reply.detail.get("server_model"))})
    return {"server_models": ",".join(names)} if names else {}


def _tags(cell: Cell, asked: Asked, key: str) -> dict[str, str]:
    signature = cell.model.signature()
    return {
        "kind": "cell",
        "task": cell.task.name,
        "model": str(signature["model"]),
        # What model.dtype=auto came to.
        **({"dtype": str(signature["dtype"])} if "dtype" in signature else {}),
        "answered_by": cell.model.label,
        "weights": cell.weights,
        "perturb": cell.perturb,
        "level": cell.level,
        "prompt": cell.prompt,
        "prompt_hash": sha256(json.dumps(cell.resolved["prompt"], sort_keys=True).encode()).hexdigest()[:16],
        "homophones": str(cell.resolved["homophones"]["_target_"]).rpartition(".")[2],
        "headline": cell.task.headline,
        "scenarios": ",".join(cell.task.scenarios),
        "labels": json.dumps(list(cell.task.labels), ensure_ascii=False),
        "field": cell.field,
        "cell_key": key,
        "data_hash": asked.build.hash,
        "code_hash": version.of(),
        **version.git(),
    }


def _params(cell: Cell) -> dict[str, object]:
    """Return the choices and the settings as flat names: "model.temperature"."""
    shown = {k: v for k, v in cell.resolved.items() if k in ("task", "model", "data", "seed", "study", "threads")}
    own = {} if not cell.rate else {"perturb": cell.resolved["perturb"]}
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
