"""Every model against every disturbance: the relative change in a grid of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from noisyhealth.report.figures import style
from noisyhealth.report.outline import Figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize

MISSING, UNDEFINED = "–", "u"
_TOGETHER = 12  # models, up to which all tasks stand in one figure
_CELL, _ROW, _NAMES = 0.285, 0.25, 0.93  # inches: a cell's width, its height, and what the names of models take
_COLOURS = "cividis"  # its luminance rises all the way: darker is worse in grey too
_NOTE = (
    "Relative change of the headline score in per cent; darker is worse, and every increase has the brightest colour. "
    f"{UNDEFINED}: undefined, the clean score is 0. {MISSING}: not run."
)


def heatmap(scores: pd.DataFrame, headlines: Mapping[str, str]) -> tuple[Figure, ...]:
    """Return figures for each weights: models by perturbation and level, a panel a task, the change in each cell.

    The change is that of the headline score of the task; a task that is not in `headlines` is not drawn. With more than
    12 models each task is a figure of its own.
    """
    head = scores["score_name"].astype(str) == scores["task"].astype(str).map(dict(headlines))
    known = scores[head].assign(change=style.fractions(scores[head]["change"]))
    figures = []
    for weights, part in known.groupby("weights", sort=False, observed=True):
        tasks = style.ordered("task", part["task"])
        together = part["model"].nunique() <= _TOGETHER
        for shown in [tasks] if together else [[task] for task in tasks]:
            name = style.file_name("heatmap", str(weights), "" if together else shown[0])
            figures.append(_figure(name, str(weights), part, shown, headlines))
    return tuple(figures)


def _figure(
    name: str, weights: str, scores: pd.DataFrame, tasks: Sequence[str], headlines: Mapping[str, str]
) -> Figure:
    from matplotlib.cm import ScalarMappable

    models = list(dict.fromkeys(scores["model"].astype(str)))
    perturbs = style.ordered("perturb", scores["perturb"])
    pairs = set(zip(scores["perturb"].astype(str), scores["level"].astype(str), strict=True))
    levels = style.ordered("level", scores["level"])
    conditions = [(perturb, level) for perturb in perturbs for level in levels if (perturb, level) in pairs]
    colours, norm = _scale(scores)
    head = 0.2 + (_ROW * len(models) + 0.22) * len(tasks) + 0.65
    drawing = style.canvas(head + 0.55, max(style.WIDTH, _NAMES + _CELL * len(conditions)))
    panels = drawing.subplots(len(tasks), 1, squeeze=False, sharex=True)[:, 0]
    for axes, task in zip(panels, tasks, strict=True):
        rows = scores[scores["task"] == task]
        places = zip(*(rows[name].astype(str) for name in ("model", "perturb", "level")), strict=True)
        cells = dict(zip(places, map(float, rows["change"]), strict=True))
        _panel(axes, cells, models, conditions, colours, norm)
        axes.set_title(
            f"{style.label(task, 30, 1)}, {style.label(headlines[task], 20, 1)}",
            fontsize=style.SMALL,
            loc="left",
            pad=3,
        )
    _columns(panels[-1], conditions)
    bar = drawing.colorbar(
        ScalarMappable(norm, colours), ax=list(panels), orientation="horizontal",
        extend="max" if (scores["change"] > 0).any() else "neither", aspect=30, pad=0.02, shrink=0.7,
    )  # fmt: skip
    bar.set_label("relative change, %", fontsize=style.SMALL)
    bar.ax.tick_params(labelsize=style.SMALL, width=0.6, length=2)
    return Figure(
        name=name,
        title=f"Relative change of each model (weights: {weights}{'' if len(panels) > 1 else ', ' + tasks[0]})",
        drawing=style.settled(drawing),
        alt=_alt(weights, scores[scores["task"].isin(tasks)], models, conditions, len(tasks)),
        note=_NOTE,
    )


def _scale(scores: pd.DataFrame) -> tuple[Colormap, Normalize]:
    """Return colours from the largest drop (at least 10 %) to no change."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    lowest = min([-0.1, *scores["change"].dropna()])
    return colormaps[_COLOURS], Normalize(100 * lowest, 0.0, clip=True)


