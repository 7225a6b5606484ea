"""A study with invented texts and answers, in a real MLflow store, whose runs hold what real ones hold.

Words are strings of letters; answers are drawn so that they get worse with the level, and from model to model.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from noisyhealth.tracking.store import Store

CLOSED = ("accuracy", "precision_macro", "recall_macro", "f1_macro")
TASKS = {
    # labels, scenarios, words a text, words a reply
    "sentiment": (("positive", "negative"), CLOSED, 20, 15),
    "condition": (("neoplasm", "digestive", "cardiovascular"), CLOSED, 180, 20),
    "qa": ((), ("rougeL",), 250, 25),
}
RATES = {"typo": (0.1, 0.3, 0.5), "homophone": (0.1, 0.2, 0.3), "redact": (0.1, 0.3, 0.5)}
LEVELS = ("low", "mid", "high")


def store_in(folder: Path, study: str) -> Store:
    """Return the store that `analyze.py` finds in a folder."""
    return Store(f"sqlite:///{folder}/mlflow.db", str(folder / "mlruns"), study, str(folder / "store.lock"))


def make(store: Store, folder: Path, *, models: int, examples: int, weights: str = "invented") -> None:
    """Write a study's runs; `folder` is for scratch."""
    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 6)) for _ in range(5000)])
    conditions = [Condition("none", "none", 0.0)]
    conditions += [
        Condition(name, level, rate) for name, rates in RATES.items() for level, rate in zip(LEVELS, rates, strict=True)
    ]
    bar = tqdm(total=len(TASKS) * len(conditions) * models, desc="making runs", disable=None)
    for task in TASKS:
        texts = Texts(task, words, examples, rng)
        for model in range(models):
            clean = texts.answers(0.0, model, rng)
            for condition in conditions:
                given = texts.answers(condition.rate, model, rng) if condition.rate else clean
                write(store, folder, Cell(texts, f"model{model:02d}", weights, condition, clean, given))
                bar.update()
    bar.close()


@dataclass(frozen=True)
class Condition:
    """A perturbation at a level; rate 0 is the clean text."""

    perturb: str
    level: str
    rate: float


class Texts:
    """The texts of a task, invented, and answers to them."""

    def __init__(self, task: str, words: Any, count: int, rng: Any) -> None:
        self.task, self.words = task, words
        self.labels, self.scenarios, self.length, self.reply = TASKS[task]
        self.ids = [f"{task}-{at:05d}" for at in range(count)]
        self.tokens = rng.choice(words, (count, self.length))
        self.texts = [" ".join(row) for row in self.tokens]
        firsts = [" ".join(row[:6]) for row in self.tokens]
        self.targets = [str(one) for one in rng.choice(self.labels, count)] if self.labels else firsts
        self.ranks = rng.permuted(np.tile(np.arange(self.length), (count, 1)), axis=1)
        self.groups = [""] * count
        self.prompts = [" ".join([*self.texts[:5], text]) for text in self.texts]
        self.disturbed: dict[float, pa.Table] = {}

    def variants(self, rate: float) -> pa.Table:
        """Return what a run keeps of its texts; of every word changed, the last letter is another."""
        if rate not in self.disturbed:
            many = round(self.length * rate)
            self.disturbed[rate] = pa.Table.from_pylist(
                [
                    variant(name, row, sorted(order[:many]))
                    for name, row, order in zip(self.ids, self.tokens, self.ranks, strict=True)
                ]
            )
        return self.disturbed[rate]

    def answers(self, rate: float, model: int, rng: Any) -> dict[str, list[Any]]:
        """Return values, how right they are, and replies."""
        hit = rng.random(len(self.ids)) < 0.9 - 0.01 * model - 0.4 * rate
        other = rng.choice(self.labels, len(hit)) if self.labels else ["another answer"] * len(hit)
        values = [target if h else str(o) for target, h, o in zip(self.targets, hit, other, strict=True)]
        right = [float(value == target) for value, target in zip(values, self.targets, strict=True)]
        if not self.labels:
            right = [float(r) for r in np.where(hit, rng.beta(4, 3, len(hit)), rng.beta(1, 8, len(hit))).round(4)]
        tails = [" ".join(row) for row in rng.choice(self.words, (len(values), self.reply))]
        replies = [f"{value} because {tail}" for value, tail in zip(values, tails, strict=True)]
        return {"value": values, "right": right, "reply": replies, "outcome": ["scored"] * len(values)}


