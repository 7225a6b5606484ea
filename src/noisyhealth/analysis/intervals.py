"""How far a score would move with other examples: 95 % confidence intervals.

Examples that share a group (a note, a patient) are no independent evidence: they are resampled together, or weigh less.
None stands where the data cannot tell (one group, no variation): an interval of width 0 would claim a certainty nobody
has. With few groups (20 or so) bootstrap intervals are too narrow; tests/analysis/test_coverage.py has by how much.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisyhealth.analysis import bootstrap, sums
from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEVEL = 0.95
_DIGITS = 12  # resamples that differ by less are ties: the same ratio of other sums


@dataclass(frozen=True, slots=True)
class Interval:
    """The two ends of a 95 % confidence interval, on the scale of the score."""

    low: float
    high: float


def wilson(successes: float, n: float) -> Interval:
    """Return Wilson's interval for a share such as an accuracy; it has a width at 0 and at 100 % too.

    Wilson 1927, doi:10.1080/01621459.1927.10502953, by statsmodels.
    Raises DataError unless 0 <= successes <= n and n > 0.

    >>> found = wilson(100, 100)
    >>> round(found.low, 4), round(found.high, 4)
    (0.963, 1.0)
    """
    from statsmodels.stats.proportion import proportion_confint

    if not (n > 0 and 0 <= successes <= n):
        raise DataError(f"{successes} right of {n}: an interval needs 0 <= right <= n and n > 0; check the counts")
    low, high = proportion_confint(successes, n, alpha=1 - _LEVEL, method="wilson")
    return Interval(float(low), float(high))


def clustered_wilson(right: Sequence[float], groups: Sequence[str] | None) -> Interval:
    """Return Wilson's interval for the share of `right` (each 0 or 1) with the number of examples that groups leave.

    Where no group repeats it is `wilson`. Else n is divided by the design effect (Kish 1965, Survey Sampling: the
    variance of the share as a ratio of sums over groups, against that of independent examples; at least 1), and scaled
    by the degrees of freedom of the groups, as Korn and Graubard do (Survey Methodology 24, 1998, 193-201). Wilson's
    form with such an n is what Franco et al. 2019, doi:10.1093/jssam/smy019, recommend. All right or all wrong
    shows no design effect: n is then the number of groups, as if each were one example.

    Raises DataError for no examples, a value that is neither 0 nor 1, and groups of another number.

    >>> found = clustered_wilson([1, 1, 1, 1], ["a", "a", "b", "b"])
    >>> found == wilson(2, 2)
    True
    """
    import numpy as np

    data = np.asarray(right, dtype=float)
    if not len(data) or not np.isin(data, (0, 1)).all():
        raise DataError(f"{len(data)} examples, not all right (1) or wrong (0): a share needs both; score them again")
    n, successes = len(data), float(data.sum())
    place = bootstrap.positions(groups, n)
    effective = n if int(place.max()) + 1 == n else _effective(data, place)
    return wilson(successes * effective / n, effective)


def bootstrap_mean(values: Sequence[float], seed: int, groups: Sequence[str] | None = None) -> Interval | None:
    """Return the interval of a mean by the bootstrap, bias-corrected and accelerated, 4,999 resamples.

    None for fewer than two groups or values all equal. `groups`: as in `bootstrap.positions`. The same values, groups
    and seed give the same interval.

    Raises DataError for a value that is NaN or infinite, and for groups of another number.

    >>> bootstrap_mean([0.4], seed=0) is None, bootstrap_mean([1.0, 1.0, 1.0], seed=0) is None
    (True, True)
    """
    if not len(values):
        return None
    table = sums.columns([""] * len(values), [[""] * len(values)], [values], [])
    return _of("rougeL", table, 0, bootstrap.positions(groups, len(values)), seed)


def bootstrap_f1(
    targets: Sequence[str],
    values: Sequence[str],
    labels: Sequence[str],
    seed: int,
    groups: Sequence[str] | None = None,
) -> Interval | None:
    """Return the interval of macro F1 by the bootstrap, bias-corrected and accelerated, 4,999 resamples.

    A value that is no label is wrong; `sums.score` has the rule for a label that a resample misses. None for one
    group, and where no resample differs (all right, all wrong). `groups`: as in `bootstrap.positions`.

    Raises DataError for no examples, unequal lengths, or a target that is no label.

    >>> bootstrap_f1(["a", "b"] * 20, ["a", "b"] * 20, ["a", "b"], seed=0) is None
    True
    """
    table = sums.columns(targets, [values], [[0.0] * len(targets)], labels)
    return _of("f1_macro", table, len(labels), bootstrap.positions(groups, len(targets)), seed)


def bca(point: float, resampled: "NDArray[np.float64]", without: "NDArray[np.float64]") -> Interval | None:
    """Return the bias-corrected and accelerated bootstrap interval of a score.

    `point`: the score of all examples, `resampled`: of each resample, `without`: of all but one group in turn (the
    jackknife). None for one group, where resamples or jackknife do not vary, and where they all miss the score.
    Efron 1987, doi:10.1080/01621459.1987.10478410; as in SciPy, a resample equal to the score counts half below it.
    """
    import numpy as np
    from scipy.special import ndtr, ndtri

    draws, rest = np.round(resampled, _DIGITS), np.round(without, _DIGITS)
    middle = round(point, _DIGITS)
    if len(rest) < 2 or not (np.ptp(draws) > 0 and np.ptp(rest) > 0):
        return None
    below = ((draws < middle).mean() + (draws <= middle).mean()) / 2
    pull = rest.mean() - rest
    acceleration = (pull**3).sum() / (6 * (pull**2).sum() ** 1.5)
    tail = ndtri(below) + ndtri(np.array([(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]))
    if not 0 < below < 1 or (acceleration * tail >= 1).any():
        return None
    shares = ndtr(ndtri(below) + tail / (1 - acceleration * tail))
    low, high = np.quantile(draws, shares)
    return Interval(float(low), float(high)) if low < high else None


def _of(name: str, table: "NDArray[np.float64]", labels: int, place: "NDArray[np.intp]", seed: int) -> Interval | None:
    """Return the interval of one score of one version of the answers."""
    found = bootstrap.totals(table, place, seed)
    whole = sums.read(found.whole, labels)
    point, resampled, without = (
        sums.score(name, sums.read(one, labels), whole.targets > 0)
        for one in (found.whole, found.resampled, found.without)
    )
    return bca(float(point), resampled, without)


def _effective(right: "NDArray[np.float64]", place: "NDArray[np.intp]") -> float:
    """Return how many independent examples tell as much of a share as these do, at least 1."""
    import numpy as np
    from scipy.special import stdtrit

    n, groups, share = len(right), int(place.max()) + 1, float(right.mean())
    if groups == 1 or share in (0.0, 1.0):
        return float(groups)
    residuals = np.bincount(place, weights=right - share)
    variance = groups / (groups - 1) * float((residuals**2).sum()) / n**2
    effect = max(1.0, variance * (n - 1) / (share * (1 - share)))
    freedom = (stdtrit(n - 1, (1 + _LEVEL) / 2) / stdtrit(groups - 1, (1 + _LEVEL) / 2)) ** 2
    return max(1.0, n / effect * float(freedom)) if math.isfinite(effect) else 1.0
