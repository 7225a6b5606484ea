"""What a report is made of, before anything is drawn or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from re import sub
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

Json: TypeAlias = Mapping[str, "Json"] | Sequence["Json"] | str | int | float | bool | None


@dataclass(frozen=True)
class Table:
    """One table; `name` is its file, `note` says how to read it and what it rests on.

    Numbers stand in the frame unrounded; `report.files` and `report.page` round what they show.
    """

    name: str
    title: str
    frame: pd.DataFrame
    note: str = ""

    @property
    def file(self) -> str:
        """The name as a file may have it."""
        return _file(self.name)


@dataclass(frozen=True)
class Figure:
    """One figure; `alt` says in a sentence what it shows, for those who cannot see it."""

    name: str
    title: str
    drawing: Drawing
    alt: str
    note: str = ""

    @property
    def file(self) -> str:
        """The name as a file may have it."""
        return _file(self.name)

    @cached_property
    def svg(self) -> bytes:
        """The drawing as SVG, the same bytes for the same numbers.

        Letters are drawn as paths: it looks the same whatever fonts a reader has. A copy is drawn, since drawing moves
        a layout by a little, and the next bytes would be others.
        """
        import matplotlib as mpl

        written = BytesIO()
        with mpl.rc_context({"svg.hashsalt": "noisyhealth", "svg.fonttype": "path", "savefig.bbox": "standard"}):
            deepcopy(self.drawing).savefig(written, format="svg", metadata={"Date": None})
        return written.getvalue()


@dataclass(frozen=True)
class Section:
    """Tables and figures that answer one question, with the question's answer in plain sentences."""

    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Report:
    """A whole report. `warning`: what keeps the study from being whole, "" where nothing does."""

    study: str
    warning: str
    summary: tuple[str, ...]
    sections: tuple[Section, ...]


def _file(name: str) -> str:
    return sub(r"[^A-Za-z0-9_.-]", "_", name)
