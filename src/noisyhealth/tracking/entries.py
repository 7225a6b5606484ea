"""What goes into a run of MLflow, as MLflow takes it, and what comes back in short."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

_PARAM_LIMIT = 500
_UNFIT = re.compile(r"[^A-Za-z0-9_\-. :/]")


def logged_name(name: str) -> str:
    """Return the name as MLflow takes it.

    >>> logged_name("prompt.stop[0]")
    'prompt.stop_0_'
    """
    return _UNFIT.sub("_", name)


def logged_params(params: Mapping[str, object]) -> dict[str, str]:
    """Return settings as MLflow gets them: a long one as its hash, since MLflow cuts it, and two would look alike."""
    texts = {logged_name(name): str(value) for name, value in params.items()}
    hashes = {name: f"sha256:{sha256(text.encode()).hexdigest()}" for name, text in texts.items()}
    return {name: text if len(text) <= _PARAM_LIMIT else hashes[name] for name, text in texts.items()}


@dataclass(frozen=True)
class Headline:
    """The one score that stands for a run, the same on the clean texts, and what came of it.

    `baseline` is None for a run on clean texts. `unread`: replies that hold no answer, of `n`.
    """

    name: str
    score: float
    baseline: float | None
    category: str
    n: int
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Point:
    """One number of a curve."""

    name: str
    value: float
    step: int
