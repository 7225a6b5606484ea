import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from noisyhealth.errors import JournalError
from noisyhealth.tracking.claims import claims

# Takes the keys it is told to, says which it got, and does so again on every further line; "-" drops all.
HOLDER = """
import sys
from pathlib import Path
from noisyhealth.tracking.claims import claims
with claims(Path(sys.argv[1])) as claimed:
    for line in sys.stdin:
        if line.strip() == "-":
            claimed.drop()
            print("dropped", flush=True)
        else:
            print(*claimed.take(line.split()), flush=True)
"""


class Holder:
    """Another process with claims."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def said(self) -> list[str]:
        assert self.process.stdout
        return self.process.stdout.readline().split()

    def take(self, line: str) -> list[str]:
        self.tell(line)
        return self.said()


@contextmanager
def holder(journal: Path) -> Iterator[Holder]:
    command = [sys.executable, "-c", HOLDER, str(journal)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Holder(process)
        finally:
            process.kill()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "new" / "journal.sqlite"


def test_of_keys_that_another_process_has_the_others_are_taken(journal: Path) -> None:
    with holder(journal) as other, claims(journal) as mine:
        assert other.take("a b") == ["a", "b"]
        assert mine.take(["a", "c", "b", "d"]) == ["c", "d"]
        assert other.take("c b e") == ["b", "e"], "what it has already is its own"
        mine.drop()
        assert other.take("c d") == ["c", "d"]


def test_where_all_are_taken_the_first_is_waited_for(journal: Path) -> None:
    with holder(journal) as other, claims(journal) as mine:
        assert mine.take(["a", "b"]) == ["a", "b"]
        other.tell("a b c d")
        assert other.said() == ["c", "d"]
        other.tell("-")
        assert other.said() == ["dropped"]
        other.tell("b a")
        time.sleep(0.2)
        mine.drop()
        assert other.said() == ["b", "a"]


def test_a_process_that_was_killed_keeps_nobody_waiting(journal: Path) -> None:
    with holder(journal) as other, claims(journal) as mine:
        assert other.take("a") == ["a"]
        os.kill(other.process.pid, signal.SIGKILL)
        assert mine.take(["a"]) == ["a"]


def test_claims_end_with_their_block(journal: Path) -> None:
    with holder(journal) as other:
        with claims(journal) as mine:
            assert mine.take(["a"]) == ["a"]
        assert other.take("a") == ["a"]


def test_no_key_is_nothing_to_wait_for(journal: Path) -> None:
    with claims(journal) as mine:
        assert mine.take([]) == []


def test_many_keys_are_taken(journal: Path) -> None:
    keys = [f"key {n}" for n in range(10_000)]
    with claims(journal) as mine:
        assert mine.take(keys) == keys


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(JournalError, match=r"file.*no reply could be kept"), claims(tmp_path / "file" / "journal"):
        pass
