"""What is answered at once loads nothing that takes long: help, lists and wrong input."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, environment

# Each takes from a fifth of a second to ten seconds to load.
HEAVY = {
    *("torch", "pytorch_lightning", "torchmetrics", "transformers", "bert_score", "spacy", "mlflow", "sqlalchemy"),
    *("pandas", "pyarrow", "numpy", "scipy", "sklearn", "statsmodels", "pingouin", "matplotlib", "openai", "optuna"),
    *("requests", "joblib", "submitit", "datasketch", "rouge_score", "rich", "pygments"),
}
# Runs a script as `python SCRIPT ...` or `python -m noisyhealth ...` would, and tells at the end what was loaded.
TELLS = """
import atexit, runpy, sys
atexit.register(lambda: print("LOADED", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr))
script, sys.argv = sys.argv[1], sys.argv[1:]
if script == "noisyhealth":
    runpy.run_module(script, run_name="__main__", alter_sys=True)
else:
    sys.path.insert(0, script.rpartition("/")[0])
    runpy.run_path(script, run_name="__main__")
"""
RUN, ANALYSE = str(REPOSITORY / "run.py"), str(REPOSITORY / "analyze.py")


def loaded(folder: Path, *arguments: str) -> tuple[int, set[str]]:
    """Return a command's exit code, and the packages that its process had loaded at its end."""
    command = [sys.executable, "-c", TELLS, *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False, timeout=120
    )
    [told] = [line for line in ended.stderr.splitlines() if line.startswith("LOADED")]
    return ended.returncode, set(told.split()[1:])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([RUN, "--help"], 0),
        ([RUN, "model=gtp"], 2),
        ([RUN, "-m", "model=gpt", "levle=low,high"], 2),
        ([RUN, "-m", "model=majority", "level=low,low"], 2),
        ([ANALYSE, "--help"], 0),
        ([ANALYSE, "stduy=demo"], 2),
        (["noisyhealth", "--help"], 0),
        (["noisyhealth", "list"], 0),
        (["noisyhealth", "completion", "words", "python -m noisyhealth show perturb="], 0),
        (["noisyhealth", "show", "perturb=tpyo", "--text", "pain"], 2),
        (["noisyhealth", "ui"], 2),
    ],
    ids=lambda given: " ".join(Path(one).name for one in given) if isinstance(given, list) else str(given),
)
def test_nothing_heavy_is_loaded_for_an_answer_without_work(tmp_path: Path, arguments: list[str], code: int) -> None:
    ended, names = loaded(tmp_path, *arguments)
    assert ended == code
    assert names & HEAVY == set()


def test_what_is_loaded_would_be_seen(tmp_path: Path) -> None:
    script = tmp_path / "heavy.py"
    script.write_text("import pyarrow\n")
    assert "pyarrow" in loaded(tmp_path, str(script))[1]
