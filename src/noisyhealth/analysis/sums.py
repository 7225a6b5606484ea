"""The scores that are functions of sums over examples, for many sums at once.

The rules are those of `metrics.classification`, which computes one cell; here are all resamples of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEANS = ("accuracy", "rougeL")
"""Scores that are the mean of how right each answer is."""

_OVER_LABELS = tuple(f"{kind}_{mean}" for kind in ("precision", "recall", "f1") for mean in ("macro", "weighted"))


@dataclass(frozen=True, slots=True)
class Sums:
    """What the scores of one version of the answers need; the first axes are those of the sums given.

    `n`: examples, `right`: sum of how right they are. One column a label: `targets` and `values` count how often it is
    each, `hits` how often both.
    """

    n: "NDArray[np.float64]"
    right: "NDArray[np.float64]"
    targets: "NDArray[np.float64]"
    values: "NDArray[np.float64]"
    hits: "NDArray[np.float64]"


def known(name: str, labels: Sequence[str]) -> bool:
    """Tell whether a score can be computed here: a mean, or a score over labels where the task has labels.

    >>> known("f1_macro", ["a", "b"]), known("f1_macro", []), known("bertscore", [])
    (True, False, False)
    """
    return name in MEANS or (bool(len(labels)) and name in _OVER_LABELS)


def columns(
    targets: Sequence[str],
    values: Sequence[Sequence[str]],
    right: Sequence[Sequence[float]],
    labels: Sequence[str],
) -> "NDArray[np.float64]":
    """Return one row an example with what `read` takes apart; `values` and `right` have one sequence a version.

    A value that is no label counts for no label. Raises DataError for no examples, unequal lengths, a target that is
    no label, and a `right` that is no number.
    """
    import numpy as np

    _check(targets, values, right, labels)
    names = np.asarray(labels, dtype=object)
    aim, *marks = ((np.asarray(one, dtype=object)[:, None] == names).astype(float) for one in (targets, *values))
    parts = [np.ones((len(targets), 1)), aim]
    for each, mark in zip(right, marks, strict=True):
        parts += [np.asarray(each, dtype=float)[:, None], mark, mark * aim]
    return np.concatenate(parts, axis=1)


def read(sums: "NDArray[np.float64]", labels: int, version: int = 0) -> Sums:
    """Return the sums of the columns of one version, by name."""
    start = 1 + labels + version * (1 + 2 * labels)
    return Sums(
        n=sums[..., 0],
        right=sums[..., start],
        targets=sums[..., 1 : 1 + labels],
        values=sums[..., start + 1 : start + 1 + labels],
        hits=sums[..., start + 1 + labels : start + 1 + 2 * labels],
    )


def score(name: str, sums: Sums, seen: "NDArray[np.bool_]") -> "NDArray[np.float64]":
    """Return a score (a `known` name) of every sum, 0 to 1.

    A macro score is the mean over all labels, and a label with nothing has 0. But a label that examples have (`seen`
    marks those that are a target in all of them) and a resample has not is left out of that resample's mean: it says
    nothing of that label, and a 0 would pull the mean down for no fault of the model.
    """
    import numpy as np

    if name in MEANS:
        return np.asarray(sums.right / np.maximum(sums.n, 1))
    kind, _, mean = name.partition("_")
    under = {"precision": sums.values, "recall": sums.targets, "f1": (sums.values + sums.targets) / 2}[kind]
    each = sums.hits / np.where(under > 0, under, 1)  # nothing to divide by: no hits either
    counted = sums.targets if mean == "weighted" else ((sums.targets > 0) | ~seen).astype(float)
    # einsum, because a sum over so short an axis takes ten times as long.
    return np.asarray(np.einsum("...k,...k->...", each, counted) / np.maximum(np.einsum("...k->...", counted), 1))


def _check(
    targets: Sequence[str],
    values: Sequence[Sequence[str]],
    right: Sequence[Sequence[float]],
    labels: Sequence[str],
) -> None:
    import numpy as np

    outside = sorted({str(target) for target in targets} - set(labels)) if len(labels) else []
    lengths = [len(one) for one in (*values, *right)]
    if not len(targets) or any(length != len(targets) for length in lengths) or outside:
        raise DataError(
            f"{len(targets)} targets, values and rights {lengths}, targets outside the labels: {outside}; "
            "give one value per target and the task's labels"
        )
    for each in right:
        numbers = np.asarray(each, dtype=float)
        if not np.isfinite(numbers).all():
            raise DataError(f"{numbers[~np.isfinite(numbers)][0]} among {len(numbers)} values: score them again")
