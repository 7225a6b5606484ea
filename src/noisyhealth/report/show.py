"""A report on the terminal: its summary, and the tables that the study has."""

from __future__ import annotations

from noisyhealth.report.outline import Report, Table
from noisyhealth.report.rounding import rounded

_MOST = 40  # rows of a table
_SHOWN = (
    "categories_by_model_task_",
    "categories_by_perturb_level_",
    "chi_squared",
    "friedman",
    "conover",
    "ablation_",
    "variance_",
)


def report(told: Report) -> None:
    """Print what a report says, each table under what is wrong with the study; all tables are on its page."""
    for section in told.sections:
        tables = [table for table in section.tables if table.name.startswith(_SHOWN)]
        for table in tables:
            _table(table, told.warning)
    print("", *([told.warning] if told.warning else []), *(f"- {sentence}" for sentence in told.summary), sep="\n")


def _table(table: Table, warning: str) -> None:
    shown = rounded(table.frame.head(_MOST))
    print("", *([warning] if warning else []), table.title, sep="\n")
    print(shown.to_string(index=False) if len(shown) else "(no rows)")
    if len(table.frame) > _MOST:
        print(f"... and {len(table.frame) - _MOST} more rows in tables/{table.file}.csv")
