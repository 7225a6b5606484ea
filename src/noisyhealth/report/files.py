"""A report's tables and figures as files: CSV, LaTeX and Markdown; PNG and SVG."""

from __future__ import annotations

from copy import deepcopy
from html import escape
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

from noisyhealth.report.outline import Report, Table
from noisyhealth.report.rounding import numeric, rounded

if TYPE_CHECKING:
    import pandas as pd

_DPI = 200
# Columns for tracing, too wide for a printed page; CSV has them.
_TRACES = ("run_id", "run_ids", "cell_key", "data_hash", "code_hash", "git_commit", "method", "note")
_SPECIAL = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "→": r"$\rightarrow$", "²": "$^2$", "χ": r"$\chi$"},
        **{"≥": r"$\geq$", "≤": r"$\leq$", "η": r"$\eta$", "ε": r"$\varepsilon$", "−": "$-$"},
    }
)


def write_tables(folder: Path, report: Report) -> None:
    """Write every table as CSV, LaTeX and Markdown.

    CSV has all digits, the others what a page shows. What keeps a study from being whole stands in each: in CSV as a
    column, so that the file can still be read by anything.
    """
    folder.mkdir()
    for section in report.sections:
        for table in section.tables:
            _table(folder, table, report.warning)


def write_figures(folder: Path, report: Report) -> None:
    """Write every figure as PNG and SVG."""
    folder.mkdir()
    for section in report.sections:
        for figure in section.figures:
            (folder / f"{figure.file}.svg").write_bytes(figure.svg)
            drawing = deepcopy(figure.drawing)
            drawing.savefig(folder / f"{figure.file}.png", dpi=_DPI, metadata={"Software": None})


def marked(frame: pd.DataFrame, warning: str) -> pd.DataFrame:
    """Return the frame with what is wrong with its study as a last column."""
    return frame.assign(study_incomplete=warning) if warning else frame


def publish(built: Path, out: Path) -> None:
    """Put a report that was built in a folder of its own where it belongs, in place of an earlier one.

    Tables and figures that the new one does not have go; whatever else lies there stays.
    """
    for folder, suffixes in (("tables", (".csv", ".md", ".tex")), ("figures", (".png", ".svg"))):
        for old in (out / folder).glob("*"):
            if old.suffix in suffixes:
                old.unlink()
    copytree(built, out, dirs_exist_ok=True)


def _table(folder: Path, table: Table, warning: str) -> None:
    marked(table.frame, warning).to_csv(folder / f"{table.file}.csv", index=False)
    shown = rounded(table.frame)
    (folder / f"{table.file}.md").write_text(_markdown(table, shown, warning), encoding="utf-8")
    (folder / f"{table.file}.tex").write_text(_latex(table, shown, warning), encoding="utf-8")


def _markdown(table: Table, shown: pd.DataFrame, warning: str) -> str:
    """Return a table as Markdown under its title and what is wrong with the study."""
    body = (
        shown.map(_unbroken)
        .rename(columns=_unbroken)
        .to_markdown(index=False, disable_numparse=True, colalign=_aligned(table.frame))
    )
    parts = [f"**{table.title}**", warning, body if len(shown) else "(no rows)", table.note]
    return "\n\n".join(part for part in parts if part) + "\n"


def _unbroken(cell: object) -> str:
    """Return a text that stays in its column, and is no markup."""
    return escape(str(cell), quote=False).replace("|", "\\|").replace("\n", " ")


def _latex(table: Table, shown: pd.DataFrame, warning: str) -> str:
    caption = ". ".join(_escaped(part).rstrip(".") for part in (table.title, warning, table.note) if part)
    left_out = [name for name in shown.columns if name in _TRACES]
    aligned = "".join("r" if one == "right" else "l" for one in _aligned(table.frame.drop(columns=left_out)))
    cells = shown.drop(columns=left_out).map(_escaped).rename(columns=_escaped)
    # A long table: it may be broken over pages, and \usepackage{longtable,booktabs} is all it needs.
    return cells.to_latex(
        index=False, caption=caption, label=f"tab:{table.file}", column_format=aligned, longtable=True, escape=False
    )


def _escaped(text: object) -> str:
    """Return a text that LaTeX prints as it is."""
    return str(text).translate(_SPECIAL)


def _aligned(frame: pd.DataFrame) -> list[str]:
    return ["right" if one else "left" for one in numeric(frame)]
