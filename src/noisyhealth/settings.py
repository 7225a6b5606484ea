"""A cell from Hydra's configuration: the only place that unpacks it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.errors import HydraException, InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

from noisyhealth import overrides, own_code, paths, targets, unmeant
from noisyhealth.cell import NONE, Cell
from noisyhealth.configuration import opened
from noisyhealth.dataset.design import QUESTION, Design, Disturbance, Split, check_rising
from noisyhealth.errors import ConfigError, NoisyHealthError
from noisyhealth.metrics.metric import Metric
from noisyhealth.mitigations.mitigation import Mitigation
from noisyhealth.sources.source import Source
from noisyhealth.text.tagger import Tagger
from noisyhealth.tracking.budget import Budget
from noisyhealth.tracking.store import Store

NO_FACTORS: Mapping[str, str] = MappingProxyType({})
_CREDENTIALS = (
    "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD for a server, PGPASSWORD or ~/.pgpass for PostgreSQL"
)


def cell(cfg: DictConfig, ablation: str = "", factors: Mapping[str, str] = NO_FACTORS) -> Cell:
    """Return the cell a configuration describes.

    Raises ConfigError for a level the perturbation does not have and a rate that is not a share.
    """
    baseline = cfg.perturb.name == NONE
    rate = _rate(cfg)
    if not _count(cfg, "threads"):
        raise ConfigError("threads=0: give at least 1")
    return Cell(
        task=_made(cfg.task, "task"),
        model=_made(cfg.model, "model"),
        perturb=str(cfg.perturb.name),
        level=NONE if baseline else str(cfg.level.name),
        rate=rate,
        field=str(cfg.perturb.field),
        weights=str(cfg.weights.name),
        prompt=str(cfg.prompt.name),
        design=design(cfg),
        seed=_count(cfg, "seed"),
        repeat=_count(cfg, "repeat"),
        keep_text=switch(cfg.tracking, "keep_text"),
        cache=str(cfg.cache),
        store=store(cfg),
        resolved=_plain(cfg),
        metrics=_metrics(cfg),
        ablation=ablation,
        mitigation=_mitigation(cfg),
        factors=tuple(factors.items()),
    )


def compose(conf: Path, given: Sequence[str], beside: str | None = None) -> list[DictConfig]:
    """Return the configurations that settings of the command line name; commas make several.

    `beside`: a folder of the user's own groups. Raises ConfigError for a setting that cannot be used, and where a
    folder is not there.
    """
    overrides.once(given)
    try:
        parsed = overrides.read(given)
        [jobs] = BasicSweeper.split_arguments(parsed, None)
        with opened(conf, beside):
            made = [hydra.compose("config", list(job)) for job in jobs]
            unmeant.check(made[0], parsed)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise overrides.explained(error, overrides.Line(given, several=True, beside=beside), conf) from error
    return made


def store(cfg: DictConfig) -> Store:
    """Return where the runs of the study go.

    Raises ConfigError for a study that names no folder, a folder that is a file, and an address with a password.
    """
    uri = paths.without_secret("tracking.uri", _absolute(str(cfg.tracking.uri)), _CREDENTIALS)
    if not re.match(r"(sqlite|https?|\w+sql)(\+\w+)?://", uri):
        raise ConfigError(
            f"tracking.uri={uri!r} is no address of runs: give sqlite:///FILE, http://HOST:PORT of an MLflow server, "
            "or postgresql://HOST/NAME"
        )
    artifacts, cache = str(cfg.tracking.artifacts), paths.checked_folder("cache", cfg.cache)
    if artifacts:
        paths.checked_folder("tracking.artifacts", artifacts)
    return _store(uri, artifacts, paths.checked_name("study", cfg.study), f"{cache}/locks/store.lock")


def budget(cfg: DictConfig, path: Path) -> Budget:
    """Return what a sweep may spend; `path` is the file its processes share.

    Raises ConfigError for a limit that is not a number of 0 or more.
    """
    found: dict[str, float | None] = {}
    for name, kind in (("calls", int), ("usd", float)):
        given = cfg.budget[name]
        try:
            found[name] = limit = None if given is None else kind(given)
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(f"budget.{name}={given!r} is not a number; null is no limit") from None
        if limit is not None and (isinstance(given, bool) or limit != float(given) or not limit >= 0):
            what = "a whole number" if kind is int else "a number"
            raise ConfigError(f"budget.{name}={given}: give {what} of 0 or more, or null for no limit")
    calls = found["calls"]
    return Budget(path, None if calls is None else int(calls), found["usd"])


_store = cache(Store)  # opening one takes half a second


def _count(cfg: DictConfig, name: str) -> int:
    """Return a whole number of 0 or more."""
    if not isinstance(given := cfg[name], int) or isinstance(given, bool) or given < 0:
        raise ConfigError(f"{name}={given!r}: give a whole number of 0 or more")
    return given


def switch(cfg: DictConfig, name: str) -> bool:
    """Return true or false."""
    if not isinstance(given := cfg[name], bool):
        raise ConfigError(f"{name}={given!r} is neither true nor false")
    return given


def _mitigation(cfg: DictConfig) -> Mitigation | None:
    """Return what is done about disturbed input, None where nothing is, as in runs from before there was a choice."""
    node = cfg.get("mitigate")
    if node is None or node.get("name") == NONE:
        return None
    made: Mitigation = _made(node, "mitigate")
    return made


def _rate(cfg: DictConfig) -> float:
    """Return the cell's rate, checked."""
    if cfg.perturb.name == NONE:
        return 0.0
    key = f"perturb.levels.{cfg.level.name}" if OmegaConf.is_interpolation(cfg.level, "rate") else "level.rate"
    try:
        if isinstance(given := cfg.level.rate, bool):
            raise TypeError(given)
        rate = float(given)
    except InterpolationKeyError:
        raise ConfigError(
            f"perturb={cfg.perturb.name} has no level {cfg.level.name!r}; it has {', '.join(cfg.perturb.levels)}"
        ) from None
    except (TypeError, ValueError):
        raise ConfigError(f"{key}={cfg.level.rate!r} is not a number: give a fraction of all words, as 0.3") from None
    if not 0 < rate <= 1:
        raise ConfigError(
            f"{key}={rate}: give a fraction of all words above 0 and up to 1 (perturb=none is the baseline)"
        )
    return rate


