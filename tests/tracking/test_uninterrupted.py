import os
import signal
import threading
from collections.abc import Iterator

import pytest

from noisyhealth.tracking.uninterrupted import uninterrupted


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Give every test Python's own Ctrl-C, and see that it is there again afterwards."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_a_signal_waits_for_the_end_of_the_block() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        done.append("the rest")
    assert done == ["the rest"]


def test_a_second_signal_comes_through_at_once() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        done.append("the rest")
    assert done == []


def test_an_error_of_the_block_is_not_lost_to_the_signal() -> None:
    with pytest.raises(KeyboardInterrupt) as raised, uninterrupted():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        raise ValueError("first")
    assert str(raised.value.__context__) == "first"


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_blocks_within_blocks_hold_a_signal_back_to_the_outermost() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
        done.append("the rest")
    assert done == ["the rest"]


def test_another_thread_writes_without_touching_signals() -> None:
    found = []

    def write() -> None:
        with uninterrupted():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
