"""The blocks of a study: what is alike in everything but one dimension, a row each, its levels side by side.

Works on the long frame of `impact`.
"""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from noisyhealth.analysis import impact
from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

FACTORS = ("perturb", "model", "task", "level")
"""The dimensions of a study."""

Analysed: TypeAlias = Literal["change", "value"]

# Changes are rounded to 1e-9; what is left of them below this is rounding.
NOTHING = 2e-9


def blocks(frame: "pd.DataFrame", factor: str, analysed: Analysed = "change") -> "pd.DataFrame":
    """Return blocks by levels of `factor` (perturb, model, task or level); a gap is NaN.

    A block is one combination of every other dimension, the weights and the score name. Over
    tasks the scores of a task are averaged first and the score name makes no blocks, because
    tasks are not scored alike (F1 here, ROUGE-L there). `analysed` is the relative change
    against the baseline, or the value itself. Numbers are rounded to 1e-9; a level stands where it
    first comes in the frame. A cell that is missing and a baseline of 0 leave a gap; a block
    without a single row is not known here.

    Raises DataError for another factor and for a frame that fails `impact.check`.
    """
    if factor not in FACTORS:
        raise DataError(f"factor {factor!r} is none of {', '.join(FACTORS)}: name one of them")
    impact.check(frame)
    across = [name for name in impact.KEY if name != factor and not (factor == "task" and name == "score_name")]
    long = frame.assign(_number=numbers(frame, analysed)).groupby([*across, factor], sort=False)["_number"]
    means = long.agg(lambda scores: scores.mean(skipna=False)).round(9)
    wide = means.unstack(factor)[list(frame[factor].unique())]
    if factor == "task":
        # A mean over fewer scores than the task has is not comparable: one gap makes a gap.
        has = frame.groupby("task")["score_name"].nunique()
        wide = wide.where(long.size().unstack(factor)[wide.columns].eq(has[wide.columns], axis="columns"))
    return wide


def numbers(frame: "pd.DataFrame", analysed: Analysed) -> "pd.Series[float]":
    """Return what is analysed of each row: its relative change, NaN without a positive baseline, or its value."""
    import pandas as pd

    if analysed == "value":
        return frame["value"].astype(float)
    both = zip(frame["value"].astype(float), frame["baseline"].astype(float), strict=True)
    return pd.Series([impact.change(score, base) for score, base in both], index=frame.index, dtype=float)


def no_error(cells: Any, axes: tuple[int, ...]) -> bool:
    """Return whether all subjects (axis 0) answer alike to the factors of `axes`, the others averaged."""
    others = tuple(at for at in range(1, cells.ndim) if at not in axes)
    left = cells.mean(axis=others, keepdims=True)
    for axis in (0, *axes):
        left = left - left.mean(axis=axis, keepdims=True)
    return bool(abs(left).max() < NOTHING)
