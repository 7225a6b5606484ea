"""The jobs that Hydra will make of a command, known before the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

if TYPE_CHECKING:
    from hydra.core.config_loader import ConfigLoader
    from hydra.core.override_parser.types import Override

FACTORS = ("task", "model", "perturb", "level")


def of(config: DictConfig) -> list[DictConfig] | None:
    """Return the configuration of every job of a sweep, None when a sweeper decides them as it goes."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

    if not str(config.hydra.sweeper.get("_target_", "")).endswith("BasicSweeper"):
        return None
    loader = GlobalHydra.instance().config_loader()
    [batch] = BasicSweeper.split_arguments(overrides(config), None)
    known = {tuple(job): loader.load_sweep_config(config, list(job)) for job in batch}
    made = [known[tuple(job)] for job in batch]
    if (hydra := GlobalHydra.instance().hydra) is not None:
        hydra.config_loader = cast("ConfigLoader", Composed(loader, known))
    return made


class Composed:
    """Hydra's loader, which gives what was composed already: Hydra would compose every job three times, each 70 ms.

    Its sweeper asks once to see that each job can be composed, then its launcher, to run it. A process that the
    launcher starts gets Hydra's own.
    """

    def __init__(self, loader: ConfigLoader, known: dict[tuple[str, ...], DictConfig]) -> None:
        self._loader, self._known = loader, known
        self._seen: set[tuple[str, ...]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._loader,)

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """Return the configuration of a job, and keep it until the launcher has it."""
        job = tuple(sweep_overrides)
        if job not in self._known:
            return self._loader.load_sweep_config(master_config, sweep_overrides)
        found = self._known.pop(job) if job in self._seen else self._known[job]
        self._seen.add(job)
        return found


def _itself(loader: ConfigLoader) -> ConfigLoader:
    return loader


def shared(config: DictConfig) -> DictConfig:
    """Return the configuration of a sweep without what its sweeper chooses."""
    fixed = [str(override.input_line) for override in overrides(config) if not override.is_sweep_override()]
    return GlobalHydra.instance().config_loader().load_sweep_config(config, fixed)


def chosen(config: DictConfig) -> list[str]:
    """Return the settings that differ between the jobs of a sweep."""
    return [override.key_or_group for override in overrides(config) if override.is_sweep_override()]


def swept(config: DictConfig) -> list[str]:
    """Return these settings without the study's four factors, whose choices stand in every cell's name."""
    return [key for key in chosen(config) if key not in FACTORS]


def ablation(given: Sequence[str], keys: Sequence[str]) -> str:
    """Return what a job is called after: which of these settings it was given.

    >>> ablation(["model=bluebert", "model.epochs=4", "seed=1"], ["model.epochs", "seed"])
    'epochs=4 seed=1'
    """
    return " ".join(item.removeprefix("model.") for item in given if item.partition("=")[0].lstrip("+") in keys)


def overrides(config: DictConfig) -> list[Override]:
    """Return what the sweeper and the command line set for the jobs of a sweep."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    params = config.hydra.sweeper.get("params") or {}
    given = [f"{key}={value}" for key, value in params.items()] + list(config.hydra.overrides.task)
    return OverridesParser.create(config_loader=GlobalHydra.instance().config_loader()).parse_overrides(given)
