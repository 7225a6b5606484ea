"""Scores by the share of medical terms among the disturbed words: the study's Figure 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noisyhealth.report.figures import style
from noisyhealth.report.outline import Figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NOTE = (
    "Points: the median score with its quartiles; where every score is 0 or 1, the mean, which is the share of right "
    "answers. Below: the number of different disturbed texts, by level. 0 is alone; 0–25 is above 0 and up to 25. "
    "Open markers, off the lines: fewer than 10 texts."
)
_FEW = 10  # texts, below which a point says little


def medical(bins: pd.DataFrame) -> tuple[Figure, ...]:
    """Return a figure for each weights from the rows of `analysis.medical.bins` by weights, task and level."""
    parts = bins.groupby("weights", sort=False, observed=True)
    return tuple(_figure(str(weights), part) for weights, part in parts)


def _figure(weights: str, bins: pd.DataFrame) -> Figure:
    from matplotlib.lines import Line2D

    tasks, levels = style.ordered("task", bins["task"]), style.ordered("level", bins["level"])
    names = sorted(dict.fromkeys(bins["bin"].astype(str)), key=_place)
    below = 0.15 * (len(levels) + 1)
    drawing = style.canvas(0.4 + len(tasks) * (1.35 + below) + 0.25)
    panels = drawing.subplots(len(tasks), 1, squeeze=False)[:, 0]
    for axes, task in zip(panels, tasks, strict=True):
        rows = bins[bins["task"] == task]
        _panel(axes, rows, names, levels)
        what = "mean" if bool(rows["binary"].all()) else "median"
        axes.set_title(style.label(task, 40, 1), fontsize=style.SMALL, loc="left", pad=3)
        axes.set_ylabel(f"{what} score", fontsize=style.SMALL)
    panels[-1].set_xlabel("medical terms among the disturbed words, %", fontsize=style.SMALL)
    keys = [
        Line2D([], [], color=style.colour(at), linestyle=style.line(at), marker=style.marker(at), markersize=4)
        for at in range(len(levels))
    ]
    style.legend(drawing, keys, levels)
    return Figure(
        name=style.file_name("medical", weights),
        title=f"Score by the share of medical terms (weights: {weights})",
        drawing=style.settled(drawing),
        alt=_alt(weights, bins, tasks, levels),
        note=_NOTE,
    )


def _panel(axes: Axes, rows: pd.DataFrame, names: Sequence[str], levels: Sequence[str]) -> None:
    import numpy as np

    style.plain(axes)
    axes.locator_params(axis="y", nbins=5)
    binary = bool(rows["binary"].all())
    texts = []
    for at, level in enumerate(levels):
        found = rows[rows["level"] == level].set_index("bin").reindex(list(names))
        y = found["mean" if binary else "median"].to_numpy(dtype=float)
        x = np.arange(len(names)) + (at - (len(levels) - 1) / 2) * 0.12
        bars = None if binary else np.array([y - found["q1"], found["q3"] - y], dtype=float)
        few = found["texts"].fillna(0).to_numpy() < _FEW
        look: dict[str, Any] = {"color": style.colour(at), "marker": style.marker(at), "markersize": 4}
        axes.errorbar(
            x, np.where(few, np.nan, y), bars, linestyle=style.line(at), linewidth=1.1, elinewidth=0.7, capsize=1.5,
            capthick=0.7, label=level, **look,
        )  # fmt: skip
        axes.plot(x, np.where(few, y, np.nan), linestyle="none", markerfacecolor="white", label=f"{level}, few", **look)
        texts.append([int(count) for count in found["texts"].fillna(0)])
    axes.set_xlim(-0.5, len(names) - 0.5)
    counts = zip(*texts, strict=True)
    ticks = [
        "\n".join([name.replace("-", "–"), *(f"{count:,}" for count in column)])
        for name, column in zip(names, counts, strict=True)
    ]
    axes.set_xticks(range(len(names)), ticks)
    axes.annotate(
        "\n".join(["", *(f"n {style.label(level, 6, 1)}" for level in levels)]), (0, 0), (-4, -4.5),
        xycoords="axes fraction", textcoords="offset points", fontsize=style.SMALL, ha="right", va="top",
    )  # fmt: skip


def _place(name: str) -> tuple[float, int]:
    """Return where a bin stands: "0" before "0-25", and what is no number last."""
    first, _, last = name.partition("-")
    try:
        return float(last or first), 0
    except ValueError:
        return float("inf"), 1


def _alt(weights: str, bins: pd.DataFrame, tasks: Sequence[str], levels: Sequence[str]) -> str:
    told = []
    for task in tasks:
        rows = bins[bins["task"] == task]
        what = "mean" if bool(rows["binary"].all()) else "median"
        ends = []
        for level in levels:
            part = rows[rows["level"] == level].to_dict("records")
            if part:
                first, *_, last = sorted([*part, *part], key=lambda row: _place(str(row["bin"])))
                ends.append(f"{level} {first[what]:.2f} at {first['bin']} % to {last[what]:.2f} at {last['bin']} %")
        told.append(f"{task}, {what} score: {', '.join(ends)}")
    return f"Lines of the score by the share of medical terms with weights {weights}: {'; '.join(told)}."
