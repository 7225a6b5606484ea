"""How a score falls with the share of disturbed words: lines from clean to high."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from noisyhealth.report.figures import style
from noisyhealth.report.outline import Figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MODELS, _TASKS = 4, 3  # rows and columns of panels that a figure has at most
_EACH = "Clean is the undisturbed text. Bars: 95 % intervals of the score, where the runs have them."
_MEAN = "Lines: the mean over {} models. Bars: from the lowest to the highest model."


def dose(scores: pd.DataFrame, headlines: Mapping[str, str]) -> tuple[Figure, ...]:
    """Return figures for each weights: the headline score of each task against the level, a line a perturbation.

    `headlines`: which score stands for a task ({"qa": "rougeL"}); a task that is not in it is not drawn. Up to four
    models have a row of panels each; more are drawn as their mean with the range from the lowest to the highest, and
    the heat map has each of them. Three tasks stand side by side; more make more figures.
    """
    head = scores["score_name"].astype(str) == scores["task"].astype(str).map(dict(headlines))
    known = scores[head & scores["value"].notna()]
    figures = []
    for weights, part in known.groupby("weights", sort=False, observed=True):
        tasks = style.ordered("task", part["task"])
        for first in range(0, len(tasks), _TASKS):
            suffix = f"{first // _TASKS + 1}" if len(tasks) > _TASKS else ""
            figures.append(_figure(str(weights), suffix, part, tasks[first : first + _TASKS], headlines))
    return tuple(figures)


def _figure(
    weights: str, suffix: str, scores: pd.DataFrame, tasks: Sequence[str], headlines: Mapping[str, str]
) -> Figure:
    from matplotlib.lines import Line2D

    models = list(dict.fromkeys(scores["model"].astype(str)))
    each = len(models) <= _MODELS
    rows = models if each else [f"mean of {len(models)} models"]
    perturbs, levels = style.ordered("perturb", scores["perturb"]), style.ordered("level", scores["level"])
    names = style.labels(models, 15, 3)
    drawing = style.canvas(1.4 + 1.15 * len(rows))
    grid = drawing.subplots(len(rows), len(tasks), sharex=True, sharey="col", squeeze=False)
    for row, model in enumerate(rows):
        for column, task in enumerate(tasks):
            cells = scores[(scores["task"] == task) & ((scores["model"] == model) | (not each))]
            _panel(grid[row, column], cells, perturbs, levels)
        _strip(grid[row, -1], names.get(model, style.label(model, 15, 3)))
    for axes, task in zip(grid[0], tasks, strict=True):
        axes.set_title(f"{style.label(task, 14)}\n{style.label(headlines[task], 14, 1)}", fontsize=style.SMALL)
    ticks = ["clean", *(f"{level} {style.share_of_words(_rates(scores, level))}".strip() for level in levels)]
    for axes in grid[-1]:
        axes.set_xticks(range(len(ticks)), [style.label(tick, 22, 1) for tick in ticks], rotation=90)
    keys = [
        Line2D([], [], color=style.colour(at), linestyle=style.line(at), marker=style.marker(at), markersize=3.5)
        for at in range(len(perturbs))
    ]
    style.legend(drawing, keys, perturbs)
    return Figure(
        name=style.file_name("dose", weights, suffix),
        title=f"Score by level of disturbance (weights: {weights})",
        drawing=style.settled(drawing),
        alt=_alt(weights, scores, tasks, headlines),
        note=_EACH if each else _MEAN.format(len(models)),
    )


def _panel(axes: Axes, cells: pd.DataFrame, perturbs: Sequence[str], levels: Sequence[str]) -> None:
    """Draw the lines of one task and of one model or the mean of all, a little beside each other."""
    import numpy as np

    style.plain(axes)
    axes.locator_params(axis="y", nbins=4)
    axes.set_xlim(-0.4, len(levels) + 0.4)
    if cells.empty:
        axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center", va="center", fontsize=style.SMALL)
        return
    for at, perturb in enumerate(perturbs):
        rows = cells[cells["perturb"] == perturb]
        if rows.empty:
            continue
        points = [_point(rows[rows["level"] == level]) for level in levels]
        clean = rows.groupby(rows["model"].astype(str))["baseline"].first()
        y = np.array([clean.mean(), *(point[0] for point in points)])
        alone = _ends(rows.iloc[0], "baseline") if len(clean) == 1 else (0.0, 0.0)
        bars = np.array([alone, *(point[1:] for point in points)]).T
        x = np.arange(len(y)) + (at - (len(perturbs) - 1) / 2) * 0.14 * (np.arange(len(y)) > 0)
        axes.errorbar(
            x, y, bars, color=style.colour(at), linestyle=style.line(at), marker=style.marker(at), markersize=3.5,
            linewidth=1.1, elinewidth=0.7, capsize=1.5, capthick=0.7, label=perturb,
        )  # fmt: skip


def _point(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Return a level's score and how far its bar goes down and up; NaN is drawn as a gap."""
    import math

    if rows.empty:
        return math.nan, 0.0, 0.0
    if len(rows) > 1:
        mean = float(rows["value"].mean())
        return mean, mean - float(rows["value"].min()), float(rows["value"].max()) - mean
    return float(rows["value"].iloc[0]), *_ends(rows.iloc[0], "value")


def _ends(row: pd.Series, name: str) -> tuple[float, float]:
    """Return how far a score's interval goes down and up, 0 where the runs have none."""
    import pandas as pd

    value = float(row[name])
    low, high = (row.get(f"{name}_{end}") for end in ("low", "high"))
    if pd.isna(low) or pd.isna(high):
        return 0.0, 0.0
    return max(0.0, value - float(low)), max(0.0, float(high) - value)


def _strip(axes: Axes, name: str) -> None:
    """Write the name of a row of panels at its right."""
    axes.annotate(
        name, (1, 0.5), (3, 0), xycoords="axes fraction", textcoords="offset points",
        fontsize=style.SMALL, rotation=270, ha="left", va="center",
    )  # fmt: skip


def _rates(scores: pd.DataFrame, level: str) -> list[float]:
    return list(style.fractions(scores[scores["level"] == level]["rate"])) if "rate" in scores else []


def _alt(weights: str, scores: pd.DataFrame, tasks: Sequence[str], headlines: Mapping[str, str]) -> str:
    models = list(dict.fromkeys(scores["model"].astype(str)))
    told = []
    for task in tasks:
        part = scores[scores["task"] == task]
        last = part[part["level"] == style.ordered("level", part["level"])[-1]]
        ends = ", ".join(
            f"{last[last['perturb'] == name]['value'].mean():.2f} with {name}"
            for name in style.ordered("perturb", last["perturb"])
        )
        told.append(
            f"{task} ({headlines[task]}) goes from {part['baseline'].mean():.2f} clean to {ends} "
            f"at level {last['level'].iloc[0]}"
        )
    over = f"mean of the models ({style.listed(models)})"
    return f"Lines of the score by level with weights {weights}, {over}: {'; '.join(told)}."
