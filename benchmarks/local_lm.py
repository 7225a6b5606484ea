"""How fast labels are chosen in this process, against lm-evaluation-harness on the same weights and prompts.

    pip install -c constraints.txt -e '.[bench]'
    python benchmarks/local_lm.py [--dtype float32] [--texts 400] [--theirs 30]

The embedded weights, five shots, 400 tweets and 400 abstracts; both have the weights in memory, the same number format
and the same threads, and take their turn in one process. Printed last: `sentiment` and `condition` are our texts a
second over those of lm-evaluation-harness's `hf` backend, `agreement` the share of texts, exact ties excepted, for
which both choose the same label, `texts_per_s` ours over both tasks. The harness reads every prompt whole and takes
most of the time, without bfloat16 in the processor 20 s for an abstract: `--theirs 30` gives it every so many-th text,
30 of each task, and both are timed on those.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from noisyhealth import settings
from noisyhealth.models.local import causal
from noisyhealth.models.local.causal import CausalLM
from noisyhealth.models.local.local import Local
from noisyhealth.records import Example, Query, Training
from noisyhealth.tasks.classification import Classification

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
# Of each task: a file, its column of texts, and lm-evaluation-harness's best batch on two cores.
SETS = {
    "sentiment": ("tweet_emotions/tweet_emotions.csv", "content", 16),
    "condition": ("medical_abstracts/medical_tc_test.csv", "medical_abstract", 8),
}
LONG = 8, 512  # rows and tokens of the batches that tell what the processor reaches


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the two files")
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--theirs", type=int, help="of how many texts lm-evaluation-harness chooses the label too")
    parser.add_argument("--shots", type=int, default=5)
    parser.add_argument("--dtype", default="auto", help="auto, bfloat16 or float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alone", action="store_true", help="without lm-evaluation-harness")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    os.environ["HF_HUB_OFFLINE"] = "1"
    ratios, same, compared, seconds = {}, 0, 0, 0.0
    for task, (file, column, batch) in SETS.items():
        if not (options.data / file).exists():
            sys.exit(f"{options.data / file}: no such file; give the folder with --data")
        texts = read(options.data / file, column, options.texts + options.shots)
        model, labels = made(task, texts[: options.shots], options)
        queries = [Query(str(at), text, "", labels) for at, text in enumerate(texts[options.shots :])]
        lm = model._lm()
        reached = prefill(lm)
        took, ours = time_ours(model, queries)
        seconds += took
        shared = len(lm._prefix)
        speed = (sum(len(model._tokens(lm, query)) - shared for query in queries) + shared) / took
        print(
            f"{task}: {causal.pick_dtype(options.dtype)}, {len(queries)} texts, {shared} tokens shared; ours "
            f"{len(queries) / took:.2f} texts/s, {speed:,.0f} tokens/s ({speed / reached:.0%} of the {reached:,.0f} of "
            "long batches)"
        )
        if options.alone:
            continue
        both = queries[:: max(1, len(queries) // (options.theirs or len(queries)))]
        if len(both) < len(queries):
            took, ours = time_ours(model, both)
        theirs_took, theirs = time_theirs(lm, model, both, batch)
        ratios[task] = theirs_took / took
        untied = [at for at, row in enumerate(theirs) if len(set(sorted(row)[-2:])) > 1]
        compared += len(untied)
        same += sum(ours[at] == labels[theirs[at].index(max(theirs[at]))] for at in untied)
        print(
            f"{task}: of {len(both)} texts lm-evaluation-harness does {len(both) / theirs_took:.3f} a second, "
            f"ours {len(both) / took:.3f}; {len(both) - len(untied)} exact ties"
        )
    if ratios:
        print(
            f"sentiment={ratios['sentiment']:.2f} condition={ratios['condition']:.2f} "
            f"agreement={same / compared:.4f} texts_per_s={len(SETS) * options.texts / seconds:.2f}"
        )


def read(file: Path, column: str, count: int) -> list[str]:
    """Return the first distinct texts of a file."""
    csv.field_size_limit(sys.maxsize)
    with file.open(encoding="utf-8-sig", newline="") as lines:
        found = dict.fromkeys(row[column].strip() for row in csv.DictReader(lines) if row[column].strip())
    return list(found)[:count]


def made(task: str, shots: Sequence[str], options: argparse.Namespace) -> tuple[Local, tuple[str, ...]]:
    """Return the study's model with these shots, labelled in turn, and the task's labels."""
    [cfg] = settings.compose(ROOT / "conf", [f"task={task}", "model=llama", f"prompt.shots={options.shots}"])
    cell = settings.cell(cfg)
    assert isinstance(cell.task, Classification)
    assert isinstance(cell.model, Local)
    labels = tuple(cell.task.labels)
    pool = tuple(Example(f"shot {at}", text, labels[at % len(labels)]) for at, text in enumerate(shots))
    model = replace(cell.model, dtype=options.dtype, calibration="none")
    model.fit(cell.task.wording, Training(pool, (), ()))
    return model, labels


def prefill(lm: CausalLM) -> float:
    """Return the tokens a second that the processor reads in long batches."""
    import torch

    rows, tokens = LONG
    ids = torch.randint(100, 40_000, (rows, tokens), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        times = [timed(lambda: lm.model(input_ids=ids, use_cache=False, logits_to_keep=1)) for _ in range(3)]
    return rows * tokens / min(times)


def timed(work: Any) -> float:
    """Return the seconds something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def time_ours(model: Local, queries: Sequence[Query]) -> tuple[float, list[str]]:
    """Return the seconds from texts to labels, the shared beginning included, and the labels."""
    list(model.predict(queries[:2]))  # weights loaded and memory taken, as on the other side
    lm = model._lm()
    lm._prefix, lm._prefix_cache = [], None
    start = time.perf_counter()
    replies = {reply.id: reply.text for reply in model.predict(queries)}
    return time.perf_counter() - start, [replies[query.id] for query in queries]


def time_theirs(lm: CausalLM, model: Local, queries: Sequence[Query], batch: int) -> tuple[float, list[list[float]]]:
    """Return the seconds of lm-evaluation-harness for the same, and each label's likelihood."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    plain = type(lm.model).from_pretrained(model.source.folder(), dtype=lm.model.dtype).eval()
    harness = HFLM(pretrained=plain, tokenizer=lm.tokenizer, batch_size=batch, device="cpu", add_bos_token=False)
    labels = queries[0].options
    asked = [(model.text(lm, query), f" {label}") for query in queries for label in labels]
    requests = [Instance("loglikelihood", {}, pair, at) for at, pair in enumerate(asked)]
    harness.loglikelihood(requests[: 2 * len(labels)], disable_tqdm=True)
    start = time.perf_counter()
    found = [score for score, _ in harness.loglikelihood(requests, disable_tqdm=True)]
    took = time.perf_counter() - start
    return took, [found[at : at + len(labels)] for at in range(0, len(found), len(labels))]


if __name__ == "__main__":
    main()
