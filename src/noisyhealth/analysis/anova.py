"""Does a dimension of the study matter? Repeated-measures analysis of variance over one; `within` has several at once.

Works on the long frame of `impact`. By pingouin, pairs by SciPy. Scores are hardly ever normal:
`inference` has Friedman's test of the same blocks, which does not ask for that.
"""

import warnings
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from noisyhealth.analysis.blocks import NOTHING, Analysed, blocks, no_error
from noisyhealth.analysis.p_value import positive

if TYPE_CHECKING:
    import pandas as pd

UNCORRECTED, GREENHOUSE_GEISSER = "uncorrected", "Greenhouse-Geisser"
_ALPHA = 0.05
# Mauchly's W of differences that depend on each other is 0, but for rounding.
_SINGULAR = 1e-12


@dataclass(frozen=True, slots=True)
class PairedT:
    """Two levels compared by a paired t test over the blocks; `p` is Bonferroni-corrected over the pairs.

    `difference` is the mean of `first` less that of `second`; `d` is Cohen's d_z, that mean over the standard deviation
    of the blocks' differences (Lakens 2013, doi:10.3389/fpsyg.2013.00863, eq. 6). t, p and d are None where all
    blocks differ alike.
    """

    first: str
    second: str
    difference: float
    df: int
    t: float | None = None
    p: float | None = None
    d: float | None = None


@dataclass(frozen=True, slots=True)
class AnovaResult:
    """Repeated-measures ANOVA over one dimension, with what it rests on.

    `p` is `p_gg` where sphericity fails (Mauchly's p below .05) or cannot be tested, else `p_uncorrected`; `p_by` says
    which. `epsilon` is Greenhouse and Geisser's (1959, doi:10.1007/BF02289823), 1 / df1 to 1 (spherical). `eta` is
    generalised eta squared (Olejnik & Algina 2003, doi:10.1037/1082-989X.8.4.434), 0 to 1. `blocks` were used;
    `incomplete` had no value for some level and were left out. Numbers are None, never NaN, where `note` says why;
    Mauchly's also with 2 levels, which are always spherical.
    """

    factor: str
    levels: tuple[str, ...]
    block_by: tuple[str, ...]
    blocks: int
    incomplete: int
    df1: int
    df2: int
    f: float | None = None
    p: float | None = None
    p_by: str = ""
    p_uncorrected: float | None = None
    mauchly_w: float | None = None
    mauchly_p: float | None = None
    epsilon: float | None = None
    p_gg: float | None = None
    eta: float | None = None
    pairs: tuple[PairedT, ...] = ()
    note: str = ""


def anova(frame: "pd.DataFrame", factor: str, *, analysed: Analysed = "change") -> AnovaResult:
    """Return the one-way repeated-measures ANOVA over `factor` (perturb, model, task or level).

    The blocks are those of Friedman's test, see `blocks`; so is `analysed`. Blocks with a gap are counted in
    `incomplete`. Raises DataError for another factor and for a frame that fails `impact.check`.
    """
    wide = blocks(frame, factor, analysed)
    complete = wide.dropna()
    used, levels = complete.shape
    result = AnovaResult(
        factor=factor,
        levels=tuple(map(str, wide.columns)),
        block_by=tuple(map(str, wide.index.names)),
        blocks=used,
        incomplete=len(wide) - used,
        df1=levels - 1,
        df2=(levels - 1) * max(used - 1, 0),
    )
    if levels < 2 or used < 2:
        return replace(result, note=f"{levels} levels and {used} complete blocks: the test needs two of each")
    result = replace(result, pairs=_pairs(complete.set_axis(list(result.levels), axis=1)))
    if (complete.nunique(axis=1) == 1).all():
        return replace(result, note="in every block all values are equal: there is no difference to test")
    if no_error(complete.to_numpy(), (1,)):
        return replace(result, note="the levels differ alike in all blocks: there is no error to compare with")
    return _tested(result, complete)


def _tested(result: AnovaResult, complete: "pd.DataFrame") -> AnovaResult:
    import numpy as np
    from pingouin import rm_anova

    named = complete.set_axis(list(result.levels), axis=1).reset_index(drop=True).rename_axis(index="block")
    long = named.reset_index().melt("block", var_name="level", value_name="number")
    # A W of 0 has no p, see below. pingouin 0.7 uses a keyword that pandas 3.1 warns of.
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The inplace keyword", DeprecationWarning)
        row = rm_anova(data=long, dv="number", within="level", subject="block", correction=True, effsize="ng2").iloc[0]
    p = positive(float(row["p_unc"]))
    result = replace(result, f=float(row["F"]), p_uncorrected=p, epsilon=float(row["eps"]), eta=float(row["ng2"]))
    if result.df1 == 1:
        return replace(result, p=p, p_by=UNCORRECTED, p_gg=p)
    p_gg = positive(float(row["p_GG_corr"]))
    if result.blocks <= result.df1 or not row["W_spher"] > _SINGULAR:
        note = f"Mauchly's test cannot be made of {result.blocks} blocks with these differences: p is corrected"
        return replace(result, p=p_gg, p_by=GREENHOUSE_GEISSER, p_gg=p_gg, note=note)
    mauchly = positive(float(row["p_spher"]))
    by, chosen = (GREENHOUSE_GEISSER, p_gg) if mauchly < _ALPHA else (UNCORRECTED, p)
    return replace(result, p=chosen, p_by=by, p_gg=p_gg, mauchly_w=float(row["W_spher"]), mauchly_p=mauchly)


def _pairs(complete: "pd.DataFrame") -> tuple[PairedT, ...]:
    from scipy.stats import ttest_rel

    both = list(combinations(map(str, complete.columns), 2))
    pairs = []
    for first, second in both:
        apart = complete[first] - complete[second]
        pair = PairedT(first, second, float(apart.mean()), len(complete) - 1)
        if apart.max() - apart.min() > NOTHING:
            test = ttest_rel(complete[first], complete[second])
            p = positive(min(1.0, float(test.pvalue) * len(both)))
            pair = replace(pair, t=float(test.statistic), p=p, d=float(apart.mean() / apart.std()))
        pairs.append(pair)
    return tuple(pairs)
