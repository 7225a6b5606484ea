"""How much each perturbation costs in each task: the study's Figure 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noisyhealth.report.figures import style
from noisyhealth.report.outline import Figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NOTE = (
    "Bars: mean relative change over models, levels and scores. Circles: the mean of one model. "
    "n/a: no scenario with a clean score above 0."
)


def drops(scores: pd.DataFrame) -> tuple[Figure, ...]:
    """Return a figure for each weights: the mean relative change by task and perturbation, with each model's mean."""
    parts = scores.assign(change=style.fractions(scores["change"])).groupby("weights", sort=False, observed=True)
    return tuple(_figure(str(weights), part) for weights, part in parts if part["change"].notna().any())


def _figure(weights: str, scores: pd.DataFrame) -> Figure:
    from matplotlib.patches import Patch

    tasks, perturbs = (style.ordered(name, scores[name]) for name in ("task", "perturb"))
    drawing = style.canvas(2.9)
    axes = drawing.subplots()
    style.plain(axes)
    width = 0.8 / len(perturbs)
    means: dict[tuple[str, str], float | None] = {}
    for at, perturb in enumerate(perturbs):
        for row, task in enumerate(tasks):
            cell = scores[(scores["task"] == task) & (scores["perturb"] == perturb)]
            x = row + (at - (len(perturbs) - 1) / 2) * width
            means[task, perturb] = _bar(axes, cell, x, width, at)
    axes.axhline(0, color=style.INK, linewidth=0.6)
    axes.set_xticks(range(len(tasks)), [style.label(task, max(6, 36 // len(tasks))) for task in tasks])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(tasks) - 0.5)
    axes.set_ylabel("mean relative change, %", fontsize=style.SMALL)
    axes.margins(y=0.08)
    keys = [Patch(facecolor=style.colour(at), hatch=style.hatch(at), edgecolor="white") for at in range(len(perturbs))]
    style.legend(drawing, keys, perturbs)
    undefined = int(scores["change"].isna().sum())
    note = _NOTE + (f" {undefined} of {len(scores)} scenarios without a clean score are left out." if undefined else "")
    return Figure(
        name=style.file_name("drops", weights),
        title=f"Relative change by task and perturbation (weights: {weights})",
        drawing=style.settled(drawing),
        alt=_alt(weights, scores["model"].nunique(), tasks, perturbs, means),
        note=note,
    )


def _bar(axes: Axes, cell: pd.DataFrame, x: float, width: float, at: int) -> float | None:
    """Draw one bar with the points of its models, and return its height as a fraction; None where there is none."""
    import numpy as np

    known = 100 * cell["change"].dropna()
    if known.empty:
        what = "n/a" if len(cell) else "not run"
        axes.annotate(
            what, (x, 0), (0, -3), textcoords="offset points",
            fontsize=style.SMALL, ha="center", va="top", rotation=90,
        )  # fmt: skip
        return None
    height = float(known.mean())
    face: dict[str, Any] = {
        "facecolor": style.colour(at),
        "hatch": style.hatch(at),
        "edgecolor": "white",
        "linewidth": 0.4,
    }
    axes.bar(x, height, width * 0.94, gid=f"{at}", **face)
    models = known.groupby(cell["model"].astype(str), sort=False).mean()
    if len(models) == 1:
        return height / 100
    aside = np.linspace(-0.28, 0.28, len(models)) * width
    axes.scatter(
        x + aside, models, s=10 if len(models) <= 12 else 5, facecolor="white",
        edgecolor=style.INK, linewidth=0.6, zorder=3,
    )  # fmt: skip
    return height / 100


def _alt(
    weights: str, models: int, tasks: Sequence[str], perturbs: Sequence[str], means: dict[tuple[str, str], float | None]
) -> str:
    told = "; ".join(
        f"{task}: "
        + ", ".join(
            f"{perturb} {'no value' if (mean := means[task, perturb]) is None else style.per_cent(mean) + ' %'}"
            for perturb in perturbs
        )
        for task in tasks
    )
    return f"Bars of the mean relative change with weights {weights}, over {models} models: {told}."
