"""Do categories of change depend on a dimension of the study? Pearson's chi-squared test of one against the other.

Works on the long frame of `impact`. Tests and effect size by SciPy.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from noisyhealth.analysis import impact
from noisyhealth.analysis.p_value import positive
from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

_SMALL = 5.0  # expected scenarios in a cell, below which the distribution is not chi-squared's (Cochran 1954)
_DRAWS = 9999
_ROUNDING = 1e-9
DISTRIBUTION, PERMUTATION = "chi-squared", "permutation"


@dataclass(frozen=True, slots=True)
class Association:
    """Pearson's test of `factor` against the categories, with what it rests on.

    `observed` and `expected`: scenarios, one row a level of the factor and one column a category; under no association
    `expected` are the means. `method`: what p was taken from, the chi-squared distribution, or 9,999 permutations where
    an expected number is below 5 (p is then at least .0001). `v`: Cramér's, 0 (none) to 1 (full association).
    chi2, df, p and v are None, never NaN, where `note` says why. `dropped`: categories that no scenario has.
    `undefined`: scenarios left out because their clean score is 0; `dropped_levels` have no others.
    """

    factor: str
    levels: tuple[str, ...]
    categories: tuple[str, ...]
    dropped: tuple[str, ...]
    dropped_levels: tuple[str, ...]
    undefined: int
    n: int
    observed: tuple[tuple[int, ...], ...]
    expected: tuple[tuple[float, ...], ...] = ()
    chi2: float | None = None
    df: int | None = None
    p: float | None = None
    method: str = ""
    v: float | None = None
    note: str = ""


def association(frame: "pd.DataFrame", factor: str, *, seed: int = 0) -> Association:
    """Return the test of the four categories against a factor (perturb, model, task or level).

    Scenarios of one cell come from the same replies, so p is too small; the study counts them in the same way.
    `seed` decides the permutations. Raises DataError for a factor that is no column, for weights that would mix, and
    for a frame that fails `impact.check`.
    """
    impact.check(frame)
    if factor not in impact.KEY:
        raise DataError(f"factor {factor!r} is none of {', '.join(impact.KEY)}: name one of them")
    if frame["weights"].nunique() > 1:
        raise DataError(f"weights {sorted(frame['weights'].unique())} would mix in one test: keep one of them")
    table = _counts(frame, factor)
    known = table.drop(columns=[str(impact.Category.UNDEFINED)])
    kept = known.loc[known.sum(axis=1) > 0, known.sum(axis=0) > 0]
    found = Association(
        factor=factor,
        levels=tuple(map(str, kept.index)),
        categories=tuple(map(str, kept.columns)),
        dropped=tuple(str(name) for name in known.columns if name not in kept.columns),
        dropped_levels=tuple(str(name) for name in known.index if name not in kept.index),
        undefined=int(table[str(impact.Category.UNDEFINED)].sum()),
        n=int(kept.to_numpy().sum()),
        observed=tuple(tuple(map(int, row)) for row in kept.to_numpy()),
    )
    if min(kept.shape) < 2:
        rows, columns = kept.shape
        return replace(found, note=f"{rows} levels and {columns} categories: the test needs two of each")
    return _tested(found, kept, seed)


def _counts(frame: "pd.DataFrame", factor: str) -> "pd.DataFrame":
    """Return levels by categories, in the order of the frame and of the study."""
    import pandas as pd

    both = zip(frame["value"].astype(float), frame["baseline"].astype(float), strict=True)
    names = [str(impact.category(score, base)) for score, base in both]
    table = pd.crosstab(frame[factor].to_numpy(), pd.Series(names).to_numpy())
    return table.reindex(index=frame[factor].unique(), columns=[str(c) for c in impact.Category], fill_value=0)


def _tested(found: Association, kept: "pd.DataFrame", seed: int) -> Association:
    from scipy.stats import chi2_contingency
    from scipy.stats.contingency import association as effect

    observed = kept.to_numpy()
    result = chi2_contingency(observed, correction=False)
    p, method = float(result.pvalue), DISTRIBUTION
    if result.expected_freq.min() < _SMALL:
        p, method = _permuted(observed, result.expected_freq, seed), PERMUTATION
    return replace(
        found,
        expected=tuple(tuple(map(float, row)) for row in result.expected_freq),
        chi2=float(result.statistic),
        df=int(result.dof),
        p=positive(p),
        method=method,
        v=float(effect(observed, method="cramer")),
    )


def _permuted(observed: "NDArray[np.int64]", expected: "NDArray[np.float64]", seed: int) -> float:
    """Return p over tables with the same sums, which is what permuting one column of the scenarios gives.

    SciPy's `chi2_contingency` with permutations counts each anew: ten seconds for 3,000 scenarios.
    """
    import numpy as np
    from scipy.stats import random_table

    rows, columns = observed.sum(axis=1), observed.sum(axis=0)
    drawn = random_table(rows, columns).rvs(size=_DRAWS, random_state=np.random.default_rng(seed))
    least = ((observed - expected) ** 2 / expected).sum() * (1 - _ROUNDING)
    as_large = int((((drawn - expected) ** 2 / expected).sum(axis=(1, 2)) >= least).sum())
    return (as_large + 1) / (_DRAWS + 1)
