"""What decides a fit of an encoder, and the key that a fit is kept under."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from json import dumps

from noisyhealth import version as own
from noisyhealth.errors import ConfigError
from noisyhealth.records import Training

_LEAST = {
    "epochs": 1,
    "batch_size": 1,
    "devices": 1,
    "accumulate": 1,
    "max_length": 16,
    "longest": 1,
    "patience": 0,
    "stride": 0,
    "frozen": 0,
}
_NUMBERS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "learning_rate": ("a number above 0", lambda n: n > 0),
    "weight_decay": ("a number of 0 or more", lambda n: n >= 0),
    "gradient_clip": ("a number of 0 or more; 0 clips nothing", lambda n: n >= 0),
    "warmup": ("a fraction of all steps, 0 to 1", lambda n: 0 <= n <= 1),
}
# The files of a fit's folder.
FACTS, CURVES, WEIGHTS = "fit.json", "metrics.csv", "model.safetensors"
_LIBRARIES = ("torch", "transformers", "tokenizers", "pytorch-lightning", "torchmetrics")
_CHOICES = {
    "pooling": ("mean", "cls"),
    "class_weights": ("none", "balanced"),
    "accelerator": ("cpu", "cuda", "mps"),
    "precision": ("32-true", "16-mixed", "bf16-mixed"),
}
# Beside the encoder's own code, what says where a word begins: spans are cut at words.
_CODE = ("models/encoder", "text/words.py", "text/protection.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How an encoder is fitted; the fields are those of `Encoder`.

    `precision` and `accelerator` are what is really used, never "auto".
    """

    seed: int
    epochs: int
    learning_rate: float
    batch_size: int
    accumulate: int
    max_length: int
    stride: int
    longest: int
    frozen: int
    pooling: str
    warmup: float
    weight_decay: float
    patience: int
    accelerator: str
    devices: int
    gradient_clip: float
    precision: str
    class_weights: str

    def check(self) -> None:
        """Raise ConfigError for a setting no fit can use."""
        for name, least in _LEAST.items():
            given = getattr(self, name)
            if not isinstance(given, int) or given < least:
                raise ConfigError(f"model.{name}={given!r}: give a whole number, {least} or more")
        for name, choices in _CHOICES.items():
            if (given := getattr(self, name)) not in choices:
                raise ConfigError(f"model.{name}={given!r}: give {' or '.join(choices)}")
        for name, (what, fits) in _NUMBERS.items():
            given = getattr(self, name)
            if not isinstance(given, int | float) or not math.isfinite(given) or not fits(given):
                raise ConfigError(f"model.{name}={given!r}: give {what}")


def labels_of(training: Training) -> tuple[str, ...]:
    """Return the labels that a fit tells apart, sorted; none where answers are spans of the text.

    They are spans when the examples bring their own questions: a task that asks the same of every text leaves
    `Example.question` empty, and has labels.
    """
    if any(example.question for example in (*training.train, *training.validation)):
        return ()
    return tuple(sorted({example.target for example in training.train}))


def fit_key(recipe: Recipe, identity: str, training: Training) -> str:
    """Return the hash of all that decides a fit: texts, weights, settings, versions, code."""
    texts = {
        part: sorted([e.id, e.text, e.target, e.question] for e in examples)
        for part, examples in (("train", training.train), ("validation", training.validation))
    }
    code = own.of(*_CODE)
    whole = {"texts": texts, "identity": identity, "recipe": asdict(recipe), "versions": versions(), "code": code}
    return sha256(dumps(whole, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:24]


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of the libraries that decide a fit."""
    return {name: version(name) for name in _LIBRARIES}
