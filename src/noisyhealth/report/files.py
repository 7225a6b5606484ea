"""A report's tables and figures as files: CSV, LaTeX and Markdown; PNG and SVG."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

from noisyhealth.report.outline import Report, Table
from noisyhealth.report.rounding import numeric, rounded

if TYPE_CHECKING:
    import pandas as pd

_DPI = 200


def write_tables(folder: Path, report: Report) -> None:
    """Write every table as CSV, LaTeX and Markdown; what a folder had before goes, so that no old table stays.

    CSV has all digits, the others what a page shows. What keeps a study from being whole stands in each: in CSV as a
    column, so that the file can still be read by anything.
    """
    _empty(folder, ".csv", ".md", ".tex")
    for section in report.sections:
        for table in section.tables:
            _table(folder, table, report.warning)


def write_figures(folder: Path, report: Report) -> None:
    """Write every figure as PNG and SVG, in place of what the folder had before."""
    _empty(folder, ".png", ".svg")
    for section in report.sections:
        for figure in section.figures:
            name = _file(figure.name)
            (folder / f"{name}.svg").write_bytes(figure.svg)
            deepcopy(figure.drawing).savefig(folder / f"{name}.png", dpi=_DPI, metadata={"Software": None})


def _empty(folder: Path, *suffixes: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.suffix in suffixes:
            old.unlink()


def _table(folder: Path, table: Table, warning: str) -> None:
    name = _file(table.name)
    frame = table.frame.assign(incomplete=warning) if warning else table.frame
    frame.to_csv(folder / f"{name}.csv", index=False)
    shown = rounded(table.frame)
    (folder / f"{name}.md").write_text(markdown(table, warning), encoding="utf-8")
    (folder / f"{name}.tex").write_text(_latex(table, shown, warning), encoding="utf-8")


def markdown(table: Table, warning: str) -> str:
    """Return a table as Markdown under its title and what is wrong with the study."""
    shown = rounded(table.frame).map(_unbroken).rename(columns=_unbroken)
    body = shown.to_markdown(index=False, disable_numparse=True, colalign=_aligned(table.frame))
    parts = [f"**{table.title}**", warning, body if len(shown) else "(no rows)", table.note]
    return "\n\n".join(part for part in parts if part) + "\n"


def _unbroken(cell: object) -> str:
    """Return a text that stays in its column."""
    return str(cell).replace("|", "\\|").replace("\n", " ")


def _latex(table: Table, shown: pd.DataFrame, warning: str) -> str:
    caption = ". ".join(_escaped(part).rstrip(".") for part in (table.title, warning, table.note) if part)
    aligned = "".join("r" if one == "right" else "l" for one in _aligned(table.frame))
    cells = shown.map(_escaped).rename(columns=_escaped)
    # A long table: it may be broken over pages, and \usepackage{longtable,booktabs} is all it needs.
    return cells.to_latex(
        index=False, caption=caption, label=f"tab:{table.name}", column_format=aligned, longtable=True, escape=False
    )


def _escaped(text: object) -> str:
    """Return a text that LaTeX prints as it is."""
    special = {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "→": r"$\rightarrow$", "²": "$^2$", "χ": r"$\chi$"},
        **{"≥": r"$\geq$", "≤": r"$\leq$", "η": r"$\eta$", "ε": r"$\varepsilon$", "−": "$-$"},
    }
    return "".join(special.get(sign, sign) for sign in str(text))


def _file(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)


def _aligned(frame: pd.DataFrame) -> list[str]:
    return ["right" if one else "left" for one in numeric(frame)]
