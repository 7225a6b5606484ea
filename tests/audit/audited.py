"""A small study that was really run and analysed, and what a forger may do to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from noisyhealth import manifest
from noisyhealth.audit import bundle
from noisyhealth.audit.bundle import Bundle
from noisyhealth.audit.kept import KeptRun
from noisyhealth.evidence import METRICS


def unpacked(folder: Path, to: Path) -> Bundle:
    """Return the archive of the study, unpacked into an empty folder."""
    return bundle.unpack(folder / "out" / "demo.zip", to)


def named(packed: Bundle, name: str) -> KeptRun:
    """Return the run that is called so."""
    [found] = [run for run in packed.runs() if run.logged.name == name]
    return found


def copied(run: KeptRun, folder: Path) -> KeptRun:
    """Return a run whose files may be changed."""
    return replace(run, folder=Path(shutil.copytree(run.folder, folder / run.id)))


def signed(run: KeptRun) -> KeptRun:
    """Return a changed run with a manifest that says it was never otherwise: only its content can tell."""
    about = {name: value for name, value in manifest.read(run.folder).items() if name not in ("files", "sha256")}
    tags = {**run.logged.tags, "manifest": manifest.write(run.folder, about)}
    return KeptRun(run.id, run.folder, replace(run.logged, tags=tags))


def with_rows(run: KeptRun, name: str, change: Callable[[pd.DataFrame], None]) -> KeptRun:
    """Return the run with a table of its files changed, and signed anew."""
    frame = pd.read_parquet(run.folder / name)
    change(frame)
    frame.to_parquet(run.folder / name)
    return signed(run)


def with_cell(run: KeptRun, name: str, row: int, column: str, value: object) -> KeptRun:
    """Return the run with one value of a table changed, and signed anew."""

    def change(frame: pd.DataFrame) -> None:
        frame.at[row, column] = value

    return with_rows(run, name, change)


def with_numbers(run: KeptRun, part: str, changed: Mapping[str, Any]) -> KeptRun:
    """Return the run with numbers or tags changed in its own account and in MLflow's, and signed anew."""
    path = run.folder / METRICS
    whole = json.loads(path.read_text(encoding="utf-8"))
    whole[part] |= changed
    path.write_text(json.dumps(whole), encoding="utf-8")
    logged = replace(run.logged, **{part: {**getattr(run.logged, part), **changed}})
    return signed(replace(run, logged=logged))
