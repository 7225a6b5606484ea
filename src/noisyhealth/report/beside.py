"""Work of a large study done in a process beside the one that reads and writes: two processors, half the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

_MANY = 200  # cells from which on it is worth starting a process, which takes two seconds

Submit = Callable[..., Callable[[], Any]]
"""Takes a function and what it is given, and returns what gives its result when that is wanted."""


@contextmanager
def beside(cells: int, many: int = _MANY) -> Iterator[Submit]:
    """Yield what has work done: at once where the cells are fewer than `many`, else in another process."""
    if cells < many:
        yield now
        return
    # Spawned: a fork would copy the threads of MLflow in the middle of what they do.
    with ProcessPoolExecutor(1, get_context("spawn"), _alone) as pool:
        yield lambda work, *given: pool.submit(work, *given).result


def now(work: Callable[..., Any], *given: Any) -> Callable[[], Any]:
    """Do the work at once, and return what gives its result."""
    found = work(*given)
    return lambda: found


def _alone() -> None:
    """Keep to one processor, since the other reads."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
