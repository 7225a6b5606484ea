"""One cell: the answers to disturbed texts against the answers to the same texts, clean.

Both versions are scored on the same resamples of the examples, so what they share (hard and easy texts) cancels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from noisyhealth.analysis import bootstrap, impact, sums
from noisyhealth.analysis.impact import Category
from noisyhealth.analysis.intervals import Interval, bca, clustered_wilson
from noisyhealth.analysis.p_value import positive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MCNEMAR, BOOTSTRAP = "exact McNemar", "paired bootstrap"
_ORDER = tuple(Category)
_EXACT = 9  # decimals of a change, as in `impact`
_TAIL = 0.025  # of the resamples, as many as lie beyond one end of an interval


@dataclass(frozen=True, slots=True)
class Pairs:
    """The answers of one cell, one an example in one order; `labels` is empty where answers are free.

    `clean_right` and `disturbed_right`: how right an answer is, 0 to 1. `groups`: examples that share one (a note, a
    patient) are resampled together; "" is a group of its own.
    """

    targets: Sequence[str]
    clean: Sequence[str]
    disturbed: Sequence[str]
    clean_right: Sequence[float]
    disturbed_right: Sequence[float]
    groups: Sequence[str]
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What the disturbance did to one score.

    `clean` and `disturbed`: the score as computed again from the answers, the same as that of `metrics`.
    `relative`: the change as a fraction of the clean score, None where that is 0. The intervals (95 %) are BCa's,
    but Wilson's of accuracy; None where no resample differs (all right, all wrong) or `note` has the reason.
    `categories`: the share of resamples in each of the study's categories, 0 to 1, in all 1. `p`: two-sided, of no
    change, by `method`; never 0, and None for the reason in `note`. `groups`: how many are independent of each
    other.
    """

    score: str
    n: int
    groups: int
    clean: float | None = None
    disturbed: float | None = None
    relative: float | None = None
    clean_interval: Interval | None = None
    disturbed_interval: Interval | None = None
    relative_interval: Interval | None = None
    categories: Mapping[Category, float] | None = None
    p: float | None = None
    method: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A number of all examples, of each resample, and of all but one group in turn."""

    point: float
    resampled: "NDArray[np.float64]"
    without: "NDArray[np.float64]"

    def interval(self) -> Interval | None:
        return bca(self.point, self.resampled, self.without)


def changes(pairs: Pairs, scores: Sequence[str], *, seed: int = 0) -> dict[str, Change]:
    """Return what became of each of the scores, by its name, from 4,999 resamples.

    Cells with their examples in one order, and one seed, are compared on the same resamples. A score that is no mean of
    how right answers are and no score over the task's labels has only a note.

    Raises DataError for what cannot be scored: no examples, unequal lengths, a target that is no label, NaN.
    """
    n, place = len(pairs.targets), bootstrap.positions(pairs.groups, len(pairs.targets))
    versions = [pairs.clean, pairs.disturbed], [pairs.clean_right, pairs.disturbed_right]
    totals = bootstrap.totals(sums.columns(pairs.targets, *versions, pairs.labels), place, seed)
    return {name: _change(Change(name, n, len(totals.without)), pairs, totals) for name in scores}


def categories(scores: "NDArray[np.float64]", baselines: "NDArray[np.float64]") -> "NDArray[np.intp]":
    """Return `impact.category` of many scores against their baselines, as positions in `Category`.

    >>> import numpy as np
    >>> [str(list(Category)[at]) for at in categories(np.array([0.76, 0.4, 0.1]), np.array([0.8, 0.8, 0.0]))]
    ['decrease', 'catastrophic', 'undefined']
    """
    import numpy as np

    relative = np.round(_relative(scores, baselines), _EXACT)
    below = [np.isnan(relative), relative > 0, relative > -0.05, relative > -0.5]
    order = [Category.UNDEFINED, Category.INCREASE, Category.STABLE, Category.DECREASE]
    return np.select(below, [_ORDER.index(one) for one in order], _ORDER.index(Category.CATASTROPHIC))


def _relative(scores: "NDArray[np.float64]", baselines: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return changes as fractions of the baselines, NaN where a baseline is 0."""
    import numpy as np

    base = np.where(baselines > 0, baselines, np.nan)
    return np.asarray((scores - base) / base)


def _change(empty: Change, pairs: Pairs, totals: bootstrap.Totals) -> Change:
    if not sums.known(empty.score, pairs.labels):
        return replace(empty, note="cannot be computed from the answers again")
    labels = len(pairs.labels)
    clean, disturbed = (_drawn(empty.score, totals, labels, version) for version in (0, 1))
    found = _sized(empty, clean, disturbed)
    graded = {*map(float, pairs.clean_right), *map(float, pairs.disturbed_right)} - {0.0, 1.0}
    share = found.score == "accuracy" and not graded
    if share:
        # As each cell's own run has it: it has a width at 0 and at 100 % too, and for a single example.
        intervals = [clustered_wilson(right, pairs.groups) for right in (pairs.clean_right, pairs.disturbed_right)]
        found = replace(found, clean_interval=intervals[0], disturbed_interval=intervals[1])
    if found.groups < 2:
        return replace(found, note=_joined(found.note, "all examples are of one group: nothing to resample"))
    found = _resampled(found, clean, disturbed)
    changed = _changed(found.score, totals, labels)
    if not changed:
        return replace(found, note=_joined(found.note, "nothing changed that this score counts: no test"))
    if share and found.groups == found.n:
        return replace(found, p=_mcnemar(pairs), method=MCNEMAR)
    return replace(found, p=_shifted(clean, disturbed, changed), method=BOOTSTRAP)