@dataclass(frozen=True)
class Cell:
    """One cell, and what was answered to its clean and its disturbed texts."""

    texts: Texts
    model: str
    weights: str
    condition: Condition
    clean: dict[str, list[Any]]
    given: dict[str, list[Any]]


def variant(name: str, words: Any, places: list[int]) -> dict[str, Any]:
    """Return the row of a text whose words at some places have another last letter."""
    changed, edits = [str(word) for word in words], []
    for at in places:
        before, after = changed[at], changed[at][:-1] + ("y" if changed[at][-1] == "x" else "x")
        changed[at] = after
        edits.append(
            {
                **{"start": int(at) * 7, "before": before, "after": after, "op": "substitution", "pos": "NOUN"},
                **{"medical": bool(at % 4 == 0), "word": int(at), "flags": []},
            }
        )
    medical = sum(edit["medical"] for edit in edits) / len(edits) if edits else 0.0
    return {
        **{"id": name, "original": " ".join(words), "disturbed": " ".join(changed), "edits": json.dumps(edits)},
        **{"edited_words": len(edits), "dose_medical": medical},
    }


def scores(texts: Texts, given: dict[str, list[Any]]) -> dict[str, float]:
    """Return the scores of a cell, as the package computes them."""
    from noisyhealth.metrics import classification

    if texts.labels:
        found = classification.scores(texts.targets, given["value"], texts.labels)
        return {name: found[name] for name in texts.scenarios}
    return {"rougeL": float(np.mean(given["right"]))}


def write(store: Store, folder: Path, cell: Cell) -> str:
    """Log one run as the package does, and return its id."""
    texts, rate, n = cell.texts, cell.condition.rate, len(cell.texts.ids)
    place = (texts.task, cell.model, cell.condition.perturb, cell.condition.level)
    run = store.start(" · ".join(place), tags(cell), {"rate": rate})
    files = folder / run
    files.mkdir(parents=True)
    pq.write_table(texts.variants(rate), files / "variants.parquet", compression="zstd")
    pq.write_table(predictions(cell), files / "predictions.parquet", compression="zstd")
    metrics = {"n": n, **scores(texts, cell.given), **{f"seconds/{at}": 0.1 for at in range(20)}}
    metrics["outcome/scored"] = n - sum(one != "scored" for one in cell.given["outcome"])
    if rate:
        metrics |= {f"clean/{name}": value for name, value in scores(texts, cell.clean).items()}
        metrics |= {"clean_outcome/scored": n - sum(one != "scored" for one in cell.clean["outcome"])}
        metrics |= {f"dose/{name}": rate for name in ("edits", "words", "valid_words", "characters", "medical")}
    store.log(run, metrics, {}, files)
    store.end(run, "FINISHED")
    shutil.rmtree(files)
    return run


def tags(cell: Cell) -> dict[str, str]:
    """Return a run's tags."""
    texts, (perturb, level) = cell.texts, (cell.condition.perturb, cell.condition.level)
    return {
        **{"kind": "cell", "task": texts.task, "model": cell.model, "answered_by": cell.model, "weights": cell.weights},
        **{"perturb": perturb, "level": level, "headline": texts.scenarios[0], "scenarios": ",".join(texts.scenarios)},
        **{
            "labels": json.dumps(texts.labels),
            "field": "text",
            "cell_key": f"{texts.task}{cell.model}{perturb}{level}",
        },
        **{"data_hash": f"data-{texts.task}", "code_hash": "code"},
    }


def predictions(cell: Cell) -> pa.Table:
    """Return what a run keeps of its answers, the prompts among it."""
    texts, n = cell.texts, len(cell.texts.ids)
    versions = [("clean", cell.clean), *([("disturbed", cell.given)] if cell.condition.rate else [])]
    return pa.concat_tables(
        pa.table(
            {
                **{"id": texts.ids, "group": texts.groups, "version": [version] * n, "text": texts.texts},
                **{"question": [""] * n, "target": texts.targets, **given},
                "request": texts.prompts,
            }
        )
        for version, given in versions
    )
