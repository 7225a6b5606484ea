"""Changes of many cells, resampled in a process beside the one that reads them: each of both takes as long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from noisyhealth.analysis import paired
from noisyhealth.analysis.paired import Change, Pairs

_MANY = 200  # cells from which on it is worth starting a process, which takes two seconds

Found = Callable[[], Mapping[str, Change]]
Resample = Callable[[Pairs, Sequence[str]], Found]


@contextmanager
def resampler(cells: int, seed: int) -> Iterator[Resample]:
    """Yield what takes a cell's answers and scores, and returns what gives their changes when they are wanted."""
    if cells < _MANY:
        yield lambda pairs, scores: _known(paired.changes(pairs, scores, seed=seed))
        return
    # Spawned: a fork would copy the threads of MLflow in the middle of what they do.
    with ProcessPoolExecutor(1, get_context("spawn"), _alone) as pool:
        yield lambda pairs, scores: pool.submit(paired.changes, pairs, scores, seed=seed).result


def _known(found: Mapping[str, Change]) -> Found:
    return lambda: found


def _alone() -> None:
    """Keep to one processor, since the other reads."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
