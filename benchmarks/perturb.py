"""How fast texts are disturbed, against tagging alone, nlpaug and TextAttack on the same texts in the same run.

    pip install -c constraints.txt -e '.[bench]'
    pip install --no-deps --require-hashes -r benchmarks/requirements-textattack.txt
    python benchmarks/perturb.py [FILE.csv COLUMN]

Takes about seven minutes on the 2,770 abstracts of the Medical Abstracts corpus' test split, in one process. Printed
last: `floor` is the time of the whole build over that of tagging once; `ratio_nlpaug` and `ratio_textattack` are words
a second of our typos over theirs (nlpaug's fastest at each rate), the lowest of the three rates.
"""

from __future__ import annotations

import argparse
import csv
import gc
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import peers

from noisyhealth import settings
from noisyhealth.dataset import build
from noisyhealth.dataset.design import Design
from noisyhealth.perturbations.engine import Key, OutOfReach, Perturbation, disturb, ranked
from noisyhealth.records import Example, Word
from noisyhealth.sources.source import Read
from noisyhealth.text import tagger
from noisyhealth.text.flags import flags

ROOT = Path(__file__).parents[1]
TEXTS = ROOT.parent / "shared" / "data" / "medical_abstracts" / "medical_tc_test.csv"
RATES = (0.1, 0.3, 0.5)
REPEATS = 1  # a run is long enough
TEXTATTACK_TEXTS = 3  # of median length: it needs hours for all

Maker: TypeAlias = Callable[[float], Callable[[str], str]]


@dataclass(frozen=True)
class Given:
    """Texts as a source of examples with one label."""

    texts: Sequence[str]
    name: str = "given"

    def read(self, task: str) -> Iterator[Read]:
        """Yield an example for each text."""
        return (Read(Example(str(at), text, "any")) for at, text in enumerate(self.texts))

    def state(self, task: str) -> str:
        """Return nothing: the build is never kept."""
        return ""

    def licence(self, task: str) -> str:
        """Return nothing."""
        return ""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=TEXTS)
    parser.add_argument("column", nargs="?", default="medical_abstract")
    parser.add_argument("--memory", type=int, help="only build so many texts and print the peak memory in MB")
    options = parser.parse_args()
    if not options.file.exists():
        sys.exit(f"{options.file}: no such file; give a CSV file and its column of texts")
    texts = read(options.file, options.column)
    if options.memory:
        time_build(texts[: options.memory])
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    words = sum(len(text.split()) for text in texts)
    print(f"{len(texts):,} texts, {words:,} words between white space; tagger {tagger.signature()}")
    alone = time_tagging(texts)
    whole = time_build(texts)
    print(f"tagging alone {alone:.1f} s ({words / alone:,.0f} words/s), nine variants and all {whole:.1f} s")
    small, large = (memory(options, count) for count in (len(texts) // 4, len(texts)))
    print(f"peak memory: {small:.0f} MB with a quarter of the texts, {large:.0f} MB with all")
    ours = time_typos(texts)
    nlpaug, split = time_nlpaug(texts, peers.NLPAUG), time_nlpaug(texts, peers.NLPAUG_SPLIT)
    textattack = time_textattack(sorted(texts, key=len)[len(texts) // 2 :][:TEXTATTACK_TEXTS])
    for name, found in (("noisyhealth", ours), *nlpaug.items(), *split.items(), ("TextAttack", textattack)):
        print(f"{name:36}" + "".join(f"{rate:5.0%} {found[rate]:10,.0f} words/s" for rate in RATES))
    fastest = {rate: max(found[rate] for found in nlpaug.values()) for rate in RATES}
    for name, found in [*nlpaug.items(), *split.items(), ("fastest of nlpaug", fastest)]:
        print(f"{name:36}" + "".join(f"{rate:5.0%} {ours[rate] / found[rate]:10.2f} times   " for rate in RATES))
    print(
        f"floor={whole / alone:.2f} ratio_nlpaug={min(ours[rate] / fastest[rate] for rate in RATES):.2f} "
        f"ratio_textattack={min(ours[rate] / textattack[rate] for rate in RATES):.0f} words_per_s={words / whole:.0f}"
    )


def read(file: Path, column: str) -> list[str]:
    """Return the distinct texts of a file, in their order."""
    csv.field_size_limit(sys.maxsize)
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(dict.fromkeys(row[column] for row in csv.DictReader(lines) if row[column].strip()))


def design(texts: Sequence[str]) -> Design:
    """Return the study's design for texts."""
    [cfg] = settings.compose(ROOT / "conf", ["data.split.test=20"])
    real = settings.design(cfg)
    return Design("sentiment", Given(texts), real.disturbances, real.split, real.tagger, real.seed, real.settings)


def time_tagging(texts: Sequence[str]) -> float:
    """Return the seconds that spaCy needs to tag all texts and nothing else."""
    pipe = tagger._load()
    return best(lambda: [None for _ in pipe.pipe(texts, batch_size=64)])


def time_build(texts: Sequence[str]) -> float:
    """Return the seconds of a whole build: read, tag, disturb nine times, split, write."""
    tagger._load()
    made = design(texts)
    with tempfile.TemporaryDirectory() as folder:
        return best(lambda: build.build(made, Path(folder)))


def memory(options: argparse.Namespace, count: int) -> float:
    """Return the peak memory in MB of a process that builds so many texts."""
    command = [sys.executable, __file__, str(options.file), options.column, "--memory", str(count)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def time_typos(texts: Sequence[str]) -> dict[float, float]:
    """Return the words/s of our engine with tags given, flags and doses included, at each rate."""
    found = design(texts)
    [typo] = [d.change for d in found.disturbances if d.name == "typo" and d.change]
    tagged = list(zip(texts, found.tagger.tag(texts), strict=True))
    tagged = [(text, words) for text, words in tagged if reaches(text, words, typo, max(RATES))]
    count = sum(len(words) for _, words in tagged)
    gc.collect()
    gc.freeze()  # the texts of this benchmark are no load of the engine's

    def at(rate: float) -> Callable[[], object]:
        return lambda: [reaches(text, words, typo, rate, str(i)) for i, (text, words) in enumerate(tagged)]

    return {rate: count / best(at(rate)) for rate in RATES}


def reaches(text: str, words: Sequence[Word], typo: Perturbation, rate: float, example: str = "") -> bool:
    """Make the typos of one text and tell whether it reaches the rate."""
    edits = ranked(text, words, typo, Key(0, "any", example, "typo").rng(), flags)
    return not isinstance(disturb(text, words, edits, rates={"rate": rate}, example=example)["rate"], OutOfReach)


def time_nlpaug(texts: Sequence[str], makers: Mapping[str, Maker]) -> dict[str, dict[float, float]]:
    """Return the words/s of several typo-makers of nlpaug at each rate."""
    return {name: time_peer(make, texts) for name, make in makers.items()}


def time_textattack(texts: Sequence[str]) -> dict[float, float]:
    """Return the words/s of TextAttack at each rate."""
    return time_peer(peers.textattack_typos, texts)


def time_peer(make: Maker, texts: Sequence[str]) -> dict[float, float]:
    """Return the words/s of another library's typo-maker at each rate."""
    count, speeds = sum(len(text.split()) for text in texts), {}
    for rate in RATES:
        random.seed(0)
        np.random.seed(0)  # nlpaug draws from it
        typos = make(rate)
        speeds[rate] = count / best(lambda made=typos: [made(text) for text in texts])
    return speeds


def best(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the seconds of the fastest of some runs."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
