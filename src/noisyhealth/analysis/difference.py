"""How far a score moves when one setting changes: two runs that answered the same texts, compared text by text."""

from dataclasses import dataclass

from noisyhealth.analysis import bootstrap, paired, sums
from noisyhealth.analysis.intervals import Interval, bca
from noisyhealth.analysis.paired import Pairs


@dataclass(frozen=True, slots=True)
class Difference:
    """A score under one value of a setting less that under the reference, on the same `n` texts.

    `groups`: how many of the texts are independent of each other. `interval`: 95 %, of the difference, by a paired BCa
    bootstrap; None where no resample differs. `p`: two-sided, of no difference, by `method` (exact McNemar of an
    accuracy, else the paired bootstrap); None for the reason in `note`.
    """

    score: str
    n: int
    groups: int
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None
    method: str = ""
    note: str = ""


def difference(pairs: Pairs, score: str, *, seed: int = 0) -> Difference:
    """Return what a setting did to a score; in `pairs` the reference's answers stand as `clean`.

    The resamples are those of `paired.changes` with this seed. Raises DataError for what cannot be scored.

    >>> mood, always = ["a", "a", "b", "b"], ["a"] * 4
    >>> one = difference(Pairs(mood, mood, always, [1, 1, 1, 1], [1, 1, 0, 0], [""] * 4, ["a", "b"]), "accuracy")
    >>> one.difference, one.p, one.method
    (-0.5, 0.5, 'exact McNemar')
    """
    found = paired.changes(pairs, [score], seed=seed)[score]
    if found.clean is None or found.disturbed is None:
        return Difference(score, found.n, found.groups, note=found.note)
    interval = _interval(pairs, score, seed)
    return Difference(
        score=score,
        n=found.n,
        groups=found.groups,
        difference=found.disturbed - found.clean,
        interval=interval,
        p=found.p,
        method=found.method,
        note=_note(found, interval),
    )


def _interval(pairs: Pairs, score: str, seed: int) -> Interval | None:
    versions = [pairs.clean, pairs.disturbed], [pairs.clean_right, pairs.disturbed_right]
    place = bootstrap.positions(pairs.groups, len(pairs.targets))
    totals = bootstrap.totals(sums.columns(pairs.targets, *versions, pairs.labels), place, seed)
    labels = len(pairs.labels)
    seen = sums.read(totals.whole, labels).targets > 0
    point, resampled, without = (
        sums.score(score, sums.read(part, labels, 1), seen) - sums.score(score, sums.read(part, labels, 0), seen)
        for part in (totals.whole, totals.resampled, totals.without)
    )
    return bca(float(point), resampled, without)


def _note(found: paired.Change, interval: Interval | None) -> str:
    """Return why there is no p or no interval."""
    if found.groups < 2:
        return "all texts are of one group: no test"
    if found.p is None:
        return "no answer differs in what this score counts: no test"
    return "" if interval else "no interval: (nearly) all resamples are alike"
