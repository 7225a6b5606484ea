"""Do answers get worse the more a text is disturbed, and does a disturbance help? Tests over single texts.

Works on the scores of a cell's texts: 0/1, or a score such as ROUGE-L.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Any, TypeAlias

from noisyhealth.analysis.p_value import positive
from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

FALLS, RISES, LEVEL = "falls", "rises", "level"
EXACT, NORMAL, FLIPS = "exact", "normal", "sign flips"
# Up to so many texts that rank at all, the exact distribution takes less than a second.
_EXACT_TEXTS = 500
_EXACT_CONDITIONS = 6
_DIGITS = 9
_ROUNDING = 1e-9  # sums of the same numbers in another order are equal to this
_BLOCK = 200  # draws multiplied at once


@dataclass(frozen=True, slots=True)
class TrendResult:
    """Page's test for a trend over ordered conditions within texts, with what it rests on.

    `statistic` is Page's L: the sum over conditions of their place (1, 2, ...) times the sum of their ranks; `z` is L
    standardised on condition of the ties, below 0 where the score falls. `p` is two-sided, `p_falls` one-sided for a
    falling score; `method` says whether from the exact distribution or the normal one. `direction` is "falls", "rises"
    or "level" (z is 0). `n` texts, of which `constant` score alike in all conditions and so say nothing. Numbers are
    None, never NaN, and `direction` is "", where `note` says why.
    """

    n: int
    conditions: int
    constant: int
    statistic: float | None = None
    z: float | None = None
    p: float | None = None
    p_falls: float | None = None
    direction: str = ""
    method: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ImprovementResult:
    """One-sided sign-flip test that a cell scores better disturbed than clean.

    `n` texts, of which `changed` score otherwise than clean; `mean` is the mean change of all n. `method` says whether
    `p` is exact or from random sign flips. p is None, never NaN, where `note` says why.
    """

    n: int
    changed: int
    mean: float | None = None
    p: float | None = None
    method: str = ""
    note: str = ""


def trend(right: "ArrayLike") -> TrendResult:
    """Return Page's test of texts x conditions, the conditions in order (none, low, mid, high), 3 or more of them.

    Page 1963, doi:10.1080/01621459.1963.10500843. Under no trend the scores of a text could stand in any order of the
    conditions; its distribution here keeps the ties (permutations of mid-ranks), as R's coin does. SciPy's
    `page_trend_test` ignores ties: with 0/1 scores most texts are ties, its variance is too large and its p as well
    (one-sided .097 where the exact one is .016, with 30 of 60 texts constant: tests/analysis/test_trend.py). Up to 500
    texts that are not constant and 6 conditions p is exact, beyond that from the normal distribution of z.

    Raises DataError for anything but a table of finite numbers.

    >>> found = trend([[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [0, 1, 0, 0]])
    >>> found.direction, found.constant, round(found.p_falls, 4)
    ('falls', 1, 0.0417)
    """
    import numpy as np
    from scipy.stats import norm, rankdata

    scores = _finite(right, "scores of texts by conditions", dimensions=2)
    n, k = scores.shape
    constant = int((scores == scores[:, :1]).all(axis=1).sum()) if k else n
    result = TrendResult(n=n, conditions=k, constant=constant)
    if k < 3:
        return replace(result, note=f"{k} conditions: Page's test needs 3")
    if constant == n:
        return replace(result, note=f"{n} texts, and none changes over the conditions: there is no trend to test")
    ranks = rankdata(scores, axis=1)
    places = np.arange(1, k + 1)
    statistic = float((ranks @ places).sum())
    apart = ranks - (k + 1) / 2
    # The variance of a sum of products over random permutations; of a text without ties it is k^2 (k+1)^2 (k-1) / 144.
    variance = float((apart**2).sum()) * float(((places - places.mean()) ** 2).sum()) / (k - 1)
    z = (statistic - n * k * (k + 1) ** 2 / 4) / math.sqrt(variance)
    exact = n - constant <= _EXACT_TEXTS and k <= _EXACT_CONDITIONS
    falls, rises = _tails(ranks, statistic) if exact else (float(norm.cdf(z)), float(norm.sf(z)))
    return replace(
        result,
        statistic=statistic,
        z=z,
        p=positive(min(1.0, 2 * min(falls, rises))),
        p_falls=positive(min(1.0, falls)),
        direction=FALLS if z < 0 else RISES if z > 0 else LEVEL,
        method=EXACT if exact else NORMAL,
    )


def improvement(change: "ArrayLike", *, seed: int = 0, draws: int = 9999) -> ImprovementResult:
    """Return whether the texts' changes (disturbed less clean) are better than redraws of the disturbance would give.

    Under no improvement each change is as likely with the other sign. Of changes of one size (0/1 answers: McNemar's
    test, one-sided) p is the exact binomial one; of others it comes from `draws` random sign flips, decided by `seed`,
    and is at least 1 / (draws + 1), or from all flips where there are no more than `draws`.

    Why signs and not redraws: let text i change by d_i, which over redraws has mean m_i. The sum of all d_i then varies
    over redraws by the sum of E[d_i^2] - m_i^2, because texts are drawn independently. Sign flips vary it by the sum
    of d_i^2, which is E[d_i^2] on average. So flips vary it at least as much as redraws do: with the mean of all
    m_i at 0 or below, the test errs on the careful side, and each cell needs to be run once only.

    Raises DataError for anything but a row of finite numbers.

    >>> improvement([1, 1, 1, 0, 0, 1, -1, 1]).p  # 5 of 6: 7 / 64
    0.109375
    """
    import numpy as np

    changes = _finite(change, "changes of texts", dimensions=1).round(_DIGITS)
    moved = changes[changes != 0]
    result = ImprovementResult(n=len(changes), changed=len(moved))
    if not len(changes):
        return replace(result, note="0 texts: there is nothing to test")
    result = replace(result, mean=float(changes.mean()))
    if not len(moved):
        return replace(result, note="no text changes its score: there is no improvement to test")
    p, method = _binomial(moved) if len(np.unique(abs(moved))) == 1 else _flipped(changes, seed, draws)
    return replace(result, p=positive(p), method=method)


def _finite(values: "ArrayLike", what: str, *, dimensions: int) -> "Floats":
    import numpy as np

    array = np.asarray(values, dtype=float)
    if array.ndim != dimensions:
        raise DataError(f"{what}: {array.ndim} dimensions, expected {dimensions}; give an array of that shape")
    if not np.isfinite(array).all():
        count = int((~np.isfinite(array)).sum())
        raise DataError(f"{what}: {count} of {array.size} are no numbers; leave those texts out, and count them")
    return array.round(_DIGITS)


def _tails(ranks: "Floats", statistic: float) -> tuple[float, float]:
    """Return P(L <= statistic) and P(L >= statistic) over all orders of the ranks within each text."""
    import numpy as np

    patterns, counts = np.unique(np.rint(2 * np.sort(ranks, axis=1)).astype(int), axis=0, return_counts=True)
    low, shares = 0, np.ones(1)
    for pattern, count in zip(patterns, counts, strict=True):
        if len(set(pattern)) == 1:
            low += int(count) * _doubled(pattern)
            continue
        sums = np.array([_doubled(order) for order in permutations(pattern)])
        one = np.bincount(sums - sums.min()) / len(sums)
        for _ in range(count):
            shares = np.convolve(shares, one)
        low += int(count) * int(sums.min())
    at = round(2 * statistic) - low
    return float(shares[: at + 1].sum()), float(shares[at:].sum())


def _doubled(ranks: Sequence[int]) -> int:
    """Return twice the part of L that one text adds; `ranks` are doubled, so that mid-ranks are whole numbers."""
    return sum(place * int(rank) for place, rank in enumerate(ranks, start=1))


def _binomial(moved: "Floats") -> tuple[float, str]:
    from scipy.stats import binomtest

    return float(binomtest(int((moved > 0).sum()), len(moved), alternative="greater").pvalue), EXACT


def _flipped(changes: "Floats", seed: int, draws: int) -> tuple[float, str]:
    """Return p over all sign flips by SciPy, or over random ones.

    The random ones are drawn once for all cells of as many texts: SciPy draws them anew, .8 s for 1,000 texts.
    """
    import numpy as np
    from scipy.stats import permutation_test

    moved = changes[changes != 0]
    if 2 ** len(moved) <= draws:
        test = permutation_test(
            (moved,), np.sum, permutation_type="samples", alternative="greater", n_resamples=draws, vectorized=True
        )
        return float(test.pvalue), EXACT
    signs = _signs(len(changes), draws, seed)
    sums = np.concatenate([signs[at : at + _BLOCK].astype(np.float64) @ changes for at in range(0, len(signs), _BLOCK)])
    as_high = int((sums >= changes.sum() - _ROUNDING).sum())
    return (as_high + 1) / (draws + 1), FLIPS


@lru_cache(maxsize=2)
def _signs(texts: int, draws: int, seed: int) -> "np.ndarray[Any, np.dtype[np.int8]]":
    """Return random signs, one row a draw: 10 MB for 1,000 texts."""
    import numpy as np

    signs = 2 * np.random.default_rng([seed, texts]).integers(0, 2, (draws, texts), dtype=np.int8) - 1
    signs.flags.writeable = False
    return signs
