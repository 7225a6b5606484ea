"""Where a report's runs come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mlflow.entities import Run


class Source(Protocol):
    """The runs of a study: MLflow's store, or an archive."""

    @property
    def study(self) -> str:
        """The study's name."""
        ...

    def runs(self, query: str = "") -> list[Run]:
        """Return all runs that a query finds, of the form "tags.kind = 'cell'"."""
        ...

    def artifact(self, run: Run, name: str, scratch: Path) -> Path:
        """Return where a file of a run lies; raise StoreError where it does not."""
        ...
