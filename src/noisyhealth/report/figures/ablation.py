"""The score at each value of a setting, on clean and on disturbed texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from noisyhealth.report.figures import style
from noisyhealth.report.outline import Figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_TASKS, _MODELS = 3, 8
_NOTE = (
    "Filled: disturbed texts, mean over perturbations and levels, the bar from the lowest to the highest of them. "
    "Hollow: the same texts, clean. Other settings of the design stand at their reference."
)


def ablation(name: str, factor: str, values: Mapping[str, Sequence[str]], frame: pd.DataFrame) -> tuple[Figure, ...]:
    """Return a figure for each weights: a panel a task, a colour a model, the values of a factor from left to right.

    `values`: of every factor of the design, the reference first. Three tasks and eight models are drawn at most; the
    table has all.
    """
    held = frame
    for other in values.keys() - {factor}:
        held = held[held[other] == values[other][0]]
    parts = held.groupby("weights", sort=False, observed=True)
    return tuple(_figure(name, str(weights), factor, _in_order(values[factor]), part) for weights, part in parts)


def _in_order(values: Sequence[str]) -> Sequence[str]:
    """Return numbers by their size, which a line is read by, other values as they were given.

    >>> _in_order(["5", "0", "1e1"]), _in_order(["study", "mine"])
    (['0', '5', '1e1'], ['study', 'mine'])
    """
    try:
        return sorted(values, key=float)
    except ValueError:
        return values


def _figure(name: str, weights: str, factor: str, values: Sequence[str], frame: pd.DataFrame) -> Figure:
    from matplotlib.lines import Line2D

    tasks = style.ordered("task", frame["task"])[:_TASKS]
    models = list(dict.fromkeys(frame["model"].astype(str)))[:_MODELS]
    drawing = style.canvas(2.6)
    grid = drawing.subplots(1, len(tasks), squeeze=False)[0]
    for axes, task in zip(grid, tasks, strict=True):
        style.plain(axes)
        for at, model in enumerate(models):
            _line(axes, frame[(frame["task"] == task) & (frame["model"] == model)], factor, values, (at, len(models)))
        score = str(frame[frame["task"] == task]["score_name"].iloc[0])
        axes.set_title(f"{style.label(task, 14)}\n{style.label(score, 14, 1)}", fontsize=style.SMALL)
        axes.set_xticks(range(len(values)), [style.label(value, 18, 1) for value in values], rotation=90)
        axes.set_xlim(-0.5, len(values) - 0.5)
    keys = [
        Line2D([], [], color=style.colour(at), marker=style.marker(at), markersize=3.5) for at in range(len(models))
    ]
    style.legend(drawing, keys, models)
    return Figure(
        name=style.file_name(name, weights),
        title=f"Score by {factor} (weights: {weights})",
        drawing=style.settled(drawing),
        alt=_alt(weights, factor, values, frame),
        note=_NOTE,
    )


def _line(axes: Axes, cells: pd.DataFrame, factor: str, values: Sequence[str], place: tuple[int, int]) -> None:
    """Draw one model of one task; `place`: which model it is, of how many."""
    import numpy as np

    at, count = place
    there = [(x, cells[cells[factor] == value]) for x, value in enumerate(values)]
    there = [(x, rows) for x, rows in there if len(rows)]
    if not there:
        return
    x = np.array([x for x, _ in there]) + (at - (count - 1) / 2) * 0.1
    mean = np.array([rows["value"].mean() for _, rows in there])
    ends = np.array([[rows["value"].min() for _, rows in there], [rows["value"].max() for _, rows in there]])
    axes.errorbar(
        x, mean, np.abs(ends - mean), color=style.colour(at), linestyle=style.line(at), marker=style.marker(at),
        markersize=3.5, linewidth=1.1, elinewidth=0.7, capsize=1.5, capthick=0.7,
    )  # fmt: skip
    clean = [rows["baseline"].mean() for _, rows in there]
    axes.plot(x, clean, color=style.colour(at), linestyle="", marker=style.marker(at), markersize=4, fillstyle="none")


def _alt(weights: str, factor: str, values: Sequence[str], frame: pd.DataFrame) -> str:
    told = "; ".join(
        f"{task} · {model}: "
        + ", ".join(
            f"{value} {own['baseline'].mean():.2f} clean and {own['value'].mean():.2f} disturbed"
            for value in values
            if len(own := part[part[factor] == value])
        )
        for (task, model), part in frame.groupby(["task", "model"], sort=False, observed=True)
    )
    return f"The score at each value of {factor} with weights {weights}: {told}."
