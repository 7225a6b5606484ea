"""How well a number tells two kinds apart."""

from collections.abc import Sequence


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """Return the area under the receiver operating characteristic, None where all are of one kind.

    It is the share of pairs, one of each kind, in which the positive has the higher score; equal ones count a half
    (J. A. Hanley, B. J. McNeil, Radiology 143:29-36, 1982).

    >>> auroc([0.1, 0.4, 0.4, 0.9], [False, False, True, True])
    0.875
    """
    from scipy.stats import rankdata

    ones = sum(positive)
    others = len(scores) - ones
    if not ones or not others:
        return None
    ranks = rankdata(scores)
    above = sum(float(rank) for rank, one in zip(ranks, positive, strict=True) if one) - ones * (ones + 1) / 2
    return above / (ones * others)
