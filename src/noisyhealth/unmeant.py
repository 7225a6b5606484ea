"""What Hydra takes from a command line without a word, and nobody means: refused before any work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from noisyhealth.errors import ConfigError
from noisyhealth.overrides import LIST, keys, meant, nearest, values

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

# Mappings whose names are the user's own; those inside of a `_target_` are too.
_FREE = ("hydra", "prices.usd_per_million", "letters.neighbours")
_OF_A_COMMAND = ("study", "tracking", "cache", "threads", "budget", "plan")  # not of a cell
_SEVERAL = ("metric",)  # groups of which a cell may have several


def check(config: DictConfig, given: Sequence[Override]) -> None:
    """Raise ConfigError for what Hydra takes without a word, and is not meant.

    That is a value that is named twice, a sentence whose comma makes two values of it, no value, several values of a
    setting that a whole command has, several choices for one cell, and a new setting that nothing reads.
    """
    for override in given:
        _single(override)
        if override.is_sweep_override():
            _swept(override)
        if (override.is_add() or override.is_force_add()) and not _is_group(override):
            _used(config, override, given)


def _single(override: Override) -> None:
    """Raise ConfigError for a list of choices where a cell has one: Hydra would merge them into a third."""
    key = override.key_or_group
    if key in _SEVERAL or key.startswith("hydra/") or not _is_group(override):
        return
    if listed := [value for value in values(override) if isinstance(value, list)]:
        told = ",".join(map(str, listed[0]))
        more = (
            "an experiment is a whole sweep; give one" if key == "experiment" else f"-m {key}={told} makes one of each"
        )
        raise ConfigError(f"{override.input_line}: a cell has one {key}, and this would merge them; {more}")


def _swept(override: Override) -> None:
    key, line = override.key_or_group, override.input_line
    if key == "experiment":
        raise ConfigError(f"{line}: an experiment is a whole sweep; give one a command")
    if key.partition(".")[0] in _OF_A_COMMAND:
        raise ConfigError(f"{line}: {key} is a setting of a whole command, not of its cells; run one command for each")
    if override.is_discrete_sweep() and not list(override.sweep_string_iterator()):
        raise ConfigError(f"{line} matches nothing; {LIST}")
    _distinct(override)


def _distinct(override: Override) -> None:
    key, line = override.key_or_group, override.input_line
    sweep: Any = override.value()
    listed = values(override)
    if getattr(sweep, "simple_form", False) and any(isinstance(one, str) and " " in one.strip() for one in sweep.list):
        raise ConfigError(
            f"{line}: with -m a comma begins another value, so this would be asked {len(listed)} times; quote a value "
            f"that has a comma: '{key}=\"...\"'"
        )
    met: set[object] = set()
    for value in listed:
        same = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
        if same in met:
            raise ConfigError(f"{line}: {value} stands there twice, and would be the same cell; name every value once")
        met.add(same)


def _is_group(override: Override) -> bool:
    from hydra.core.global_hydra import GlobalHydra

    loader = GlobalHydra.instance().config_loader()
    return bool(override.package) or bool(loader.get_group_options(override.key_or_group))


def _used(config: DictConfig, override: Override, given: Sequence[Override]) -> None:
    """Raise ConfigError for a new setting that nothing reads."""
    key = override.key_or_group
    if override.is_force_add() and key in keys(_without(config, given)):
        return  # ++ sets one that is there
    parents = [key[:at] for at, sign in enumerate(key) if sign == "."]
    made = any(
        "_target_" in node for place in parents if isinstance(node := OmegaConf.select(config, place), DictConfig)
    )
    free = any(f"{key}.".startswith(f"{place}.") for place in _FREE)
    if made or free or f"${{{key}" in OmegaConf.to_yaml(config):
        return  # what makes something says itself what it does not take
    known = [one for one in keys(config) if one != key and not one.startswith(f"{key}.")]
    raise ConfigError(f"{override.input_line}: nothing reads {key!r}{meant(nearest(key, known))} Leave it out")


def _without(config: DictConfig, given: Sequence[Override]) -> DictConfig:
    """Return the configuration of a command line without the settings that it adds."""
    from hydra.core.global_hydra import GlobalHydra
    from hydra.types import RunMode

    old = [str(one.input_line) for one in given if not (one.is_add() or one.is_force_add() or one.is_sweep_override())]
    name = str(OmegaConf.select(config, "hydra.job.config_name") or "config")
    return GlobalHydra.instance().config_loader().load_configuration(name, old, RunMode.RUN)
