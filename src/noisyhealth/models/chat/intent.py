"""What is meant to be handed over as a batch, written down before it is: so that no text is paid for twice.

An intent's id travels with the batch. A process that dies between the two leaves an intent without a batch's name,
and the next one finds out from the provider whether there is such a batch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from filelock import FileLock

from noisyhealth.errors import StoreError


@dataclass(frozen=True, slots=True)
class Intent:
    """Queries that go out together, by id; `batch` is the provider's name for them, "" while it is not known.

    `endpoint`: the identity of the endpoint they go to. `file`: the provider's name for what was uploaded, "" before.
    `asked`: when a batch was last asked for, in seconds since 1970; 0 before.
    """

    id: str
    endpoint: str
    keys: tuple[str, ...]
    batch: str = ""
    file: str = ""
    asked: float = 0.0


@dataclass(frozen=True)
class Intents:
    """The open intents of an endpoint: a file each in a folder that processes share."""

    folder: Path
    endpoint: str

    def lock(self) -> FileLock:
        """Return what is held from looking for intents until new ones have their batch; it ends with its process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder / "lock")

    def read(self) -> list[Intent]:
        """Return the open intents, in the order of their ids.

        Raises StoreError for a file that is none.
        """
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                row = json.loads(path.read_text(encoding="utf-8"))
                found.append(
                    Intent(
                        row["id"],
                        row["endpoint"],
                        tuple(row["keys"]),
                        row["batch"],
                        row.get("file", ""),
                        row.get("asked", 0.0),
                    )
                )
            except FileNotFoundError:
                continue  # settled by another process
            except (ValueError, KeyError, TypeError):
                raise StoreError(f"{path} is no record of a batch: delete it to ask its texts anew") from None
        return [intent for intent in found if intent.endpoint == self.endpoint]

    def write(self, intent: Intent) -> None:
        """Keep an intent before anything else happens, in place of what was kept of it."""
        path = self.path(intent)
        with path.with_suffix(".new").open("w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(intent)))
            file.flush()
            os.fsync(file.fileno())
        os.replace(path.with_suffix(".new"), path)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name, too, must outlive a power cut
        finally:
            os.close(folder)

    def drop(self, intent: Intent) -> None:
        """Forget an intent."""
        self.path(intent).unlink(missing_ok=True)

    def settle(self, intent: Intent, keys: Collection[str]) -> bool:
        """Forget queries that have their replies; returns whether none is left, and with it the intent."""
        with self.lock():
            held = next((one for one in self.read() if one.id == intent.id), None)
            left = tuple(key for key in held.keys if key not in keys) if held else ()
            if held and left:
                self.write(replace(held, keys=left))
            else:
                self.drop(intent)
        return not left

    def path(self, intent: Intent) -> Path:
        """Return the intent's file."""
        return self.folder / f"{intent.id}.json"