def _panel(
    axes: Axes,
    cells: Mapping[tuple[str, ...], float],
    models: Sequence[str],
    conditions: Sequence[tuple[str, str]],
    colours: Colormap,
    norm: Normalize,
) -> None:
    axes.set_xlim(0, len(conditions))
    axes.set_ylim(len(models), 0)
    for row, model in enumerate(models):
        for column, condition in enumerate(conditions):
            change = cells.get((model, *condition))
            if change is None or math.isnan(change):
                _cell(axes, column, row, MISSING if change is None else UNDEFINED, None)
            else:
                _cell(axes, column, row, style.per_cent(change), colours(float(norm(100 * change))))
    names = style.labels(models, 15, 2)
    axes.set_yticks([row + 0.5 for row in range(len(models))], [names[model] for model in models])
    axes.tick_params(length=0, labelsize=style.SMALL, pad=2, labelbottom=False)
    for tick in axes.get_yticklabels():
        tick.set_linespacing(0.9)
    axes.spines[:].set_visible(False)
    for at in range(1, len(conditions)):
        if conditions[at][0] != conditions[at - 1][0]:
            axes.axvline(at, color="white", linewidth=3)


def _cell(axes: Axes, column: int, row: int, text: str, colour: tuple[float, float, float, float] | None) -> None:
    """Draw one cell with its text; one without a colour is hatched, so that it is not taken for a number."""
    from matplotlib.patches import Rectangle

    face: Any = colour or "white"
    edge, hatch = ("white", None) if colour else ("#999999", "////")
    axes.add_patch(Rectangle((column, row), 1, 1, facecolor=face, edgecolor=edge, hatch=hatch, linewidth=0.5))
    size = style.SMALL * min(1.0, 3.4 / len(text))  # "+111" would stand in the next cell
    axes.text(
        column + 0.5, row + 0.5, text, ha="center", va="center_baseline", fontsize=size, color=style.on(face),
        bbox=None if colour else {"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )  # fmt: skip


def _columns(axes: Axes, conditions: Sequence[tuple[str, str]]) -> None:
    """Write the levels below the columns, and each perturbation below its levels."""
    axes.set_xticks(
        [at + 0.5 for at in range(len(conditions))], [style.label(level, 8, 1) for _, level in conditions], rotation=90
    )
    axes.tick_params(labelbottom=True)
    below = 6 + 4.6 * max(min(len(level), 8) for _, level in conditions)
    for perturb in dict.fromkeys(perturb for perturb, _ in conditions):
        places = [at for at, condition in enumerate(conditions) if condition[0] == perturb]
        room = round(5.2 * len(places) * _CELL / 0.4)
        axes.annotate(
            style.label(perturb, max(5, room), 2), ((places[0] + places[-1] + 1) / 2, 0), (0, -below),
            xycoords=("data", "axes fraction"), textcoords="offset points",
            ha="center", va="top", fontsize=style.SMALL,
        )  # fmt: skip


def _alt(
    weights: str, scores: pd.DataFrame, models: Sequence[str], conditions: Sequence[tuple[str, str]], tasks: int
) -> str:
    known = scores[scores["change"].notna()]
    told = f"Grid of the relative change with weights {weights}: {len(models)} models ({style.listed(models)}) by "
    told += f"{len(conditions)} disturbances, {tasks} tasks"
    if not known.empty:
        worst = min(known.to_dict("records"), key=lambda row: float(row["change"]))
        place = " ".join(str(worst[name]) for name in ("model", "task", "perturb", "level"))
        mean, least = style.per_cent(known["change"].mean()), style.per_cent(worst["change"])
        told += f"; the mean is {mean} %, the lowest {least} % ({place})"
    undefined, whole = int(scores["change"].isna().sum()), len(models) * len(conditions) * tasks
    return f"{told}; {undefined} cells undefined, {whole - len(scores)} not run."
