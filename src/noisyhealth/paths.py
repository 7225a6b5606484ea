"""What a setting must be before it becomes a file, a folder or an address that is written down."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from noisyhealth.errors import ConfigError

_LONGEST = 200  # bytes; file systems take 255, and endings come after it
_UNFIT = re.compile(r"[/\\\x00-\x1f\x7f]")
# In the name of a query parameter.
SECRET = ("key", "token", "secret", "sig", "auth", "code", "pass", "pwd", "cred")


def checked_name(key: str, given: object) -> str:
    """Return a name that is one folder's, below the folder that it is put into.

    `key` is the setting it comes from. Raises ConfigError for a path, "..", and what no file system takes.

    >>> checked_name("study", "high doses")
    'high doses'
    """
    name = "" if given is None else str(given)
    if not name.strip() or name.startswith(".") or _UNFIT.search(name) or len(name.encode()) > _LONGEST:
        raise ConfigError(
            f"{key}={name!r} cannot name a folder: give 1 to {_LONGEST} bytes without slashes and line ends, that do "
            "not begin with a dot"
        )
    return name


def checked_folder(key: str, given: object) -> Path:
    """Return a folder that is there or can be made; raises ConfigError for no name, and where a file is in its way."""
    if given is None or not str(given).strip():
        raise ConfigError(f"{key}={given!r} names no folder; give one, `.` for this one")
    folder = Path(str(given))
    for place in (folder, *folder.parents):
        if place.is_dir():
            return folder
        if place.exists() or place.is_symlink():
            raise ConfigError(f"{key}={str(given)!r}: {place} is a file, and a folder is needed; give another")
    return folder


def made_folder(key: str, given: object) -> Path:
    """Return a folder, made where it is not there; raises ConfigError where it cannot be."""
    folder = checked_folder(key, given)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{key}={str(given)!r} cannot be made ({error.strerror}); give another folder") from None
    return folder


def without_secret(key: str, url: str, instead: str) -> str:
    """Return an address that holds no password; raises ConfigError, without it, where there is one.

    A user before the @ is none in an address of a database, but may be a token in one of a server.
    `instead`: where the secret belongs.
    """
    try:
        parts = urlsplit(url)
        named = [name for name, _ in parse_qsl(f"{parts.query}&{parts.fragment}", keep_blank_values=True)]
        user = "@" in parts.netloc and parts.scheme in ("http", "https")
        held = user or parts.password is not None
    except ValueError:
        named, held = [], "@" in url
    if held or any(sign in name.lower() for name in named for sign in SECRET):
        raise ConfigError(f"{key} holds a user, a password or a token, and is written into every run: {instead}")
    return url
