"""Does a dimension of the study matter? Friedman's test over it, and which of its levels differ.

Works on the long frame of `impact`. Friedman 1937, doi:10.1080/01621459.1937.10503522, by pingouin;
pairs after Conover (Practical Nonparametric Statistics, 3rd ed. 1999, section 5.8) by scikit-posthocs.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from noisyhealth.analysis.blocks import FACTORS, Analysed, blocks
from noisyhealth.analysis.p_value import positive

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FACTORS", "FriedmanResult", "Pair", "friedman", "size"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two levels of a factor compared; `p` is Bonferroni-corrected, None where no test is possible.

    `difference` is the mean rank of `first` less that of `second`; a higher rank is a higher value.
    `effect` is r of this contrast, with the sign of `difference`: t / sqrt(t^2 + df) of Conover's t
    (Rosenthal, Rosnow & Rubin, Contrasts and Effect Sizes in Behavioral Research, 2000), -1 to 1, and
    1 or -1 where the blocks leave no error. `size` is its word by `size`.
    """

    first: str
    second: str
    difference: float
    p: float | None
    effect: float
    size: str


@dataclass(frozen=True, slots=True)
class FriedmanResult:
    """Friedman's test over one dimension, with what it rests on.

    `q` is chi-squared distributed with `df` under no effect, corrected for ties; `w` is Kendall's W,
    0 (no agreement of the blocks) to 1; `size` is its word. q, p and w are None, never NaN, and
    `size` is "", where `note` says why.
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
    size: str = ""
    mean_ranks: Mapping[str, float] | None = None
    pairs: tuple[Pair, ...] = ()
    note: str = ""


def friedman(frame: "pd.DataFrame", factor: str, *, analysed: Analysed = "change") -> FriedmanResult:
    """Return Friedman's test over `factor` (perturb, model, task or level).

    `blocks` says what a block is and what is `analysed`. Blocks without a value for every level
    (a cell that is missing, a baseline of 0) are counted in `incomplete`, never dropped in silence.

    Raises DataError for another factor and for a frame that fails `impact.check`.
    """
    wide = blocks(frame, factor, analysed)
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


def size(effect: float) -> str:
    """Return the word for r or for Kendall's W: none below .1, small below .3, medium below .5, else large.

    Cohen's rule for r (Statistical Power Analysis, 2nd ed. 1988, section 3.2), which is applied to W
    as well (Tomczak & Tomczak 2014, Trends in Sport Sciences 21:19-25; R's rstatix). The study calls
    its effects so without saying by which rule (Joshi et al. 2026, Table 3).

    >>> size(-0.29), size(0.5)
    ('small', 'large')
    """
    words = ((0.1, "none"), (0.3, "small"), (0.5, "medium"))
    return next((word for below, word in words if round(abs(effect), 9) < below), "large")


def _untestable(complete: "pd.DataFrame") -> str:
    """Return why no test is possible, "" where one is."""
    blocks, levels = complete.shape
    if levels < 3:
        return f"{levels} {'level' if levels == 1 else 'levels'}: Friedman's test needs 3"
    if blocks < 2:
        return f"{blocks} complete {'block' if blocks == 1 else 'blocks'}: Friedman's test needs 2"
    if (complete.nunique(axis=1) == 1).all():
        return "in every block all values are equal: there is nothing to rank"
    return ""


def _tested(result: FriedmanResult, complete: "pd.DataFrame") -> FriedmanResult:
    from pingouin import friedman as test

    named = complete.set_axis(list(result.levels), axis=1).reset_index(drop=True).rename_axis(index="block")
    long = named.reset_index().melt("block", var_name="level", value_name="number")
    row = test(data=long, dv="number", within="level", subject="block").iloc[0]
    ranks = named.rank(axis=1)
    w = float(row["W"])
    alike = bool((ranks == ranks.iloc[0]).all(axis=None))
    return replace(
        result,
        q=float(row["Q"]),
        p=positive(float(row["p_unc"])),
        w=w,
        size=size(w),
        mean_ranks={level: float(ranks[level].mean()) for level in result.levels},
        pairs=_pairs(named, ranks, testable=not alike),
        note="all blocks rank alike: Conover's test has no error to divide by, the pairs have no p" if alike else "",
    )


def _pairs(named: "pd.DataFrame", ranks: "pd.DataFrame", *, testable: bool) -> tuple[Pair, ...]:
    from scikit_posthocs import posthoc_conover_friedman

    table = posthoc_conover_friedman(named, p_adjust="bonferroni") if testable else None
    sums = ranks.sum()
    # Conover's t is a difference of rank sums over sqrt(error / df): t / sqrt(t^2 + df) without t, which may be inf.
    error = 2 * float(len(ranks) * (ranks**2).to_numpy().sum() - (sums**2).sum())
    pairs = []
    for first, second in combinations(map(str, named.columns), 2):
        between = float(sums[first] - sums[second])
        effect = between / math.sqrt(between**2 + error) if between else 0.0
        p = None if table is None else positive(float(table.loc[first, second]))
        pairs.append(Pair(first, second, between / len(ranks), p, effect, size(effect)))
    return tuple(pairs)
