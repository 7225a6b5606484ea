"""What a disturbance did to a score: its relative change, and the study's category for it.

The frame is long: one row per (task, model, weights, perturb, level, score_name) with the columns
n, value (the score on the disturbed texts) and baseline (on the same texts, undisturbed).
"""

import math
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

KEY = ("task", "model", "weights", "perturb", "level", "score_name")
"""The columns that name one scenario."""

# Changes are compared to 1e-9: 0.80 to 0.76 is -5.0000000000000044 % in floats.
_DIGITS = 9


class Category(StrEnum):
    """The study's four categories (Joshi et al. 2026, Metrics for Evaluation), and none of them."""

    INCREASE = "increase"
    STABLE = "stable"
    DECREASE = "decrease"
    CATASTROPHIC = "catastrophic"
    UNDEFINED = "undefined"


def change(score: float, baseline: float) -> float | None:
    """Return the change as a fraction of the baseline, to 1e-9; None without a positive baseline.

    Rounded so that equal changes of different baselines are equal, also when they are ranked.
    Raises DataError when a number is NaN or infinite.

    >>> change(0.76, 0.80), change(0.57, 0.60), change(0.3, 0.0)
    (-0.05, -0.05, None)
    """
    if not (math.isfinite(score) and math.isfinite(baseline)):
        raise DataError(f"score {score} against baseline {baseline}: both must be numbers; compute the cell again")
    if baseline <= 0:
        return None
    return round((score - baseline) / baseline, _DIGITS) + 0.0  # + 0.0 turns -0.0 into 0.0


def category(score: float, baseline: float) -> Category:
    """Return the category of a change; edges as in docs/decisions.md.

    Exactly -5 % is a decrease, exactly -50 % catastrophic, exactly 0 stable; without a positive
    baseline the change is undefined.

    >>> str(category(0.76, 0.80)), str(category(0.80, 0.80)), str(category(0.40, 0.80))
    ('decrease', 'stable', 'catastrophic')
    """
    relative = change(score, baseline)
    if relative is None:
        return Category.UNDEFINED
    if relative > 0:
        return Category.INCREASE
    if relative > -0.05:
        return Category.STABLE
    return Category.DECREASE if relative > -0.5 else Category.CATASTROPHIC


def category_table(frame: "pd.DataFrame", by: Sequence[str]) -> "pd.DataFrame":
    """Return a row per group: the columns of `by`, n, and of each category its count and its share.

    n is the number of scenarios (rows of the frame) of the group; a share is a fraction of n, 0 to
    1, undefined scenarios among them. Groups stand in the order of their first row; an empty `by`
    gives one row for everything.

    Raises DataError for a frame that fails `check`, and for weights that would mix in one row.
    """
    import pandas as pd

    check(frame)
    missing = [name for name in by if name not in frame.columns]
    if missing:
        raise DataError(f"no column {missing} to group by: the frame has {list(frame.columns)}")
    if "weights" not in by and frame["weights"].nunique() > 1:
        raise DataError(
            f"weights {sorted(frame['weights'].unique())} would mix in one row: "
            "add 'weights' to `by`, or keep one of them"
        )
    groups = frame.groupby(list(by), sort=False, dropna=False) if by else [((), frame)]
    return pd.DataFrame([{**dict(zip(by, key, strict=True)), **_tally(group)} for key, group in groups])


def check(frame: "pd.DataFrame") -> None:
    """Raise DataError unless the frame is as this page says: disturbed cells, each score once."""
    missing = [name for name in (*KEY, "value", "baseline") if name not in frame.columns]
    if missing:
        raise DataError(f"no column {missing} in the frame of scores: it has {list(frame.columns)}")
    if frame.empty:
        raise DataError("0 scores to analyse: run some cells first, or widen the selection")
    if (frame["perturb"] == "none").any():
        raise DataError("rows with perturb 'none' are baselines, not scenarios: leave them out")
    twice = frame[frame.duplicated(list(KEY))]
    if not twice.empty:
        raise DataError(f"the score {twice.iloc[0][list(KEY)].to_dict()} stands twice: keep one run of each cell")


def _tally(group: "pd.DataFrame") -> dict[str, int | float]:
    both = zip(group["value"].astype(float), group["baseline"].astype(float), strict=True)
    found = Counter(category(score, base) for score, base in both)
    counts = {str(one): found[one] for one in Category}
    shares = {f"{name}_share": count / len(group) for name, count in counts.items()}
    return {"n": len(group), **counts, **shares}
