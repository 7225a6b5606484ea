"""Resamples of a cell's examples: one engine for every interval, probability and p value that rests on a bootstrap.

A score is a function of sums over examples (`sums`), so a resample is a row of counts (how often each group was drawn)
times the sums of the groups: one matrix product gives all resamples of all scores of a cell. SciPy's `bootstrap` calls
the score once a resample: 0.5 s for one macro F1 of 1,000 examples, against 0.01 s here; a cell has twelve intervals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 4999
_BLOCK = 100  # resamples multiplied at once: they stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over examples, of each column: of all, of every resample, and of all but one group in turn.

    `whole`: (columns,), `resampled`: (resamples, columns), `without`: (groups, columns).
    """

    whole: "NDArray[np.float64]"
    resampled: "NDArray[np.float64]"
    without: "NDArray[np.float64]"


def positions(groups: Sequence[str] | None, n: int) -> "NDArray[np.intp]":
    """Return the number of each example's group, from 0 on in the order of their first examples.

    An example whose group is "" is a group of its own; so is every one where `groups` is None.
    Raises DataError unless there is one group an example.

    >>> positions(["b", "a", "", "b", ""], 5).tolist()
    [0, 1, 2, 0, 3]
    """
    import numpy as np

    if groups is None:
        return np.arange(n)
    if len(groups) != n:
        raise DataError(f"{len(groups)} groups for {n} examples: name one group an example, '' where it has none")
    return _positions(tuple(groups))


@lru_cache(maxsize=8)
def _positions(groups: tuple[str, ...]) -> "NDArray[np.intp]":
    """Return the same, made once for the scores and the cells of one set of texts."""
    import numpy as np

    seen: dict[object, int] = {}
    names = (name or position for position, name in enumerate(groups))
    found = np.array([seen.setdefault(name, len(seen)) for name in names], dtype=np.intp)
    found.flags.writeable = False
    return found


def totals(columns: "NDArray[np.float64]", place: "NDArray[np.intp]", seed: int) -> Totals:
    """Return the sums of `columns` (examples by columns); examples of one group (`place`) are drawn together.

    As many groups are drawn as there are, with replacement, 4,999 times. The same number of groups and the same seed
    draw the same groups: what is compared across cells is then compared on the same resamples, as long as the cells
    have their examples in the same order.
    """
    import numpy as np

    count = int(place.max()) + 1
    sums = columns if count == len(place) else _by_group(columns, place, count)
    whole, drawn = sums.sum(axis=0), _drawn(count, seed)
    parts = [drawn[start : start + _BLOCK].astype(np.float64) @ sums for start in range(0, RESAMPLES, _BLOCK)]
    # Column by column in memory, as the scores read them.
    return Totals(whole, np.asfortranarray(np.concatenate(parts)), np.asfortranarray(whole - sums))


def _by_group(columns: "NDArray[np.float64]", place: "NDArray[np.intp]", count: int) -> "NDArray[np.float64]":
    import numpy as np

    sums = [np.bincount(place, weights=column, minlength=count) for column in columns.T]
    return np.stack(sums, axis=1)


@lru_cache(maxsize=2)
def _drawn(count: int, seed: int) -> "NDArray[np.uint8]":
    """Return how often each of `count` groups was drawn, one row a resample: 5 MB a thousand groups.

    No group is drawn over 255 times: with as many groups, that has a chance below 1e-500.
    """
    import numpy as np

    rng = np.random.default_rng([seed, count])
    drawn = np.empty((RESAMPLES, count), dtype=np.uint8)
    for row in drawn:
        # Drawn one by one and counted: the multinomial law, in less time than numpy's multinomial.
        row[:] = np.bincount(rng.integers(0, count, size=count), minlength=count)
    drawn.flags.writeable = False
    return drawn
