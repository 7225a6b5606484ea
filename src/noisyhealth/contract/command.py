"""`python -m noisyhealth check perturb=...`: the card of each perturbation that settings name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from omegaconf import DictConfig, OmegaConf

from noisyhealth import settings
from noisyhealth.configuration import CONF
from noisyhealth.contract import draw, rules, texts
from noisyhealth.contract.card import Card
from noisyhealth.contract.check import HASH_SEEDS, LEAST, Reach, Reaching, check, shown
from noisyhealth.contract.draw import Levels
from noisyhealth.contract.rules import Fault
from noisyhealth.contract.texts import Text
from noisyhealth.dataset.design import QUESTION, TEXT, Design
from noisyhealth.errors import DataError

_TASKS = "task=sentiment,condition,qa"
_FEW = 40  # texts of each task that every rule is checked on; all of them count for the reach


def cards(
    given: Sequence[str], beside: str | None = None, *, least: float = LEAST, hash_seeds: Sequence[str] = HASH_SEEDS
) -> Iterator[Card]:
    """Yield the card of each perturbation that settings name, on the texts of the tasks that they name.

    Without `task=` and `data=` these are the sample's three. `beside`: a folder of the user's own
    groups. Raises ConfigError for a perturbation that disturbs nothing.
    """
    if not any(one.startswith(("task=", "data=")) for one in given):
        given = [*given, _TASKS]
    configs = settings.compose(CONF, given, beside)
    read: dict[str, list[dict[str, Text]]] = {}
    reaching = Reaching({})
    for name in dict.fromkeys(str(cfg.perturb.name) for cfg in configs):
        own = [_leveled(cfg) for cfg in configs if cfg.perturb.name == name]
        yield _card(name, own, read, reaching, least, hash_seeds)


def _card(
    name: str,
    configs: Sequence[DictConfig],
    read: dict[str, list[dict[str, Text]]],
    reaching: Reaching,
    least: float,
    hash_seeds: Sequence[str],
) -> Card:
    """Return a perturbation's card; its settings differ in the task alone. `read`: the texts of tasks, as they are."""
    designs = [settings.design(cfg) for cfg in configs]
    disturbance = draw.own(designs[0], name)
    tasks = [_texts(design, read) for design in designs]
    few = [fields[disturbance.field] for of in tasks for fields in of[:_FEW]]
    on = [*texts.hard(designs[0], disturbance), *few]
    found = check(_plain(configs[0]), disturbance, on, least=least, hash_seeds=hash_seeds)
    faults: list[Fault] = []
    reach: list[Reach] = []
    example: Levels = {}
    try:
        reach = [reaching.of(of, disturbance) for of in tasks]
        example = shown(designs[0], disturbance)
    except Exception as error:  # of a user's code, on a text that was not among the few
        faults.append(("rate" if isinstance(error, DataError) else "unicode", f"{type(error).__name__}: {error}"))
    if reach:
        total = {level: sum(one.reached[level] for one in reach) for level in disturbance.levels}
        faults += rules.of_reach(disturbance, total, sum(map(len, tasks)))
    beside = [one.name for one in designs[0].disturbances if one.name != name]
    return Card(name, disturbance.levels, example, reach, beside, found.more(faults))


def _texts(design: Design, read: dict[str, list[dict[str, Text]]]) -> list[dict[str, Text]]:
    """Return the texts of a task with their words, tagged once for all perturbations."""
    named = ("task", "source", "valid_pos", "protect", "labels")
    place = json.dumps([design.settings[name] for name in named], sort_keys=True)
    if place not in read:
        read[place] = texts.given(design, (TEXT, QUESTION))
    return [{field: replace(text, design=design) for field, text in fields.items()} for fields in read[place]]


def _leveled(cfg: DictConfig) -> DictConfig:
    """Return settings whose level is one that the perturbation has."""
    if cfg.perturb.levels and cfg.level.name not in cfg.perturb.levels:
        first = next(iter(cfg.perturb.levels))
        cfg.level = {"name": first, "rate": cfg.perturb.levels[first]}
    return cfg


def _plain(cfg: DictConfig) -> dict[str, Any]:
    found = OmegaConf.to_container(cfg, resolve=True)
    assert isinstance(found, dict)
    return {str(name): value for name, value in found.items()}
