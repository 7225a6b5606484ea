"""One cell from Hydra's configuration: the only place that unpacks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationKeyError

from noisyhealth.dataset import Design, Disturbance, Split
from noisyhealth.errors import ConfigError
from noisyhealth.models.model import Model
from noisyhealth.sources import Source
from noisyhealth.tasks.task import Task
from noisyhealth.text.tagger import Tagger
from noisyhealth.tracking.store import Store

NONE = "none"


@dataclass(frozen=True)
class Cell:
    """One task, one model, one perturbation, one level, and all they need.

    `rate`: fraction of all words, 0 for the baseline, whose level is "none". `resolved` is the
    configuration as plain values, for the record.
    """

    task: Task
    model: Model
    perturb: str
    level: str
    rate: float
    weights: str
    prompt: str
    design: Design
    seed: int
    cache: str
    store: Store
    resolved: Mapping[str, Any]

    @property
    def name(self) -> str:
        """How the cell is called everywhere: "qa · llama(SmolLM2-135M) · redact · high"."""
        return " · ".join([self.task.name, self.model.label, self.perturb, *([self.level] if self.rate else [])])


def cell(cfg: DictConfig) -> Cell:
    """Return the cell a configuration describes.

    Raises ConfigError for a level the perturbation does not have and a rate that is not a share.
    """
    baseline = cfg.perturb.name == NONE
    rate = _rate(cfg)
    return Cell(
        task=instantiate(cfg.task, _convert_="all"),
        model=instantiate(cfg.model, _convert_="all"),
        perturb=str(cfg.perturb.name),
        level=NONE if baseline else str(cfg.level.name),
        rate=rate,
        weights=str(cfg.weights.name),
        prompt=str(cfg.prompt.name),
        design=_design(cfg),
        seed=int(cfg.seed),
        cache=str(cfg.cache),
        store=store(cfg),
        resolved=_plain(cfg),
    )


def store(cfg: DictConfig) -> Store:
    """Return where the runs of the study go."""
    uri, artifacts = _absolute(str(cfg.tracking.uri)), str(cfg.tracking.artifacts)
    return _store(uri, artifacts, str(cfg.study), f"{cfg.cache}/locks/store.lock")


_store = cache(Store)  # opening one takes half a second


def _rate(cfg: DictConfig) -> float:
    """Return the cell's rate, checked."""
    if cfg.perturb.name == NONE:
        return 0.0
    try:
        rate = float(cfg.level.rate)
    except InterpolationKeyError:
        raise ConfigError(
            f"perturb={cfg.perturb.name} has no level {cfg.level.name!r}; it has {', '.join(cfg.perturb.levels)}"
        ) from None
    except (TypeError, ValueError):
        raise ConfigError(
            f"level.rate={cfg.level.rate!r} is not a number: give a fraction of all words, as 0.3"
        ) from None
    if not 0 < rate <= 1:
        raise ConfigError(
            f"level.rate={rate}: give a fraction of all words above 0 and up to 1 (perturb=none is the baseline)"
        )
    return rate


def _design(cfg: DictConfig) -> Design:
    """Return the design of the task's dataset.

    An example is kept when it reaches every level of every perturbation under `keep`, and the cell's own,
    so that all cells of a task see the same examples.
    """
    kept: dict[str, Any] = {name: OmegaConf.to_container(node, resolve=True) for name, node in cfg.keep.items()}
    if cfg.perturb.name != NONE:
        own: Any = OmegaConf.to_container(cfg.perturb, resolve=True)
        own["levels"] = {**own["levels"], str(cfg.level.name): float(cfg.level.rate)}
        kept[str(cfg.perturb.name)] = own
    disturbances: list[Disturbance] = [instantiate(node, _convert_="all") for node in kept.values()]
    split: Split = instantiate(cfg.data.split)
    source: Source = instantiate(cfg.data.source, _convert_="all")
    return Design(
        task=str(cfg.task.name),
        source=source,
        disturbances=tuple(disturbances),
        split=split,
        tagger=Tagger(frozenset(cfg.valid_pos)),
        seed=int(cfg.seed),
        settings={
            "task": str(cfg.task.name),
            "source": OmegaConf.to_container(cfg.data, resolve=True),
            "keep": kept,
            "valid_pos": sorted(cfg.valid_pos),
            "seed": int(cfg.seed),
            "draw": int(cfg.draw),
        },
        draw=int(cfg.draw),
    )


def _plain(cfg: DictConfig) -> dict[str, Any]:
    # Hydra's own node cannot be resolved before a job has a number, and decides no result.
    own = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    plain = OmegaConf.to_container(own, resolve=True)
    if not isinstance(plain, dict):
        raise ConfigError("the configuration is not a mapping")
    return {str(key): value for key, value in plain.items()}


def _absolute(uri: str) -> str:
    """Return an SQLite address that no change of folder moves."""
    head, mark, path = uri.partition("sqlite:///")
    return f"{mark}{Path(path).resolve()}" if mark and not head else uri
