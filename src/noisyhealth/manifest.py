"""Which files a folder holds, by the hashes of their bytes: one changed byte, a lost or a strange file is found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import file_digest, sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

NAME = "manifest.json"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def write(folder: Path, about: Mapping[str, Any] = _NOTHING) -> str:
    """Write the manifest of a folder with all below it, and return the manifest's own hash.

    `about`: what else the manifest shall vouch for, as plain JSON values.
    """
    whole = {**about, "files": {name: sha256_of(folder / name) for name in _names(folder)}}
    (folder / NAME).write_bytes(_signed(whole))
    return sha256_of(folder / NAME)


def read(folder: Path) -> dict[str, Any]:
    """Return what a manifest says.

    Raises ValueError where it is not as it was written, OSError where there is none.
    """
    written = (folder / NAME).read_bytes()
    found = json.loads(written)
    if not isinstance(found, dict) or not isinstance(found.get("files"), dict):
        raise ValueError(f"{NAME} lists no files")
    # Its own hash, and the one way to write it down, leave no byte that could be another.
    if _signed({name: value for name, value in found.items() if name != "sha256"}) != written:
        raise ValueError(f"{NAME} was changed: its text is not that of its own hash")
    return found


def differences(folder: Path, *, strange: bool = True) -> Iterator[str]:
    """Yield in words what is not as the manifest says: the manifest itself, lost and changed files.

    `strange`: also files that it does not list.
    """
    try:
        listed = read(folder)["files"]
    except FileNotFoundError:
        yield f"{NAME} is not there"
        return
    except (OSError, ValueError) as error:
        yield f"{NAME} cannot be trusted: {error}"
        return
    there = set(_names(folder))
    for name in sorted(there | set(listed)):
        if name not in there:
            yield f"{name} is not there"
        elif name not in listed:
            if strange:
                yield f"{name} is not one of the files that were kept"
        elif (found := sha256_of(folder / name)) != listed[name]:
            yield f"{name} was changed: its sha256 is {found}, it was {listed[name]}"


def sha256_of(path: Path) -> str:
    """Return the hash of a file's bytes."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _names(folder: Path) -> list[str]:
    """Return every file below a folder but the folder's own manifest, as sorted names with slashes."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if name != NAME)


def _signed(whole: Mapping[str, Any]) -> bytes:
    text = json.dumps(whole, sort_keys=True, ensure_ascii=False)
    signed = {**whole, "sha256": sha256(text.encode()).hexdigest()}
    return (json.dumps(signed, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
