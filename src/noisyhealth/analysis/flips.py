"""What became of each answer when its text was disturbed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOST, GAINED, MOVED, SAME = "right to wrong", "wrong to right", "wrong to other", "same"
FLIPS = (LOST, GAINED, MOVED, SAME)
_TOLERANCE = 1e-9  # two ROUGE-L that differ by less are equal


def flips(
    clean_values: Sequence[str], values: Sequence[str], clean_right: Sequence[float], right: Sequence[float]
) -> "NDArray[np.object_]":
    """Return one of `FLIPS` an answer: the answer to the disturbed text against that to the clean one.

    `right` is how right an answer is, 0 or 1 with labels, and ROUGE-L of a free answer, where the names mean a lower
    score, a higher one, another answer with an equal score (to 1e-9), and the same answer. Raises DataError for unequal
    lengths and for a `right` that is no number.

    >>> flips(["a", "a", "b", "b"], ["b", "a", "a", "c"], [1, 1, 0, 0], [0, 1, 1, 0]).tolist()
    ['right to wrong', 'same', 'wrong to right', 'wrong to other']
    """
    import numpy as np

    before, after = np.asarray(clean_right, dtype=float), np.asarray(right, dtype=float)
    was, now = np.asarray(clean_values, dtype=object), np.asarray(values, dtype=object)
    if len({len(before), len(after), len(was), len(now)}) > 1:
        raise DataError(
            f"{len(was)} clean and {len(now)} disturbed values, {len(before)} and {len(after)} rights: "
            "give one of each an example, in the same order"
        )
    risen = after - before
    if not np.isfinite(risen).all():
        row = int(np.argmin(np.isfinite(risen)))
        raise DataError(f"answer {row} is right by {before[row]} and {after[row]}: score it again")
    codes = np.select([risen < -_TOLERANCE, risen > _TOLERANCE, np.not_equal(was, now).astype(bool)], [0, 1, 2], 3)
    found: NDArray[np.object_] = np.array(FLIPS, dtype=object)[codes]
    return found


def flip_counts(found: "NDArray[np.object_]") -> dict[str, int]:
    """Return how many answers there are of each of `FLIPS`, zeros too.

    >>> flip_counts(flips(["a", "a"], ["b", "a"], [1, 1], [0, 1]))
    {'right to wrong': 1, 'wrong to right': 0, 'wrong to other': 0, 'same': 1}
    """
    return {name: int((found == name).sum()) for name in FLIPS}
