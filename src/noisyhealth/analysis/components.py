"""Where the variance of single scores comes from: texts, draws, shots, and what belongs to their combinations.

Every text is answered under every combination of the other sources, so the design is crossed, complete, and has one
score a field. The variance of each source is estimated from the mean squares, as in generalizability theory: Cornfield
and Tukey 1956, doi:10.1214/aoms/1177728067; Brennan 2001, Generalizability Theory, chapter 3. In such a
balanced design the estimates are those of REML wherever none is negative.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

from noisyhealth.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Component:
    """The variance that one source brings.

    `sources`: one name, or several for what belongs to their combination; the last component, of all sources, is what
    is left. `variance`: never below 0; `estimate`: as it came out, which chance can make negative. `share`: fraction
    of the sum of all variances, 0 to 1; None where that is 0. `df`: degrees of freedom of its mean square.
    """

    sources: tuple[str, ...]
    df: int
    estimate: float
    variance: float
    share: float | None


def components(scores: "NDArray[np.float64]", names: Sequence[str]) -> list[Component]:
    """Return the components of scores with an axis for each name, single sources first.

    Raises DataError for another number of axes, for an axis shorter than 2, and for a score that is no number.

    >>> import numpy as np
    >>> [(one.sources, one.variance) for one in components(np.array([[0.0, 2.0], [4.0, 6.0]]), ["text", "draw"])]
    [(('text',), 8.0), (('draw',), 2.0), (('text', 'draw'), 0.0)]
    """
    import numpy as np

    if scores.ndim != len(names) or min(scores.shape) < 2 or not np.isfinite(scores).all():
        raise DataError(
            f"scores of shape {scores.shape} for the sources {', '.join(names)}: each needs an axis of 2 values or "
            "more, and every field a number"
        )
    subsets = list(_subsets(range(scores.ndim)))
    squares = {axes: _mean_square(scores, axes) for axes in subsets}
    estimates = {axes: _estimate(axes, squares, scores.shape) for axes in subsets}
    total = sum(max(0.0, estimate) for estimate in estimates.values())
    return [
        Component(
            sources=tuple(names[axis] for axis in axes),
            df=_df(axes, scores.shape),
            estimate=estimate,
            variance=max(0.0, estimate),
            share=max(0.0, estimate) / total if total else None,
        )
        for axes, estimate in estimates.items()
    ]


def _subsets(axes: Sequence[int]) -> Iterator[_Axes]:
    """Yield every set of axes but the empty one, the small ones first."""
    for size in range(1, len(axes) + 1):
        yield from combinations(axes, size)


def _df(axes: _Axes, shape: Sequence[int]) -> int:
    return prod(shape[axis] - 1 for axis in axes)


def _mean_square(scores: "NDArray[np.float64]", axes: _Axes) -> float:
    """Return the mean square of an effect: what its means are beyond those of all smaller effects within it."""
    import numpy as np

    effect = np.zeros_like(scores)
    for size in range(len(axes) + 1):
        for inner in combinations(axes, size):
            others = tuple(axis for axis in range(scores.ndim) if axis not in inner)
            effect = effect + (-1) ** (len(axes) - size) * scores.mean(axis=others, keepdims=True)
    return float((effect**2).sum()) / _df(axes, scores.shape)


def _estimate(axes: _Axes, squares: dict[_Axes, float], shape: Sequence[int]) -> float:
    """Return the variance of an effect: mean squares of it and of all larger ones, in turn added and taken away."""
    within = [(other, square) for other, square in squares.items() if set(axes) <= set(other)]
    outside = prod(shape[axis] for axis in range(len(shape)) if axis not in axes)
    signed = [-square if (len(other) - len(axes)) % 2 else square for other, square in within]
    return sum(signed) / outside