def design(cfg: DictConfig) -> Design:
    """Return the design of the task's dataset.

    An example is kept when it reaches every level of every perturbation under `keep`, and the cell's own,
    so that all cells of a task see the same examples. Raises ConfigError for a setting that is none.
    """
    if not isinstance(cfg.keep, DictConfig):
        raise ConfigError(f"keep={cfg.keep!r}: it holds perturbations by name; ~keep.typo leaves one out")
    if empty := [str(name) for name, node in cfg.keep.items() if not isinstance(node, DictConfig)]:
        raise ConfigError(f"keep.{empty[0]}={cfg.keep[empty[0]]!r} is no perturbation: ~keep.{empty[0]} leaves it out")
    kept: dict[str, Any] = {str(name): OmegaConf.to_container(node, resolve=True) for name, node in cfg.keep.items()}
    if cfg.perturb.name != NONE:
        own: Any = OmegaConf.to_container(cfg.perturb, resolve=True)
        own["levels"] = {**own["levels"], str(cfg.level.name): _rate(cfg)}
        kept[str(cfg.perturb.name)] = own
    disturbances = [_disturbance(name, json.dumps(node)) for name, node in kept.items()]
    for node in (*cfg.keep.values(), cfg.perturb):  # as they are given: level.rate is one cell's and may be any
        check_rising(str(node.name), node.levels)
    task, labels = paths.checked_name("task.name", cfg.task.name), tuple(cfg.task.get("labels") or ())
    if labels and (asking := [one.name for one in disturbances if one.field == QUESTION]):
        raise ConfigError(
            f"perturb={asking[0]}: field={QUESTION}, and task={task} asks the same question of every text: give task=qa"
        )
    if not cfg.valid_pos:
        raise ConfigError("valid_pos=[]: no word could be disturbed; name parts of speech, as [NOUN,VERB]")
    split: Split = _made(cfg.data.split, "data.split")
    source: Source = _made(cfg.data.source, "data.source")
    return Design(
        task=task,
        source=source,
        disturbances=tuple(disturbances),
        split=split,
        tagger=Tagger(frozenset(cfg.valid_pos), frozenset(cfg.protect)),
        seed=_count(cfg, "seed"),
        settings={
            "task": task,
            "source": OmegaConf.to_container(cfg.data, resolve=True),
            "keep": kept,
            "valid_pos": sorted(cfg.valid_pos),
            "protect": sorted(cfg.protect),
            "seed": int(cfg.seed),
            "draw": _count(cfg, "draw"),
            "labels": list(labels),
        },
        draw=int(cfg.draw),
        labels=labels,
    )


@cache
def _disturbance(name: str, described: str) -> Disturbance:
    """Return the disturbance that JSON describes: the cells of a sweep share most of theirs."""
    made: Disturbance = _made(json.loads(described), f"perturb={name}: perturb")
    return made


def _metrics(cfg: DictConfig) -> dict[str, Metric]:
    """Return the user's own metrics by name.

    Raises ConfigError for a file that does not name its metric, and for a name that no score can have.
    """
    found = cfg.get("metric") or {}
    if odd := [name for name, node in found.items() if not str(name).isidentifier() or not _is_target(node)]:
        raise ConfigError(
            f"metric.{odd[0]} is no metric: its file must have the metric's name, in letters, digits and _, with its "
            "settings below it, _target_ among them (docs/extend.md)"
        )
    return {str(name): _made(node, f"metric.{name}") for name, node in found.items()}


def _is_target(node: Any) -> bool:
    return isinstance(node, DictConfig) and "_target_" in node


def _made(node: Any, place: str) -> Any:
    """Return the object a node of the configuration describes; an error of ours comes as it is, not in Hydra's.

    Raises ConfigError for what the object cannot be made with, and for code of the user's that Python does not find.
    """
    targets.check(_resolved(node), place)
    try:
        return instantiate(node, _convert_="all")
    except InstantiationException as error:
        if isinstance(error.__cause__, NoisyHealthError):
            raise error.__cause__ from None
        if lost := [name for name in sorted(own_code.targets(_resolved(node))) if not own_code.is_there(name)]:
            raise ConfigError(
                f"_target_: {lost[0]} is not found: Python looks for files of yours in the folders of PYTHONPATH "
                f"(export PYTHONPATH=FOLDER, where FOLDER holds {lost[0].partition('.')[0]}.py)"
            ) from None
        raise


def _resolved(node: Any) -> Any:
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def _plain(cfg: DictConfig) -> dict[str, Any]:
    # Hydra's own node cannot be resolved before a job has a number, and decides no result.
    return {str(key): _resolved(cfg[key]) for key in cfg if key != "hydra"}


def _absolute(uri: str) -> str:
    """Return an SQLite address that no change of folder moves."""
    head, mark, path = uri.partition("sqlite:///")
    return f"{mark}{Path(path).resolve()}" if mark and not head else uri
