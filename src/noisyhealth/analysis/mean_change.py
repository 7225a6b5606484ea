"""What all disturbances together do to one model's answers, and how two models differ in it, text by text."""

from collections.abc import Sequence
from dataclasses import dataclass

from noisyhealth.analysis import bootstrap
from noisyhealth.analysis.intervals import Interval, bca
from noisyhealth.errors import DataError


@dataclass(frozen=True, slots=True)
class MeanChange:
    """The mean over `n` texts of how much more right their answers are, in points of the score, -1 to 1.

    `groups`: how many of the texts are independent of each other. `interval`: 95 %, by BCa bootstrap over these; None
    for the reason in `note`.
    """

    n: int
    groups: int
    mean: float
    interval: Interval | None = None
    note: str = ""


def mean_change(changes: Sequence[float], groups: Sequence[str] | None = None, *, seed: int = 0) -> MeanChange:
    """Return the mean of each text's change, averaged over the conditions it was seen under.

    Texts that share a group (a note, a patient) are resampled together. For two models, give the differences of their
    changes. Raises DataError for no texts and for a group too few or too many.

    >>> mean_change([-1.0, 0.0, 0.0, 0.0, -1.0, 0.0])
    MeanChange(n=6, groups=6, mean=-0.3333333333333333, interval=Interval(low=-0.833333333333, high=0.0), note='')
    """
    import numpy as np

    if not len(changes):
        raise DataError("no text: a mean change needs at least one")
    columns = np.column_stack([np.asarray(changes, dtype=np.float64), np.ones(len(changes))])
    found = bootstrap.totals(columns, bootstrap.positions(groups, len(changes)), seed)
    number, mean = len(found.without), float(found.whole[0] / found.whole[1])
    if number < 2:
        return MeanChange(len(changes), number, mean, note="all texts are of one group: nothing to resample")
    interval = bca(mean, *(part[:, 0] / part[:, 1] for part in (found.resampled, found.without)))
    note = "" if interval else "no interval: (nearly) all resamples are alike"
    return MeanChange(len(changes), number, mean, interval, note)
