"""How far a long step is, with the time left: a bar on a terminal, a line a minute in a log, nothing for short ones."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

Item = TypeVar("Item")

EVERY = 60.0  # seconds between two lines in a log; a step that takes less says nothing


def steps(items: Iterable[Item], what: str, total: int | None = None, unit: str = "text") -> Iterator[Item]:
    """Yield the items, telling on stderr how many there were; `total` where they cannot say how many they are."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, what, total, leave=False, unit=unit, dynamic_ncols=True)
        return
    begun = told = time.monotonic()
    for done, item in enumerate(items):
        if (now := time.monotonic()) - told >= EVERY:
            told = now
            print(line(what, done, total, now - begun, unit), file=sys.stderr, flush=True)
        yield item


def line(what: str, done: int, total: int | None, seconds: float, unit: str) -> str:
    """Return how far a step is as one line of a log.

    >>> line("llama(X)", 300, 1000, 90.0, "text")
    'llama(X): 300 of 1,000 texts, about 3.5 minutes left'
    """
    if not total:
        return f"{what}: {done:,} {unit}s"
    left = f", about {seconds / done * (total - done) / 60:.1f} minutes left" if 0 < done <= total else ""
    return f"{what}: {done:,} of {total:,} {unit}s{left}"


def bar(total: int, unit: str) -> tqdm[Any]:
    """Return a bar that is moved by hand, for a sweep; where there is no terminal, its lines are enough."""
    from tqdm import tqdm

    return tqdm(total=total, unit=unit, disable=not sys.stderr.isatty(), smoothing=0.1, dynamic_ncols=True)
