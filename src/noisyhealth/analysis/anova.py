"""Does a dimension of the study matter? Repeated-measures analysis of variance, over one dimension and over several.

Works on the long frame of `impact`. One dimension by pingouin, several by statsmodels' AnovaRM, pairs by SciPy. Scores
are hardly ever normal: `inference` has Friedman's test of the same blocks, which does not ask for that.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from noisyhealth.analysis import impact
from noisyhealth.analysis.blocks import Analysed, blocks, numbers
from noisyhealth.analysis.p_value import positive

if TYPE_CHECKING:
    import pandas as pd

WITHIN = ("perturb", "level", "model")
"""The dimensions that `anova_within` tests at once."""

UNCORRECTED, GREENHOUSE_GEISSER = "uncorrected", "Greenhouse-Geisser"
_ALPHA = 0.05
_LARGE = 1000
# Changes are rounded to 1e-9; what is left of them below this is rounding.
_NOTHING = 2e-9
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


@dataclass(frozen=True, slots=True)
class Term:
    """A main effect ("perturb") or an interaction ("perturb:level").

    `eta` is partial eta squared, F df1 / (F df1 + df2) (Lakens 2013, doi:10.3389/fpsyg.2013.00863, eq. 13), 0 to 1.
    f, p and eta are None where the subjects leave no error to compare with.
    """

    name: str
    df1: int
    df2: int
    f: float | None = None
    p: float | None = None
    eta: float | None = None


@dataclass(frozen=True, slots=True)
class WithinResult:
    """Repeated-measures ANOVA over several dimensions; `terms` is empty where `note` says why.

    `dropped`: dimensions of one level. `subjects` were used; `incomplete` had no value in some cell and were left out.
    """

    factors: tuple[str, ...]
    dropped: tuple[str, ...]
    subject_by: tuple[str, ...]
    subjects: int
    incomplete: int
    terms: tuple[Term, ...] = ()
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
    if _no_error(complete.to_numpy(), (1,)):
        return replace(result, note="the levels differ alike in all blocks: there is no error to compare with")
    return _tested(result, complete)


def anova_within(frame: "pd.DataFrame", *, analysed: Analysed = "change") -> WithinResult:
    """Return the ANOVA over perturb, level and model at once, with their interactions.

    A subject is one score of one task (and one weights). All cells of a subject must have a value: a subject with a
    gap is counted in `incomplete` and left out. A dimension of one level is `dropped`. Of a large study (over 1,000
    values) the dimension with the most levels, such as 40 models, makes subjects instead: the library's time grows
    with the third power of the values. The p values are not corrected where sphericity fails, so a small one of more
    than two levels may be too small: `anova` has the correction.

    Raises DataError for a frame that fails `impact.check`.
    """
    impact.check(frame)
    factors = [name for name in WITHIN if frame[name].nunique() > 1]
    large = max(factors, key=lambda name: frame[name].nunique()) if len(frame) > _LARGE and len(factors) > 1 else ""
    factors = [name for name in factors if name != large]
    by = [name for name in impact.KEY if name not in WITHIN or name == large]
    wide = _cells(frame.assign(_number=numbers(frame, analysed).round(9)), by, factors)
    complete = wide.dropna()
    result = WithinResult(
        factors=tuple(factors),
        dropped=tuple(name for name in WITHIN if name not in (*factors, large)),
        subject_by=tuple(by),
        subjects=len(complete),
        incomplete=len(wide) - len(complete),
    )
    notes = [f"{name} has one level and is left out" for name in result.dropped]
    notes += [f"{frame[large].nunique()} levels of {large} make subjects"] if large else []
    if not factors:
        notes.append("no dimension has 2 levels")
    elif never := ["/".join(map(str, cell)) for cell in wide.columns[wide.isna().all()]]:
        notes.append(f"no subject has a value for {', '.join(never)}: the test needs every cell")
    elif len(complete) < 2:
        notes.append(f"{len(complete)} complete subjects: the test needs 2")
    else:
        terms = _terms(complete, factors)
        lacking = [term.name for term in terms if term.f is None]
        notes += [f"no error to compare with for {', '.join(lacking)}"] if lacking else []
        result = replace(result, terms=terms)
    return replace(result, note="; ".join(notes))


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
        if apart.max() - apart.min() > _NOTHING:
            test = ttest_rel(complete[first], complete[second])
            p = positive(min(1.0, float(test.pvalue) * len(both)))
            pair = replace(pair, t=float(test.statistic), p=p, d=float(apart.mean() / apart.std()))
        pairs.append(pair)
    return tuple(pairs)


def _cells(long: "pd.DataFrame", by: Sequence[str], factors: Sequence[str]) -> "pd.DataFrame":
    """Return subjects by cells, every combination of levels a cell; a gap is NaN."""
    import pandas as pd

    if not factors:
        return long.set_index(list(by))[["_number"]]
    every = pd.MultiIndex.from_product([long[name].unique() for name in factors], names=list(factors))
    named = pd.Series([*long[list(factors)].itertuples(index=False, name=None)], index=long.index)
    keyed = long.assign(_cell=named)
    wide = keyed.groupby([*by, "_cell"], sort=False)["_number"].first().unstack("_cell")
    return wide.reindex(columns=list(every)).set_axis(every, axis=1)


def _terms(complete: "pd.DataFrame", factors: Sequence[str]) -> tuple[Term, ...]:
    import numpy as np
    from statsmodels.stats.anova import AnovaRM

    named = complete.reset_index(drop=True).rename_axis(index="subject")
    long = named.T.reset_index().melt(list(factors), var_name="subject", value_name="number")
    long["number"] = long["number"].astype(float)
    with np.errstate(all="ignore"):  # F without error is inf or NaN: such terms have none, see below
        table = AnovaRM(long, "number", "subject", within=list(factors)).fit().anova_table
    shape = [complete.columns.get_level_values(name).nunique() for name in factors]
    cells = complete.to_numpy().reshape(len(complete), *shape)
    return tuple(_term(str(name), row, cells, factors) for name, row in table.iterrows())


def _term(name: str, row: Any, cells: Any, factors: Sequence[str]) -> Term:
    df1, df2 = round(row["Num DF"]), round(row["Den DF"])
    if _no_error(cells, tuple(1 + factors.index(part) for part in name.split(":"))):
        return Term(name, df1, df2)
    f = max(float(row["F Value"]), 0.0)
    return Term(name, df1, df2, f=f, p=positive(float(row["Pr > F"])), eta=f * df1 / (f * df1 + df2))


def _no_error(cells: Any, axes: tuple[int, ...]) -> bool:
    """Return whether all subjects (axis 0) answer alike to the factors of `axes`, the others averaged."""
    others = tuple(at for at in range(1, cells.ndim) if at not in axes)
    left = cells.mean(axis=others, keepdims=True)
    for axis in (0, *axes):
        left = left - left.mean(axis=axis, keepdims=True)
    return bool(abs(left).max() < _NOTHING)
