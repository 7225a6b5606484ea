"""How many scenarios improved, stayed stable, decreased or dropped: stacked bars of shares with the counts in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from noisyhealth.analysis.impact import Category
from noisyhealth.report.figures import style
from noisyhealth.report.outline import Figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_BLOCKS = 8  # headings a figure
_ROW, _HEADING = 0.29, 0.25  # inches
_BAR = 0.5  # of a row: above it there is room for a count that its segment cannot hold
_DIGIT = 0.034  # of the whole bar: the width of a digit at 8 points
FACES = {
    Category.INCREASE: "#0072B2",
    Category.STABLE: "#DDDDDD",
    Category.DECREASE: "#E69F00",
    Category.CATASTROPHIC: "#000000",
    Category.UNDEFINED: "#FFFFFF",
}
_NOTE = (
    "Shares of the scenarios of a row, with their counts in the bars, or above a segment that is too thin; n at the "
    "right. Edges of the categories: down by 5 % and by 50 %."
)


def categories(scores: pd.DataFrame) -> tuple[Figure, ...]:
    """Return figures for each weights: the categories by model and task, and by perturbation and level.

    Eight models (or perturbations) make a figure; more make more figures.
    """
    figures = []
    for weights, part in scores.groupby("weights", sort=False, observed=True):
        for outer, inner, words in (
            ("model", "task", "model and task"),
            ("perturb", "level", "perturbation and level"),
        ):
            names = style.ordered(outer, part[outer])
            for first in range(0, len(names), _BLOCKS):
                suffix = f"{first // _BLOCKS + 1}" if len(names) > _BLOCKS else ""
                shown = names[first : first + _BLOCKS]
                rows = part[part[outer].astype(str).isin(shown)]
                name = style.file_name("categories", outer, str(weights), suffix)
                figures.append(_figure(name, str(weights), rows, (outer, inner), words))
    return tuple(figures)


def _figure(name: str, weights: str, scores: pd.DataFrame, by: tuple[str, str], words: str) -> Figure:
    from matplotlib.patches import Patch

    outer, inner = by
    blocks = {
        heading: style.ordered(inner, scores[scores[outer].astype(str) == heading][inner])
        for heading in style.ordered(outer, scores[outer])
    }
    height = sum(_HEADING + _ROW * len(rows) for rows in blocks.values())
    drawing = style.canvas(height + 0.85)
    axes = drawing.subplots()
    style.plain(axes, grid="")
    place, ticks = 0.0, []
    for heading, rows in blocks.items():
        axes.text(
            0, place + _HEADING * 0.62, style.label(heading, 34, 1), fontsize=style.SMALL, weight="bold", va="center"
        )
        place += _HEADING
        for row in rows:
            cell = scores[(scores[outer].astype(str) == heading) & (scores[inner].astype(str) == row)]
            counts = cell["category"].astype(str).value_counts().to_dict()
            _bar(axes, {one: int(counts.get(str(one), 0)) for one in Category}, place + _ROW * 0.68)
            ticks.append((place + _ROW * 0.68, style.label(row, 12, 1)))
            place += _ROW
    axes.set_ylim(place + 0.05, 0)
    axes.set_xlim(0, 1)
    axes.set_yticks([at for at, _ in ticks], [row for _, row in ticks])
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    axes.set_xlabel("share of scenarios, %", fontsize=style.SMALL)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    seen = [one for one in Category if (scores["category"].astype(str) == str(one)).any()]
    style.legend(drawing, [Patch(**_face(one)) for one in seen], [str(one) for one in seen])
    return Figure(
        name=name,
        title=f"Categories of change by {words} (weights: {weights})",
        drawing=style.settled(drawing),
        alt=_alt(weights, scores, words, blocks),
        note=_NOTE,
    )


def _bar(axes: Axes, counts: Mapping[Category, int], y: float) -> None:
    """Draw one stacked bar; counts that do not fit stand above their segments, none on another."""
    n = sum(counts.values())
    left = 0.0
    thin: list[tuple[float, int]] = []
    for one, count in counts.items():
        if not count:
            continue
        share = count / n
        axes.barh(y, share, _ROW * _BAR, left=left, gid=str(one), **_face(one))
        if share >= _DIGIT * (len(str(count)) + 0.8):
            under = {"facecolor": "white", "edgecolor": "none", "pad": 0.5} if one is Category.UNDEFINED else None
            axes.text(
                left + share / 2, y, str(count), ha="center", va="center_baseline", fontsize=style.SMALL,
                color=style.on(FACES[one]), bbox=under,
            )  # fmt: skip
        else:
            thin.append((left + share / 2, count))
        left += share
    for middle, count in _apart(thin):
        axes.text(middle, y - _ROW * 0.43, str(count), ha="center", va="center", fontsize=style.SMALL)
    axes.annotate(
        f"n {n}", (1, y), (4, 0), textcoords="offset points", va="center_baseline", fontsize=style.SMALL,
        annotation_clip=False,
    )  # fmt: skip


def _apart(labels: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return labels moved as little to the left as keeps them apart, those at the right end first."""
    moved: list[tuple[float, int]] = []
    for middle, count in reversed(labels):
        half = _DIGIT * len(str(count)) / 2
        limit = moved[-1][0] - _DIGIT * len(str(moved[-1][1])) / 2 - _DIGIT * 0.6 if moved else 1 + half
        moved.append((min(middle, limit - half), count))
    return moved[::-1]


def _face(one: Category) -> dict[str, Any]:
    hatch = "////" if one is Category.UNDEFINED else None
    edge = "#666666" if one is Category.UNDEFINED else "white"
    return {"facecolor": FACES[one], "hatch": hatch, "edgecolor": edge, "linewidth": 0.5}


def _alt(weights: str, scores: pd.DataFrame, words: str, blocks: Mapping[str, Sequence[str]]) -> str:
    counts = scores["category"].astype(str).value_counts()
    told = ", ".join(f"{counts[str(one)]} {one}" for one in Category if str(one) in counts)
    return (
        f"Stacked bars of the categories by {words} with weights {weights} ({style.listed(list(blocks))}), "
        f"{len(scores)} scenarios: {told}."
    )
