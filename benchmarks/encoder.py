"""What fine-tuning an encoder gains over simple baselines, on real texts and fixed splits.

    python benchmarks/encoder.py [--only tweets] [--accelerator cuda] [SETTING=VALUE ...]

The embedded weights unless a setting says otherwise, as `weights=study`. Tweets and abstracts: accuracy against
TF-IDF with logistic regression, tuned by cross-validation on the same training texts. Questions on abstracts: ROUGE-L
against the abstract's first sentence. Of the training texts a fifth is the encoder's validation set; the baselines
learn from all. Printed last: `tweets_gain` and `conditions_gain` in points of accuracy, `qa_gain` in points of ROUGE-L.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import fmean

from noisyhealth import settings
from noisyhealth.cell import Cell
from noisyhealth.metrics import overlap
from noisyhealth.models.encoder.encoder import Encoder
from noisyhealth.records import Example, Query, Training

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
MOODS = {
    **dict.fromkeys(("happiness", "love", "fun", "relief", "enthusiasm"), "positive"),
    **dict.fromkeys(("worry", "sadness", "hate", "boredom", "anger"), "negative"),
}
CONDITIONS = {"1": "neoplasm", "2": "digestive", "4": "cardiovascular"}


@dataclass(frozen=True)
class Set:
    """Real texts of one task: how many to train on and to test, what to tune, what to beat."""

    read: Callable[[Path], list[Example]]
    task: str
    train: int
    test: int
    settings: tuple[str, ...]
    baseline: Callable[[Sequence[Example], Sequence[Example]], float]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", help="as on the command line of run.py: model.learning_rate=1e-4")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the files")
    parser.add_argument("--only", choices=SETS, help="one of the three")
    parser.add_argument("--accelerator", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", default=".cache/benchmark", help="where fits are kept; the same fit is made once")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    gains = {}
    for name, found in SETS.items():
        if options.only in (None, name):
            gains[name] = gain(name, found, options)
    print(" ".join(f"{name}_gain={points:.2f}" for name, points in gains.items()))


def gain(name: str, found: Set, options: argparse.Namespace) -> float:
    """Return by how many points the encoder beats the baseline on a set's test texts."""
    if not options.data.is_dir():
        sys.exit(f"{options.data}: no such folder; give it with --data")
    examples = sorted(found.read(options.data), key=lambda e: sha256(e.id.encode()).digest())
    if len(examples) < found.train + found.test:
        sys.exit(f"{name}: {len(examples)} texts, {found.train + found.test} needed")
    test, train = examples[: found.test], examples[found.test : found.test + found.train]
    model = encoder(found, options)
    fifth = len(train) // 5
    model.fit(settings_of(found, options).task.wording, Training((), tuple(train[fifth:]), tuple(train[:fifth])))
    options_of = tuple(sorted({e.target for e in train})) if found.task != "qa" else ()
    queries = [Query(e.id, e.text, e.question, options_of) for e in test]
    start = time.perf_counter()
    replies = {reply.id: reply for reply in model.predict(queries)}
    took = time.perf_counter() - start
    fit = model.fitted()
    assert fit is not None
    if found.task == "qa":
        ours = fmean(overlap.rouge_l_each([e.target for e in test], [replies[e.id].text for e in test]))
    else:
        ours = fmean(replies[e.id].text == e.target for e in test)
    theirs = found.baseline(train, test)
    facts = {key: fit.facts[key] for key in ("epochs", "score", "validation_score", "seconds", "unusable", "threads")}
    truncated = fmean(float(str(reply.detail["truncated"])) for reply in replies.values())
    print(
        f"{name}: {model.label} {100 * ours:.2f}, baseline {100 * theirs:.2f}, {len(train)} training and {len(test)} "
        f"test texts; {took:.0f} s fit and replies; {truncated:.1%} of the texts not read\n"
        f"  {json.dumps(facts)} {fit.facts['recipe']}",
        flush=True,
    )
    return 100 * (ours - theirs)


