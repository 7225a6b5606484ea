"""Ctrl-C and SIGTERM, held back while something is written whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold the first signal back until the end of the block; a second one comes through at once.

    Python raises KeyboardInterrupt wherever it stands. In the middle of a transaction that leaves SQLite locked for
    the same process, so that not even the end of the run can be written (measured, MLflow 3.17, SQLAlchemy 2.1).
    """
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield
        return
    # A signal that is ignored, or ends the process by itself, stays as it is.
    before = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    came: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1:
            restore()
            signal.raise_signal(number)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    try:
        for number in before:
            signal.signal(number, hold)
        yield
    finally:
        restore()
        if len(came) == 1:
            signal.raise_signal(came[0])
