"""What a report rests on: runs, versions, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from noisyhealth.report.outline import Section, Table

if TYPE_CHECKING:
    import pandas as pd

_RUNS = "Every run that counts, with its id in MLflow; its artifacts hold every text, prompt and reply."
_PROBLEMS = "What keeps the study from being whole."


def section(runs: pd.DataFrame, problems: pd.DataFrame, left_out: Sequence[str]) -> Section:
    """Return the last section, of all weights together."""
    commits = sorted({str(commit)[:10] for commit in runs["git_commit"] if commit})
    codes = sorted(set(runs["code_hash"]))
    commit = f" (commit {', '.join(commits)})" if commits else ""
    return Section(
        title="What this rests on",
        sentences=(
            f"{len(runs)} runs, started {runs['started'].min()} to {runs['started'].max()} (UTC).",
            f"Version of the code: {', '.join(codes)}{commit}.",
            *left_out,
        ),
        tables=(
            Table("runs", "Runs", runs, _RUNS),
            *([Table("problems", "Problems", problems, _PROBLEMS)] if len(problems) else []),
        ),
    )