def settings_of(found: Set, options: argparse.Namespace) -> Cell:
    """Return a cell of the set's task with an encoder."""
    given = ["model=bluebert", f"task={found.task}", f"cache={options.cache}", *found.settings, *options.settings]
    [cfg] = settings.compose(ROOT / "conf", [*given, f"model.accelerator={options.accelerator}"])
    return settings.cell(cfg)


def encoder(found: Set, options: argparse.Namespace) -> Encoder:
    """Return the encoder that a set is learnt by."""
    model = settings_of(found, options).model
    assert isinstance(model, Encoder)
    model.check()
    return model


def tweets(data: Path) -> list[Example]:
    """Return tweets with a clear mood, those with two left out."""
    with (data / "tweet_emotions" / "tweet_emotions.csv").open(encoding="utf-8", newline="") as file:
        return labelled((row["content"], MOODS.get(row["sentiment"], "")) for row in csv.DictReader(file))


def abstracts(data: Path) -> list[Example]:
    """Return abstracts of the study's three conditions, those under two left out."""
    csv.field_size_limit(sys.maxsize)
    with (data / "medical_abstracts" / "medical_tc_test.csv").open(encoding="utf-8", newline="") as file:
        rows = ((row["medical_abstract"], CONDITIONS.get(row["condition_label"], "")) for row in csv.DictReader(file))
        return labelled(rows)


def labelled(rows: Iterable[tuple[str, str]]) -> list[Example]:
    """Return distinct texts that have one label, and that label."""
    found: dict[str, set[str]] = {}
    for text, label in rows:
        found.setdefault(text.strip(), set()).add(label)
    kept = ((text, labels.pop()) for text, labels in found.items() if text and len(labels) == 1)
    return [Example(sha256(text.encode()).hexdigest()[:16], text, label) for text, label in kept if label]


def questions(data: Path) -> list[Example]:
    """Return questions on abstracts without their conclusion, which is the answer."""
    found = json.loads((data / "pubmedqa" / "ori_pqal.json").read_text(encoding="utf-8"))
    return [Example(key, "\n".join(row["CONTEXTS"]), row["LONG_ANSWER"], row["QUESTION"]) for key, row in found.items()]


def logistic(train: Sequence[Example], test: Sequence[Example]) -> float:
    """Return the accuracy of TF-IDF and logistic regression, the best of a grid by five-fold cross-validation."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    grid: Mapping[str, list[object]] = {
        "tfidfvectorizer__ngram_range": [(1, 1), (1, 2)],
        "tfidfvectorizer__min_df": [1, 2, 3],
        "tfidfvectorizer__sublinear_tf": [True],
        "logisticregression__C": [0.3, 1, 3, 10, 30],
    }
    search = GridSearchCV(make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=2000)), dict(grid), cv=5)
    search.fit([e.text for e in train], [e.target for e in train])
    return float(search.score([e.text for e in test], [e.target for e in test]))


def first_sentence(train: Sequence[Example], test: Sequence[Example]) -> float:
    """Return the ROUGE-L of the text's first sentence as the answer."""
    firsts = [re.split(r"(?<=[.!?])\s+", e.text.strip(), maxsplit=1)[0] for e in test]
    return fmean(overlap.rouge_l_each([e.target for e in test], firsts))


# Chosen on the validation texts, within what two processor cores can try.
SETS = {
    "tweets": Set(
        tweets,
        "sentiment",
        2500,
        1000,
        ("model.frozen=0", "model.batch_size=16", "model.learning_rate=1e-4", "model.max_length=128"),
        logistic,
    ),
    "conditions": Set(
        abstracts,
        "condition",
        900,
        400,
        ("model.frozen=2", "model.batch_size=16", "model.learning_rate=2e-4", "model.max_length=320", "model.epochs=3"),
        logistic,
    ),
    "qa": Set(
        questions,
        "qa",
        700,
        300,
        ("model.frozen=2", "model.batch_size=16", "model.learning_rate=2e-4", "model.longest=60", "model.epochs=3"),
        first_sentence,
    ),
}

if __name__ == "__main__":
    main()
