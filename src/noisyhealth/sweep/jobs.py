"""The jobs that Hydra will make of a command, known before the first of them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

from noisyhealth import progress

if TYPE_CHECKING:
    from hydra._internal.config_repository import IConfigRepository
    from hydra.core.config_loader import ConfigLoader
    from hydra.core.config_search_path import ConfigSearchPath
    from hydra.core.override_parser.types import Override
    from hydra.plugins.config_source import ConfigResult

DIMENSIONS = ("task", "model", "perturb", "level")
# These tell cells apart by themselves, or say where their runs go, and need no factor.
_NO_FACTOR = ("weights", "study")


def of(config: DictConfig) -> list[DictConfig] | None:
    """Return the configuration of every job of a sweep, None when a sweeper decides them as it goes."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

    if not str(config.hydra.sweeper.get("_target_", "")).endswith("BasicSweeper"):
        return None
    loader: Any = GlobalHydra.instance().config_loader()
    loader.repository = Read(loader.repository)
    [batch] = BasicSweeper.split_arguments(overrides(config), None)
    each = progress.steps(batch, "checking settings", unit="cell")
    known = {tuple(job): loader.load_sweep_config(config, list(job)) for job in each}
    made = [known[tuple(job)] for job in batch]
    if (hydra := GlobalHydra.instance().hydra) is not None:
        hydra.config_loader = cast("ConfigLoader", Composed(loader, known))
    return made


class Read:
    """Hydra's repository of files, each read once: Hydra would read all of them anew for every job, each time 40 ms.

    What was read is kept as bytes, which are made an object faster than a copy is: composing changes what it is given.
    """

    def __init__(self, repository: IConfigRepository) -> None:
        self._repository = repository
        self._known: dict[str, bytes] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._repository, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Read:
        copied = Read(copy.deepcopy(self._repository, memo))
        copied._known = self._known
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._repository,)

    def initialize_sources(self, config_search_path: ConfigSearchPath) -> None:
        """Look elsewhere from now on, where other files may have the same names."""
        self._repository.initialize_sources(config_search_path)
        self._known = {}

    def load_config(self, config_path: str) -> ConfigResult | None:
        """Return what a file holds, None where there is none."""
        if config_path not in self._known:
            self._known[config_path] = pickle.dumps(self._repository.load_config(config_path))
        found: ConfigResult | None = pickle.loads(self._known[config_path])
        return found


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


def _itself(wrapped: Any) -> Any:
    return wrapped


def shared(config: DictConfig) -> DictConfig:
    """Return the configuration of a sweep without what its sweeper chooses."""
    fixed = [str(override.input_line) for override in overrides(config) if not override.is_sweep_override()]
    return GlobalHydra.instance().config_loader().load_sweep_config(config, fixed)


def chosen(config: DictConfig) -> list[str]:
    """Return the settings that differ between the jobs of a sweep."""
    return [override.key_or_group for override in overrides(config) if override.is_sweep_override()]


def swept(config: DictConfig) -> list[str]:
    """Return these settings without the study's four dimensions, whose choices stand in every cell's name."""
    return [key for key in chosen(config) if key not in DIMENSIONS]


def ablation(given: Sequence[str], keys: Sequence[str]) -> str:
    """Return what a job is called after: which of these settings it was given.

    >>> ablation(["model=bluebert", "model.epochs=4", "seed=1"], ["model.epochs", "seed"])
    'epochs=4 seed=1'
    """
    return " ".join(item.removeprefix("model.") for item in given if item.partition("=")[0].lstrip("+") in keys)


def factors(given: Sequence[str], keys: Sequence[str]) -> dict[str, str]:
    """Return the factors of an ablation at which a job stands: which of these settings it was given, as text.

    Numbers that are equal have one text. A group's choice stands under the group.

    >>> factors(["model=llama", "prompt.shots=5", "model.temperature=1e0", "seed=1"], ["model.temperature", "seed"])
    {'model.temperature': '1', 'seed': '1'}
    >>> factors(["weights=study", "+perturb.mask='a, b'"], ["weights", "perturb.mask"])
    {'perturb.mask': 'a, b'}
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    named = [item for item in given if item.partition("=")[0].lstrip("+") in keys]
    parsed = OverridesParser.create().parse_overrides(named)
    return {o.key_or_group: text(o.value()) for o in parsed if o.key_or_group not in _NO_FACTOR}


def text(value: object) -> str:
    """Return a setting's value as the analysis names it.

    >>> text(True), text(0.0), text(1e-4), text(["a", 2]), text(None), text("gpt")
    ('true', '0', '0.0001', '[a, 2]', 'null', 'gpt')
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{text(key)}: {text(one)}' for key, one in value.items())}}}"
    return str(value)


def overrides(config: DictConfig) -> list[Override]:
    """Return what the sweeper and the command line set for the jobs of a sweep; the command line has the last word."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    params = config.hydra.sweeper.get("params") or {}
    given = [f"{key}={value}" for key, value in params.items()] + list(config.hydra.overrides.task)
    parsed = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader()).parse_overrides(given)
    return list({override.get_key_element(): override for override in parsed}.values())
