"""What can be chosen: the groups of the configuration, each choice with the sentence that its file begins with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from noisyhealth.errors import ConfigError
from noisyhealth.overrides import no_choice

PRIMARY = "config.yaml"


@dataclass(frozen=True)
class Choice:
    """One file of a group: `NAME` of `group=NAME`; `own`: it lies in a folder of the user's."""

    name: str
    sentence: str
    own: bool = False


def groups(conf: Path, beside: str | None = None) -> dict[str, list[Choice]]:
    """Return the choices of each group, in the order of the primary configuration; `beside`: a folder of the user's."""
    found: dict[str, dict[str, Choice]] = {name: {} for name in _named(conf)}
    for folder, own in [(conf, False), *([(Path(beside), True)] if beside else [])]:
        if not folder.is_dir():
            raise ConfigError(f"{folder}: no folder of configuration there")
        for path in sorted(folder.rglob("*.yaml")):
            group = path.parent.relative_to(folder).as_posix()
            if group != ".":
                found.setdefault(group, {})[path.stem] = Choice(path.stem, sentence(path), own)
    return {group: list(choices.values()) for group, choices in found.items() if choices}


def sentence(path: Path) -> str:
    """Return the sentence that a file begins with, "" where it has none; Hydra's own directives come before it."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# @"):
            return line.removeprefix("#").strip() if line.startswith("#") else ""
    return ""


def only(found: Mapping[str, Sequence[Choice]], group: str) -> dict[str, Sequence[Choice]]:
    """Return one group; raises ConfigError where there is none of that name."""
    if group not in found:
        raise ConfigError(f"list {group}: {no_choice('group', group, list(found))}")
    return {group: found[group]}


def settings(conf: Path, chosen: Mapping[str, str]) -> list[str]:
    """Return the names of the settings of the primary configuration and of the files of its groups.

    `chosen`: the choice of each group that was made; of others every file counts.
    """
    names = dict.fromkeys(_keys({k: v for k, v in _read(conf / PRIMARY).items() if k not in ("defaults", "hydra")}, ""))
    for path in sorted(conf.glob("*/*.yaml")):
        group = path.parent.name
        if group not in ("experiment", "hydra") and chosen.get(group, path.stem) == path.stem:
            names |= dict.fromkeys(_keys({k: v for k, v in _read(path).items() if k != "defaults"}, f"{group}."))
    return [name for name in names if not name.rpartition(".")[2].startswith("_")]


def _named(conf: Path) -> list[str]:
    """Return the groups of the primary configuration's list of defaults, in its order."""
    defaults = _read(conf / PRIMARY).get("defaults", [])
    return [str(name) for entry in defaults if isinstance(entry, dict) for name in entry if "@" not in str(name)]


def _read(path: Path) -> dict[str, Any]:
    read = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read if isinstance(read, dict) else {}


def _keys(node: Mapping[str, Any], place: str) -> Iterator[str]:
    for name, below in node.items():
        if isinstance(below, dict):
            yield from _keys(below, f"{place}{name}.")
        else:
            yield f"{place}{name}"
