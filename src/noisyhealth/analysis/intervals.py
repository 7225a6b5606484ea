"""How far a score would move with other examples: 95 % confidence intervals.

None stands where the data cannot tell (one example, no variation): an interval of width 0 would
claim a certainty nobody has.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEVEL = 0.95
# Of the mean as many as SciPy takes by default: with 1,000 its ends wander by a tenth of the width.
_RESAMPLES, _RESAMPLES_MEAN = 1000, 9999


@dataclass(frozen=True, slots=True)
class Interval:
    """The two ends of a 95 % confidence interval, on the scale of the score."""

    low: float
    high: float


def wilson(successes: int, n: int) -> Interval:
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


def bootstrap_mean(values: Sequence[float], seed: int) -> Interval | None:
    """Return the interval of a mean by the bootstrap, bias-corrected and accelerated, 9,999 resamples.

    None for fewer than two values or values all equal. Efron 1987,
    doi:10.1080/01621459.1987.10478410, by SciPy. The same values and seed give the same interval.

    Raises DataError for a value that is NaN or infinite.

    >>> bootstrap_mean([0.4], seed=0) is None, bootstrap_mean([1.0, 1.0, 1.0], seed=0) is None
    (True, True)
    """
    import numpy as np
    from scipy.stats import bootstrap

    data = np.asarray(values, dtype=float)
    if not np.isfinite(data).all():
        raise DataError(f"{values[int(np.argmin(np.isfinite(data)))]} among {len(values)} values: score them again")
    if len(data) < 2 or bool((data == data[0]).all()):
        return None
    found = bootstrap(
        (data,),
        np.mean,
        n_resamples=_RESAMPLES_MEAN,
        batch=1000,  # 8 MB a thousand values, not 80
        confidence_level=_LEVEL,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return _interval(float(found.low), float(found.high))


def bootstrap_f1(targets: Sequence[str], values: Sequence[str], labels: Sequence[str], seed: int) -> Interval | None:
    """Return the interval of macro F1 by the percentile bootstrap, 1,000 resamples of the examples.

    A value that is no label is wrong, as in `metrics.classification`. A label that a resample
    happens to miss is left out of that resample's mean. None for one example, and where no
    resample differs (all right, all wrong).

    Raises DataError for no examples, unequal lengths, or a target that is no label.

    >>> bootstrap_f1(["a", "b"] * 20, ["a", "b"] * 20, ["a", "b"], seed=0) is None
    True
    """
    import numpy as np

    table = _confusion(targets, values, labels)
    # To draw n examples with replacement is to draw the cells of the confusion table multinomially.
    drawn = np.random.default_rng(seed).multinomial(len(targets), table.ravel() / table.sum(), size=_RESAMPLES)
    f1 = _macro_f1(drawn.reshape(-1, *table.shape), seen=_present(table) > 0)
    low, high = np.quantile(f1, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return _interval(float(low), float(high))


def _interval(low: float, high: float) -> Interval | None:
    return Interval(low, high) if math.isfinite(low) and math.isfinite(high) and low < high else None


def _confusion(targets: Sequence[str], values: Sequence[str], labels: Sequence[str]) -> "NDArray[np.int64]":
    """Return counts of (target, value); the last column holds what is no label."""
    import numpy as np

    if not targets or len(targets) != len(values) or not set(targets) <= set(labels):
        raise DataError(
            f"{len(targets)} targets, {len(values)} values, targets outside the labels: "
            f"{sorted(set(targets) - set(labels))}; give one value per target and the task's labels"
        )
    index = {label: position for position, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels) + 1), dtype=np.int64)
    for target, value in zip(targets, values, strict=True):
        table[index[target], index.get(value, len(labels))] += 1
    return table


def _present(tables: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return, for each label, how often it is a target plus how often it is a value."""
    named: NDArray[np.int64] = tables.sum(axis=-1) + tables[..., :-1].sum(axis=-2)
    return named


def _macro_f1(tables: "NDArray[np.int64]", seen: "NDArray[np.bool_]") -> "NDArray[np.float64]":
    """Return macro F1 of each table; `seen` marks the labels that the examples have at all."""
    import numpy as np

    present = _present(tables)
    f1 = 2 * np.diagonal(tables[..., :-1], axis1=-2, axis2=-1) / np.maximum(present, 1)
    counted = (present > 0) | ~seen
    mean: NDArray[np.float64] = f1.sum(axis=-1) / counted.sum(axis=-1)
    return mean
