"""What the configuration makes (`_target_`): every setting is one that it takes, and of its kind."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from hydra.utils import get_object

from noisyhealth import own_code
from noisyhealth.errors import ConfigError
from noisyhealth.overrides import nearest

_OWN = "_target_", "_convert_", "_partial_", "_recursive_", "_args_"
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "str": ((str,), "text; what looks like a number needs quotes: '{key}=\"{value}\"'"),
}

_LIST = re.compile(r"(?:[\w.]+\.)?(?:Sequence|Collection|list|tuple|frozenset|set)\[(\w+)(?:, \.\.\.)?\]")


def check(node: object, place: str) -> None:
    """Raise ConfigError for a setting that its target does not take, and for a value of another kind.

    `node` is plain values, `place` where it stands in the configuration. Parts are checked with what they are parts of.
    """
    if isinstance(node, list):
        for at, part in enumerate(node):
            check(part, f"{place}[{at}]")
    if not isinstance(node, dict):
        return
    if "_target_" in node:
        _bind(node, place)
    for name, part in node.items():
        check(part, f"{place}.{name}")


def _bind(node: Mapping[str, Any], place: str) -> None:
    try:
        target = get_object(node["_target_"])
        takes = _parameters(target)
    except Exception as error:  # a user's own part may fail in any way when it is imported
        if (lost := str(node["_target_"])) and not own_code.is_there(lost):
            raise ConfigError(
                f"_target_: {lost} is not found: Python looks for files of yours in the folders of PYTHONPATH "
                f"(export PYTHONPATH=FOLDER, where FOLDER holds {lost.partition('.')[0]}.py)"
            ) from None
        raise ConfigError(f"{place}._target_={node['_target_']}: {type(error).__name__}: {error}") from error
    if any(one.kind is one.VAR_KEYWORD for one in takes.values()):
        return
    for name, value in node.items():
        if name in _OWN:
            continue
        if name not in takes:
            near = nearest(str(name), list(takes))
            meant = f", did you mean {place}.{near}?" if near else ";"
            raise ConfigError(
                f"{place}.{name}={value!r}: {target.__name__} takes no {name!r}{meant} it takes {', '.join(takes)}"
            )
        _fits(value, takes[name].annotation, f"{place}.{name}")


@cache
def _parameters(target: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(target).parameters


def _fits(value: object, annotation: object, key: str) -> None:
    """Raise ConfigError where a value is not of a simple kind; of others the target itself knows."""
    names = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    if (found := _LIST.fullmatch(names)) and found[1] in _KINDS:
        if not isinstance(value, list):
            raise ConfigError(f"{key}={value!r}: give a list, as '{key}=[{value}]'")
        for at, part in enumerate(value):
            _fits(part, found[1], f"{key}[{at}]")
        return
    wanted = [name.strip() for name in names.split("|")]
    if isinstance(value, dict | list) or not set(wanted) <= {*_KINDS, "None"}:
        return
    if value is None and "None" in wanted:
        return
    kinds = [_KINDS[name] for name in wanted if name != "None"]
    if any(isinstance(value, types) and (bool in types or not isinstance(value, bool)) for types, _ in kinds):
        return
    words = " or ".join(word for _, word in kinds).format(key=key, value=value)
    raise ConfigError(f"{key}={value!r}: give {words}{' or null' if 'None' in wanted else ''}")
