"""Texts that may not be copied, kept as keyed hashes: the same text has the same one, and nobody reads it back.

Without a key a word or a short answer could be found by hashing a dictionary. The key stays in the cache.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable
from functools import cache
from pathlib import Path

from filelock import FileLock

MARK = "hmac-sha256:"


def sealer(cache: Path) -> Callable[[str], str]:
    """Return the function that seals texts by the cache's own key, which is made where there is none.

    An empty text stays empty.
    """
    key = _key(cache / "seal.key")
    return lambda text: f"{MARK}{hmac.digest(key, text.encode(), 'sha256').hex()}" if text else ""


@cache
def _key(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if not path.exists():
            part = path.with_suffix(".part")
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(32))
            part.replace(path)
        return path.read_bytes()
