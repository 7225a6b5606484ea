"""Does a dimension of the study matter? Friedman's test over it, and which of its levels differ.

Works on the long frame of `impact`. Friedman 1937, doi:10.1080/01621459.1937.10503522, by pingouin;
pairs after Conover (Practical Nonparametric Statistics, 3rd ed. 1999, section 5.8) by scikit-posthocs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from noisyhealth.analysis import impact
from noisyhealth.analysis.p_value import positive
from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

FACTORS = ("perturb", "model", "task", "level")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two levels of a factor compared; `p` is Bonferroni-corrected, None where no test is possible.

    `difference` is the mean rank of `first` less that of `second`; a higher rank is a higher value.
    """

    first: str
    second: str
    difference: float
    p: float | None


@dataclass(frozen=True, slots=True)
class FriedmanResult:
    """Friedman's test over one dimension, with what it rests on.

    `q` is chi-squared distributed with `df` under no effect, corrected for ties; `w` is Kendall's W,
    0 (no agreement of the blocks) to 1. q, p and w are None, never NaN, where `note` says why.
    `blocks` were used; `incomplete` had no value for some level and were left out. `block_by`
    names the columns that make a block. `mean_ranks`: 1 is the lowest value.
    """

    factor: str
    levels: tuple[str, ...]
    block_by: tuple[str, ...]
    blocks: int
    incomplete: int
    df: int
    q: float | None = None
    p: float | None = None
    w: float | None = None
    mean_ranks: Mapping[str, float] | None = None
    pairs: tuple[Pair, ...] = ()
    note: str = ""


def friedman(frame: "pd.DataFrame", factor: str, *, analysed: Literal["change", "value"] = "change") -> FriedmanResult:
    """Return Friedman's test over `factor` (perturb, model, task or level).

    A block is one combination of every other dimension, the weights and the score name. Over
    tasks the scores of a task are averaged first and the score name makes no blocks, because
    tasks are not scored alike (F1 here, ROUGE-L there). `analysed` is the relative change
    against the baseline, or the value itself. Blocks without a value for every level (a cell
    that is missing, a baseline of 0) are counted in `incomplete`, never dropped in silence; a block
    without a single row is not known here.

    Raises DataError for another factor and for a frame that fails `impact.check`.
    """
    if factor not in FACTORS:
        raise DataError(f"factor {factor!r} is none of {', '.join(FACTORS)}: name one of them")
    impact.check(frame)
    wide = _wide(frame, factor, analysed)
    complete = wide.dropna()
    result = FriedmanResult(
        factor=factor,
        levels=tuple(map(str, wide.columns)),
        block_by=tuple(map(str, wide.index.names)),
        blocks=len(complete),
        incomplete=len(wide) - len(complete),
        df=wide.shape[1] - 1,
    )
    note = _untestable(complete)
    return replace(result, note=note) if note else _tested(result, complete)


def _wide(frame: "pd.DataFrame", factor: str, analysed: str) -> "pd.DataFrame":
    """Return blocks by levels; a level stands where it first comes in the frame, a gap is NaN."""
    import pandas as pd

    both = zip(frame["value"].astype(float), frame["baseline"].astype(float), strict=True)
    numbers = [impact.change(score, base) for score, base in both] if analysed == "change" else frame["value"]
    column = pd.Series(numbers, index=frame.index, dtype=float)
    across = [name for name in impact.KEY if name != factor and not (factor == "task" and name == "score_name")]
    long = frame.assign(_number=column).groupby([*across, factor], sort=False)["_number"]
    wide = long.agg(lambda numbers: numbers.mean(skipna=False)).round(9).unstack(factor)[list(frame[factor].unique())]
    if factor == "task":
        # A mean over fewer scores than the task has is not comparable: one gap makes a gap.
        has = frame.groupby("task")["score_name"].nunique()
        wide = wide.where(long.size().unstack(factor)[wide.columns].eq(has[wide.columns], axis="columns"))
    return wide


def _untestable(complete: "pd.DataFrame") -> str:
    """Return why no test is possible, "" where one is."""
    blocks, levels = complete.shape
    if levels < 3:
        return f"{levels} levels: Friedman's test needs 3"
    if blocks < 2:
        return f"{blocks} complete blocks: Friedman's test needs 2"
    if (complete.nunique(axis=1) == 1).all():
        return "in every block all values are equal: there is nothing to rank"
    return ""


def _tested(result: FriedmanResult, complete: "pd.DataFrame") -> FriedmanResult:
    from pingouin import friedman as test

    named = complete.set_axis(list(result.levels), axis=1).reset_index(drop=True).rename_axis(index="block")
    long = named.reset_index().melt("block", var_name="level", value_name="number")
    row = test(data=long, dv="number", within="level", subject="block").iloc[0]
    ranks = named.rank(axis=1)
    alike = bool((ranks == ranks.iloc[0]).all(axis=None))
    return replace(
        result,
        q=float(row["Q"]),
        p=positive(float(row["p_unc"])),
        w=float(row["W"]),
        mean_ranks={level: float(ranks[level].mean()) for level in result.levels},
        pairs=_pairs(named, ranks, testable=not alike),
        note="all blocks rank alike: Conover's test has no error to divide by, the pairs have no p" if alike else "",
    )


def _pairs(named: "pd.DataFrame", ranks: "pd.DataFrame", *, testable: bool) -> tuple[Pair, ...]:
    from scikit_posthocs import posthoc_conover_friedman

    table = posthoc_conover_friedman(named, p_adjust="bonferroni") if testable else None
    return tuple(
        Pair(
            first,
            second,
            difference=float(ranks[first].mean() - ranks[second].mean()),
            p=None if table is None else positive(float(table.loc[first, second])),
        )
        for first, second in combinations(map(str, named.columns), 2)
    )
