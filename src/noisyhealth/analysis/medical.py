"""Does it matter whether the disturbed words are medical? Scores by the share of medical terms among them.

Works on a frame of replies: one row per disturbed cell and example with the columns `ITEMS`; `right` is 0 or 1, or the
ROUGE-L of the reply, on the disturbed text, `clean_right` the same on the clean one, `edits` how many words were
edited, `medical` which share of those are medical terms (fraction, 0 to 1; NaN where no word was edited).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from noisyhealth.analysis.p_value import positive
from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

ITEMS = ("task", "model", "weights", "perturb", "level", "id", "group", "right", "clean_right", "edits", "medical")
"""The columns of the frame of replies."""

EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Where the bins end: 0 alone, then above 0 up to .25 with it, and so on."""

UNEDITED = "none edited"
"""The bin of replies whose text had no word edited: they have no share."""

_DIGITS = 9  # shares are compared to 1e-9, as changes are: a third of the words is in the bin that ends at 1/3


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's rank correlation of the medical share with the score, among the rows that `among` names.

    `n`: points, one an independent text (see `spearman`); `replies`: rows they are means of; `unedited`: rows left out
    because no word was edited. `p` is two-sided, of Student's t distribution with n - 2 degrees of freedom, and not
    corrected for the number of rows. rho and p are None, never NaN, where `note` says why.
    """

    among: Mapping[str, str]
    n: int
    replies: int
    unedited: int
    rho: float | None = None
    p: float | None = None
    note: str = ""


def bins(
    items: "pd.DataFrame", edges: Sequence[float] = EDGES, by: Sequence[str] = ("weights", "task", "level")
) -> "pd.DataFrame":
    """Return a row per group of `by` and bin of the medical share: what the scores in it are.

    Columns: those of `by`; `bin`, in per cent ("0", "0-25": above 0 and up to 25); `n` replies, `texts` different
    disturbed texts among them; `median`, `q1`, `q3` and `mean` of the score; `clean_mean`, the mean of the same texts
    undisturbed: texts with many medical terms may be harder from the start; `binary`, whether every score of the task
    is 0 or 1, so that its median says little. A bin without replies is no row; the n of a group add up to its replies.
    The study's Figure 3 (Joshi et al. 2026) has these medians. Replies of several models to one text are not
    independent. Groups stand in the order of their first row.

    Raises DataError for edges that do not ascend from 0 to 1, and for a frame that fails `check`.
    """
    import numpy as np
    import pandas as pd

    check(items, by)
    if len(edges) < 2 or edges[0] != 0 or edges[-1] != 1 or any(a >= b for a, b in pairwise(edges)):
        raise DataError(f"edges {list(edges)}: bins of a share need edges that ascend from 0 to 1")
    items = items.reset_index(drop=True)
    names = _names(edges)
    share = items["medical"].to_numpy(dtype=float).round(_DIGITS)  # NaN is sorted behind every edge
    place = np.searchsorted(np.asarray(edges, dtype=float).round(_DIGITS), share, side="left")
    whole = items.assign(whole=items["right"].isin([0, 1])).groupby(["weights", "task"], observed=True)["whole"]
    frame = pd.DataFrame({name: _ordered(items[name]) for name in by}).assign(
        bin=pd.Categorical([names[at] for at in place], categories=names),
        text=items.groupby(["task", "perturb", "level", "id"], observed=True, sort=False).ngroup(),
        right=items["right"].astype(float),
        clean=items["clean_right"].astype(float),
        binary=whole.transform("all"),
    )
    groups = frame.groupby([*by, "bin"], observed=True)
    score = groups["right"]
    found = pd.DataFrame(
        {
            "n": groups.size(),
            "texts": groups["text"].nunique(),
            "median": score.median(),
            "q1": score.quantile(0.25),
            "q3": score.quantile(0.75),
            "mean": score.mean(),
            "clean_mean": groups["clean"].mean(),
            "binary": groups["binary"].all(),
        }
    )
    return found.reset_index().astype(dict.fromkeys([*by, "bin"], str))


def spearman(items: "pd.DataFrame", by: Sequence[str] = ("weights", "task", "model", "level")) -> list[Correlation]:
    """Return Spearman's correlation of the medical share with the score, one for each group of `by`.

    The point of the test is the text: all rows of one group (a patient, a series; the example where it has none) are
    averaged first, over whatever `by` does not name (perturbations; models and levels too where it is
    ("weights", "task")). So the points of one correlation are independent, but those of several are not: the same texts
    come again with every model and level. Texts rich in medical terms may be harder undisturbed too; `mixed` holds each
    text against itself.
    Spearman 1904, doi:10.2307/1412159, ties by mean ranks, by SciPy. Groups stand in the order of their first row.

    Raises DataError for a frame that fails `check`.
    """
    import pandas as pd

    check(items, by)
    items = items.reset_index(drop=True)
    rows = pd.DataFrame({name: _ordered(items[name]) for name in by}).assign(
        unit=units(items),
        medical=items["medical"].astype(float),
        right=items["right"].astype(float),
        edited=items["medical"].notna(),
    )
    used = rows[rows["edited"]].groupby([*by, "unit"], observed=True)
    points = used[["medical", "right"]].mean().round(_DIGITS)
    counts = rows.groupby(list(by), observed=True)["edited"].agg(["size", "sum"])
    grouped = {_key(key): part for key, part in points.groupby(level=list(by), observed=True, sort=False)}
    return [
        _correlation(dict(zip(by, map(str, _key(key)), strict=True)), grouped.get(_key(key)), int(edited), int(replies))
        for key, replies, edited in counts.itertuples(name=None)
    ]


def check(items: "pd.DataFrame", by: Sequence[str] = ("weights",)) -> None:
    """Raise DataError unless the frame has all columns, only disturbed texts, scores, and shares of 0 to 1."""
    missing = [name for name in (*ITEMS, *by) if name not in items.columns]
    if missing:
        raise DataError(f"no column {missing} in the frame of replies: it has {list(items.columns)}")
    if "weights" not in by and items["weights"].nunique() > 1:
        raise DataError(
            f"weights {sorted(items['weights'].unique())} would mix in one row: add 'weights' to {list(by)}"
        )
    if (items["perturb"] == "none").any():
        raise DataError("rows with perturb 'none' are clean texts, no word of them is disturbed: leave them out")
    outside = items[~(items["medical"].isna() | items["medical"].between(0, 1))]
    if not outside.empty:
        raise DataError(f"{_first(outside)} has {outside['medical'].iloc[0]} as its share of medical terms, not 0 to 1")
    unscored = items[items["right"].isna() | items["clean_right"].isna()]
    if not unscored.empty:
        raise DataError(f"{_first(unscored)} has no score: score the cell again")


def units(items: "pd.DataFrame") -> "pd.Series[int]":
    """Return a number for each row that independent texts share: their group, or their id where they have none."""
    import pandas as pd

    group, example = items["group"].astype(object), items["id"].astype(object)
    named = group.notna() & (group != "")
    keys = pd.DataFrame({"task": items["task"].astype(object), "named": named, "unit": group.where(named, example)})
    return keys.groupby(["task", "named", "unit"], sort=False).ngroup()


def _correlation(among: Mapping[str, str], points: "pd.DataFrame | None", edited: int, replies: int) -> Correlation:
    from scipy.stats import spearmanr

    n = 0 if points is None else len(points)
    bare = Correlation(among, n=n, replies=edited, unedited=replies - edited)
    if points is None or n < 3:
        return replace(bare, note=f"{n} texts: the test needs 3")
    for name, what in (("medical", "the share of medical terms"), ("right", "the score")):
        if points[name].nunique() == 1:
            return replace(bare, note=f"{what} of every text is {points[name].iloc[0]:.4g}: there is nothing to rank")
    found = spearmanr(points["medical"], points["right"])
    return replace(bare, rho=float(found.statistic), p=positive(float(found.pvalue)))


def _names(edges: Sequence[float]) -> list[str]:
    """Return the names of the bins, in per cent."""
    ends = [f"{100 * edge:.4g}" for edge in edges]
    return [ends[0], *(f"{low}-{high}" for low, high in pairwise(ends)), UNEDITED]


def _ordered(column: "pd.Series") -> "pd.Categorical":
    """Return the column with its values in the order in which they first stand there."""
    import pandas as pd

    return pd.Categorical(column.astype(object), categories=list(column.astype(object).unique()))


def _key(key: object) -> tuple[object, ...]:
    return key if isinstance(key, tuple) else (key,)


def _first(rows: "pd.DataFrame") -> str:
    row = rows.iloc[0]
    return f"example {row['id']!r} of {row['task']}, {row['model']}, {row['perturb']} {row['level']}"
