"""The report as one HTML file that needs nothing else: no network, no folder beside it, no script to be read."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from noisyhealth.report.items import Items, as_script
from noisyhealth.report.outline import Figure, Report, Table
from noisyhealth.report.rounding import numeric, rounded, with_index

_PARTS = Path(__file__).with_name("html")
_LONG = 30  # rows of a table that are shown at once; more scroll in a box of their own
_MOST = 1000  # rows of a table that a page has at all
_PIXELS = 96  # a CSS inch


def write(path: Path, report: Report, items: Items) -> None:
    """Write the page of a report. The same report gives the same file, byte by byte.

    Raises DataError where `items` cannot be shown (`items.as_script`).
    """
    # A lone surrogate, which a broken text may hold, is no UTF-8; in the items its escape is JSON's.
    path.write_bytes(render(report, items).encode("utf-8", "backslashreplace"))


def render(report: Report, items: Items) -> str:
    """Return the page as a string."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    folder = Environment(
        loader=FileSystemLoader(_PARTS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    folder.filters["joined"] = joined
    style, script = (Markup((_PARTS / name).read_text("utf-8")) for name in ("page.css", "page.js"))
    return folder.get_template("page.html").render(
        report=report,
        items=items,
        data=Markup(as_script(items)),
        style=style,
        script=script,
        policy=_policy(style, script),
        picture=picture,
        grid=grid,
    )


def joined(sentence: str) -> str:
    """Return a sentence in which no line ends between a number and its sign.

    >>> joined("down by 5 %, p < .001").count("\\xa0")
    3
    """
    return re.sub(r"(?<=\d) (?=%)|(?<=\bp) (?=[<=>])|(?<=[<=>]) (?=[.\d])", "\xa0", sentence)


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as an address that holds it whole, with its size in CSS pixels."""

    source: str
    width: int
    height: int


def picture(figure: Figure) -> Picture:
    """Return a figure as SVG. Letters are drawn as paths: it looks the same whatever fonts a reader has."""
    width, height = figure.drawing.get_size_inches()
    coded = base64.b64encode(figure.svg).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{coded}", round(width * _PIXELS), round(height * _PIXELS))


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as it is shown. `numbers`: which columns are set to the right; `long`: whether it scrolls in a box.

    `total`: rows that the table has; the page has the first 1,000 of them.
    """

    columns: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    long: bool
    total: int


def grid(table: Table) -> Grid:
    """Return a table with its numbers rounded."""
    shown = rounded(table.frame.head(_MOST))
    rows = [tuple(map(str, row)) for row in shown.itertuples(index=False, name=None)]
    columns = tuple(map(str, with_index(table.frame).columns))
    return Grid(columns, tuple(numeric(table.frame)), tuple(rows), len(rows) > _LONG, len(table.frame))


def _policy(*inline: str) -> str:
    """Return a content policy under which nothing is loaded and no script runs but the page's own."""
    style, script = (_hash(text) for text in inline)
    closed = "default-src 'none'; base-uri 'none'; form-action 'none'"
    return f"{closed}; img-src data:; style-src {style}; script-src {script}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
