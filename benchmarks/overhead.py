"""What the package itself costs: seconds a cell beyond its model, and seconds until help and wrong input are answered.

    python benchmarks/overhead.py
    python benchmarks/overhead.py --repeats 8 --texts 1000

Each command is a process of its own, on the files that the one before left warm. The cells are those of the majority
model, which takes no time, on the local store; a sweep of one cell less a sweep of many leaves what each further cell
takes. CPU seconds (user and system) stand beside wall seconds, since a machine may be shared.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RUN, ASK = [str(ROOT / "run.py")], ["-m", "noisyhealth"]
CELLS = ["-m", "model=majority", "perturb=typo,homophone,redact", "level=low,mid,high"]
TARGETS = {"overhead_s": 0.3, "help_s": 1.5, "list_s": 1.5, "wrong_s": 1.5}
TIMES = 5  # that a short command is started


class Took(NamedTuple):
    """Seconds of a process: by the clock, and on processors."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} s, {self.cpu:.2f} s of processors"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4, help="times that the nine cells are run, each anew")
    parser.add_argument("--texts", type=int, default=20, help="texts a cell")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        found = {"overhead_s": cell(folder, given.repeats, given.texts)}
        shown = {"help_s": [*RUN, "--help"], "list_s": [*ASK, "list"], "wrong_s": [*RUN, "-m", "modle=gpt"]}
        for name, command in shown.items():
            code = 2 if name == "wrong_s" else 0
            all_of = [took(folder, command, code) for _ in range(TIMES)]
            found[name] = Took(median(one.wall for one in all_of), median(one.cpu for one in all_of))
    for name, one in found.items():
        print(f"{name:<10} {one}; target {TARGETS[name]} s: {'met' if one.wall <= TARGETS[name] else 'NOT MET'}")
    print(" ".join(f"{name}={one.wall:.3f}" for name, one in found.items()))


def cell(folder: Path, repeats: int, texts: int) -> Took:
    """Return what one more cell takes, in a sweep whose dataset and store are there."""
    given = [*RUN, *CELLS, f"data.split.test={texts}"]
    took(folder, [*given, "repeat=0"], 0)
    few = took(folder, [*RUN, "model=majority", "perturb=typo", "level=low", f"data.split.test={texts}", "repeat=1"], 0)
    many = took(folder, [*given, f"repeat={','.join(str(2 + one) for one in range(repeats))}"], 0)
    further = 9 * repeats - 1
    print(f"one cell {few}; {further + 1} cells {many}")
    return Took((many.wall - few.wall) / further, (many.cpu - few.cpu) / further)


def took(folder: Path, command: list[str], code: int) -> Took:
    """Return what a command takes; it ends with the exit code that is expected."""
    start = time.perf_counter()
    variables = {**os.environ, "NOISYHEALTH_CACHE": str(folder / "cache")}
    with (folder / "said.txt").open("w") as said:
        process = subprocess.Popen([sys.executable, *command], cwd=folder, env=variables, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) != code:
        sys.exit(f"{' '.join(command)}\n{(folder / 'said.txt').read_text()}")
    return Took(wall, used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    main()
