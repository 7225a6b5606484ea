"""What decides a fit of an encoder, and the key that a fit is kept under."""

from __future__ import annotations

from collections.abc import Mapping
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
    "accumulate": 1,
    "max_length": 16,
    "longest": 1,
    "patience": 0,
    "stride": 0,
    "frozen": 0,
}
# The files of a fit's folder.
FACTS, CURVES, WEIGHTS = "fit.json", "metrics.csv", "model.safetensors"
_LIBRARIES = ("torch", "transformers", "tokenizers", "pytorch-lightning")


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
    devices: int | str
    precision: str
    class_weights: str

    def check(self) -> None:
        """Raise ConfigError for a setting no fit can use."""
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ConfigError(f"model.{name}={getattr(self, name)}: give {least} or more")
        if self.pooling not in ("mean", "cls"):
            raise ConfigError(f"model.pooling={self.pooling!r}: give mean or cls")
        if self.class_weights not in ("none", "balanced"):
            raise ConfigError(f"model.class_weights={self.class_weights!r}: give none or balanced")
        if not 0 <= self.warmup <= 1:
            raise ConfigError(f"model.warmup={self.warmup}: give a fraction of all steps, 0 to 1")


def fit_key(recipe: Recipe, identity: str, training: Training) -> str:
    """Return the hash of all that decides a fit: texts, weights, settings, versions, code."""
    texts = {
        part: sorted([e.id, e.text, e.target, e.question] for e in examples)
        for part, examples in (("train", training.train), ("validation", training.validation))
    }
    code = own.of("models/encoder")
    whole = {"texts": texts, "identity": identity, "recipe": asdict(recipe), "versions": versions(), "code": code}
    return sha256(dumps(whole, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:24]


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of the libraries that decide a fit."""
    return {name: version(name) for name in _LIBRARIES}
