"""The notebook that reads a study's tables runs from its first cell to its last."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.slow

NOTEBOOK = REPOSITORY / "notebooks" / "study.ipynb"
# What a notebook has and a program has not.
BEFORE = "import matplotlib\nmatplotlib.use('Agg')\nfrom builtins import print as display\n"


def cells() -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return found


def test_the_notebook_runs_on_a_study_and_its_numbers_are_the_report_s(audited: Path, tmp_path: Path) -> None:
    code = ["".join(cell["source"]) for cell in cells() if cell["cell_type"] == "code"]
    program = tmp_path / "notebook.py"
    program.write_text("\n".join([BEFORE, *code]), encoding="utf-8")
    (below := audited / "reports").is_dir() or pytest.fail("the study has no report")
    ended = subprocess.run(
        [sys.executable, program],
        cwd=below,
        env={**os.environ, "STUDY": "demo"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    scores = pd.read_csv(audited / "reports" / "demo" / "scores.csv")
    assert f"{scores.run_id.nunique()} cells, {len(scores)} scenarios" in ended.stdout
    assert "largest difference between a score and the mean of its answers" in ended.stdout


def test_the_notebook_holds_no_output_of_an_earlier_run() -> None:
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells() if "outputs" in cell)
