"""How long the analysis of a large study takes: 1,200 runs of 1,000 examples each, in a real MLflow store.

    python benchmarks/report.py

Makes the store first (three tasks, 40 models, three disturbances at three levels and the clean texts; invented words,
and answers drawn so that they get worse with the level), which takes minutes, then runs `analyze.py` in a process of
its own. Prints the seconds of each part, MLflow's own search among them, and last those of reading, tests and tables
together, of all, the most memory and the size of the page.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "report"))

from invented import make, store_in  # noqa: E402


def main() -> None:
    """Make the store, analyse it, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=40)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="keep the store here, and use it again where it is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.folder or Path(scratch)).resolve()
        if not (folder / "mlflow.db").exists():
            folder.mkdir(parents=True, exist_ok=True)
            make(store_in(folder, "large"), folder / "scratch", models=options.models, examples=options.examples)
        analyse(folder)


def analyse(folder: Path) -> None:
    """Run analyze.py and print what it took."""
    begun = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, str(ROOT / "analyze.py"), "study=large"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    seconds = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    [told] = re.findall(r"^Seconds: .*$", ended.stdout, flags=re.MULTILINE)
    tables = sum(float(number) for number in re.findall(r" ([0-9.]+)", told.partition(", figures")[0]))
    page = (folder / "reports" / "large" / "index.html").stat().st_size / 1e6
    print(told)
    print(f"tables={tables:.0f} s all={seconds:.0f} s memory={memory:.2f} GB page={page:.1f} MB")


if __name__ == "__main__":
    main()
