"""Who asks what: of the processes that share a journal, one at a time asks for a key's reply.

A claim is an operating system's lock on one byte of a file, at a place that the key's hash decides. So any two
processes may share any part of their keys, and a claim ends with its process, however that ends.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

from noisyhealth.errors import JournalError


@dataclass(frozen=True)
class Claims:
    """What this process asks for. Its file is opened once a process at a time: closing any copy ends all claims."""

    file: IO[bytes]

    def take(self, keys: Sequence[str]) -> list[str]:
        """Claim the keys that no other process has, and return them; where all are taken, wait for the first.

        It waits with empty hands, provided that `drop` came before, so no two processes can wait for each other.
        """
        free = [key for key in keys if self._lock(key, fcntl.LOCK_EX | fcntl.LOCK_NB)]
        if free or not keys:
            return free
        self._lock(keys[0], fcntl.LOCK_EX)
        return [keys[0], *(key for key in keys[1:] if self._lock(key, fcntl.LOCK_EX | fcntl.LOCK_NB))]

    def drop(self) -> None:
        """Give up all claims."""
        fcntl.lockf(self.file, fcntl.LOCK_UN)

    def _lock(self, key: str, how: int) -> bool:
        place = int.from_bytes(sha256(key.encode()).digest()[:7], "big")
        try:
            fcntl.lockf(self.file, how, 1, place)
        except (BlockingIOError, PermissionError):  # systems say it in two ways
            return False
        return True


@contextmanager
def claims(path: Path) -> Iterator[Claims]:
    """Yield the claims on the keys of a journal; all are given up in the end.

    Raises JournalError where the file cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_name(f"{path.name}.claims").open("ab")
    except OSError as error:
        raise JournalError(
            f"{error}: no reply could be kept; see that the disk has room and the file may be written"
        ) from error
    with file:
        yield Claims(file)
