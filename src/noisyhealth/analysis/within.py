"""Do dimensions of the study matter together? Repeated-measures analysis of variance over several, by statsmodels.

Works on the long frame of `impact`; `anova` has one dimension at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from noisyhealth.analysis import impact
from noisyhealth.analysis.blocks import Analysed, no_error, numbers
from noisyhealth.analysis.p_value import positive

if TYPE_CHECKING:
    import pandas as pd

WITHIN = ("perturb", "level", "model")
"""The dimensions that `anova_within` tests at once."""

_LARGE = 1000


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
    if no_error(cells, tuple(1 + factors.index(part) for part in name.split(":"))):
        return Term(name, df1, df2)
    f = max(float(row["F Value"]), 0.0)
    return Term(name, df1, df2, f=f, p=positive(float(row["Pr > F"])), eta=f * df1 / (f * df1 + df2))