def _drawn(name: str, totals: bootstrap.Totals, labels: int, version: int) -> _Drawn:
    seen = sums.read(totals.whole, labels).targets > 0
    point, resampled, without = (
        sums.score(name, sums.read(one, labels, version), seen)
        for one in (totals.whole, totals.resampled, totals.without)
    )
    return _Drawn(float(point), resampled, without)


def _sized(empty: Change, clean: _Drawn, disturbed: _Drawn) -> Change:
    """Return the change with what needs no resample."""
    relative = impact.change(disturbed.point, clean.point)
    note = "" if relative is not None else "the clean score is 0: there is no relative change"
    return replace(empty, clean=clean.point, disturbed=disturbed.point, relative=relative, note=note)


def _resampled(change: Change, clean: _Drawn, disturbed: _Drawn) -> Change:
    """Return the change with its intervals and the shares of the categories."""
    import numpy as np

    counts = np.bincount(categories(disturbed.resampled, clean.resampled), minlength=len(_ORDER))
    interval, note = (None, "") if change.relative is None else _relative_interval(clean, disturbed)
    found = replace(
        change,
        clean_interval=change.clean_interval or clean.interval(),
        disturbed_interval=change.disturbed_interval or disturbed.interval(),
        relative_interval=interval,
    )
    ends = {"clean score": found.clean_interval, "disturbed score": found.disturbed_interval}
    ends |= {} if change.relative is None or note else {"change": interval}
    alike = [name for name, interval in ends.items() if interval is None]
    told = f"no interval of the {' and the '.join(alike)}: (nearly) all resamples are alike" if alike else ""
    return replace(
        found,
        categories={one: float(count) / bootstrap.RESAMPLES for one, count in zip(_ORDER, counts, strict=True)},
        note=_joined(change.note, note, told),
    )


def _relative_interval(clean: _Drawn, disturbed: _Drawn) -> tuple[Interval | None, str]:
    """Return the interval of the relative change, and what is to be said of it."""
    import numpy as np

    resampled = _relative(disturbed.resampled, clean.resampled)
    without = _relative(disturbed.without, clean.without)
    gaps = int(np.isnan(resampled).sum())
    where = f"the clean score is 0 in {gaps} of {len(resampled)} resamples"
    if gaps > _TAIL * len(resampled) or np.isnan(without).any():
        return None, f"{where}: no interval of the relative change"
    point = (disturbed.point - clean.point) / clean.point
    found = bca(point, resampled[~np.isnan(resampled)], without)
    return found, f"{where}: left out of the interval of the relative change" if gaps else ""


def _changed(name: str, totals: bootstrap.Totals, labels: int) -> int:
    """Return in how many groups the two versions differ in what a score counts."""
    import numpy as np

    each = totals.whole - totals.without
    before, after = (sums.read(each, labels, version) for version in (0, 1))
    if name in sums.MEANS:
        return int((np.round(before.right - after.right, _EXACT) != 0).sum())
    return int(((before.values != after.values) | (before.hits != after.hits)).any(axis=-1).sum())


def _shifted(clean: _Drawn, disturbed: _Drawn, changed: int) -> float:
    """Return p of no change: twice the smaller share of resamples on one side of it, each share with one more.

    Davison and Hinkley 1997, doi:10.1017/CBO9780511802843, chapter 4. Where few groups changed, all resamples may lie
    on one side: p is never below what exchanging the two versions within each changed group could show.
    """
    import numpy as np

    moved = np.round(disturbed.resampled - clean.resampled, _EXACT)
    side = min(int((moved <= 0).sum()), int((moved >= 0).sum()))
    p = min(1.0, 2 * (side + 1) / (len(moved) + 1))
    return positive(max(p, 2.0 ** (1 - changed)))


def _mcnemar(pairs: Pairs) -> float:
    """Return the exact p of McNemar's test: McNemar 1947, doi:10.1007/BF02295996, by SciPy's binomial distribution."""
    import numpy as np
    from scipy.special import bdtr

    risen = np.asarray(pairs.disturbed_right, dtype=float) - np.asarray(pairs.clean_right, dtype=float)
    lost, gained = int((risen < 0).sum()), int((risen > 0).sum())
    return positive(min(1.0, 2 * float(bdtr(min(lost, gained), lost + gained, 0.5))))


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
