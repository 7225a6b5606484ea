"""Code of the user's own that settings name: its files and their hashes, so that no result is taken for other code's.

Only Python is followed. What else such code reads (a table) belongs into the settings, or beside a constant that names
its version.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.util import find_spec, resolve_name
from pathlib import Path

_PACKAGE = "noisyhealth"
_INSTALLED = tuple(
    {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_GETTERS = tuple(f"hydra.utils.get_{what}" for what in ("class", "method", "static_method", "object"))


def targets(node: object) -> set[str]:
    """Return every `_target_` that settings have."""
    return {str(found["_target_"]) for found in _nodes(node)}


def hashes(settings: object) -> dict[str, str]:
    """Return the hash of every file outside this package that holds code the settings name, by its module.

    What such a file imports from beside it counts too; of a package that is installed, only the file that was named.
    Files are read once a process, when Python does: a later change is not what runs.
    """
    return {module: sha256(text.encode()).hexdigest()[:16] for module, text in sorted(_texts(settings).items())}


def sources(settings: object) -> dict[str, str]:
    """Return the text of the same files by their paths ("mine/stretch.py"), without those of installed packages."""
    found = {module: _file(module) for module in _texts(settings)}
    own = {module: file for module, file in found.items() if file and not _is_installed(file)}
    return {file.relative_to(_root(module) or file.parent).as_posix(): _read(file) for module, file in own.items()}


def is_there(name: str) -> bool:
    """Tell whether Python finds the module that a dotted name begins with."""
    return _root(name) is not None


def _nodes(node: object) -> Iterator[Mapping[str, object]]:
    """Yield every part of settings that Hydra makes an object of."""
    if isinstance(node, Mapping):
        if "_target_" in node:
            yield node
        for value in node.values():
            yield from _nodes(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _nodes(value)


def _names(node: Mapping[str, object]) -> list[str]:
    """Return what code a part of settings names: its target, or what Hydra's own getters are to get."""
    if node["_target_"] in _GETTERS:
        given = node.get("_args_")
        return [str(name) for name in (node.get("path"), *(given if isinstance(given, list) else ())) if name]
    return [str(node["_target_"])]


def _texts(settings: object) -> dict[str, str]:
    """Return the text of each file of code that settings name, with what it imports from beside it."""
    found: dict[str, str] = {}
    left = [name for node in _nodes(settings) for name in _names(node) if name.partition(".")[0] != _PACKAGE]
    while left:
        for module in _prefixes(left.pop()):
            if module not in found and (file := _file(module)):
                found[module] = _read(file)
                if not _is_installed(file):
                    left += _imports(found[module], module, package=file.stem == "__init__")
    return found


def _prefixes(name: str) -> list[str]:
    """Return a dotted name with all that it begins with.

    >>> _prefixes("mine.stretch.Stretch")
    ['mine', 'mine.stretch', 'mine.stretch.Stretch']
    """
    parts = name.split(".")
    return [".".join(parts[: at + 1]) for at in range(len(parts))]


def _imports(text: str, module: str, *, package: bool) -> Iterator[str]:
    """Yield what a module may import, also inside its functions; relative names in full."""
    own = module if package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            beside = "." * node.level + (node.module or "")
            base = resolve_name(beside, own) if own or not node.level else ""
            names = [f"{base}.{alias.name}" for alias in node.names] if base else []
        else:
            continue
        yield from (name for name in names if _is_own(name))


def _is_own(name: str) -> bool:
    """Tell whether a name may be that of a file of the user's."""
    top = name.partition(".")[0]
    root = _root(top)
    return top != _PACKAGE and root is not None and not _is_installed(root / top)


@cache
def _root(name: str) -> Path | None:
    """Return the folder that the first part of a module's name is found in, None where it is nowhere."""
    try:
        spec = find_spec(name.partition(".")[0])
    except ValueError:  # a module that was typed at a prompt
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve().parent
    return Path(spec.origin).resolve().parent if spec.has_location and spec.origin else None


def _file(module: str) -> Path | None:
    """Return the Python file of a module, None where it has none."""
    if (root := _root(module)) is None:
        return None
    path = root.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _is_installed(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _INSTALLED)


@cache
def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")
