"""Which code ran: a hash of source files, so that a result is never taken for that of other code."""

from __future__ import annotations

import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path

_ROOT = Path(__file__).parent
# What only reads runs cannot change them: mending a table must not make every cell run again.
_READERS = (
    *("report/", "audit/", "sweep/", "commands/", "contract/", "api.py", "catalogue.py", "usage.py", "__main__.py"),
    *("analysis/anova.py", "analysis/association.py", "analysis/blocks.py", "analysis/completeness.py"),
    *("analysis/inference.py", "analysis/medical.py", "analysis/mixed.py", "tracking/ui.py"),
    *("analysis/components.py", "analysis/difference.py", "analysis/floor.py", "analysis/mean_change.py"),
    *("analysis/p_value.py", "analysis/paired.py", "analysis/trend.py", "analysis/within.py"),
)


@cache
def of(*parts: str) -> str:
    """Return the hash of the code and tables below the given parts; without parts, of all code that runs a cell."""
    digest = sha256()
    for path in sorted(p for part in parts or (".",) for p in _files(_ROOT / part)):
        name = path.relative_to(_ROOT).as_posix()
        if parts or (path.suffix == ".py" and not name.startswith(_READERS)):
            digest.update(f"{name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def tables() -> dict[str, str]:
    """Return the hash of every table of words and texts that comes with the package."""
    found = sorted(_files(_ROOT / "data"))
    return {path.relative_to(_ROOT / "data").as_posix(): sha256(path.read_bytes()).hexdigest()[:16] for path in found}


def _files(path: Path) -> list[Path]:
    found = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return [p for p in found if p.suffix in (".py", ".tsv", ".txt", ".jsonl")]


@cache
def git() -> dict[str, str]:
    """Return the commit that is checked out and whether files differ from it; empty outside a checkout."""
    try:
        commit = _run("rev-parse", "HEAD")
        return {"git_commit": commit, "git_dirty": str(bool(_run("status", "--porcelain"))).lower()}
    except (OSError, subprocess.CalledProcessError):
        return {}


@cache
def uncommitted() -> str:
    """Return how the checkout differs from its commit as a patch for `git apply`, "" where it does not.

    New files are in it where code and settings lie: elsewhere somebody may keep gigabytes of data.
    """
    try:
        listed = _run("ls-files", "-z", "--others", "--exclude-standard", "--", ":/src", ":/conf")
        new = [name for name in listed.split("\0") if name]
        parts = [_patch("HEAD"), *(_patch("--no-index", "/dev/null", name) for name in new)]
    except (OSError, subprocess.CalledProcessError):
        return ""
    return "".join(parts)


def _patch(*arguments: str) -> str:
    """Return what `git diff` prints; of files that are no UTF-8, the bytes it cannot be written with are named."""
    command = ["git", "-C", str(_ROOT), "diff", "--binary", "--no-color", "--no-ext-diff", *arguments]
    ended = subprocess.run(command, capture_output=True, check=False)
    if ended.returncode > 1:  # 1: two files differ
        raise subprocess.CalledProcessError(ended.returncode, command)
    return ended.stdout.decode("utf-8", "backslashreplace")


def _run(*arguments: str) -> str:
    command = ["git", "-C", str(_ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
