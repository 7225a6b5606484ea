"""What the processes of one command share: what is fixed before libraries are loaded, and what the first one knows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from omegaconf import DictConfig

from noisyhealth.cell import Cell
from noisyhealth.errors import BudgetError, ConfigError, JournalError, RefusedError, UnreachableError
from noisyhealth.overrides import Line
from noisyhealth.study import Record
from noisyhealth.tracking.store import Store

# Hydra's launchers hand the environment on.
NAME = "NOISYHEALTH_SWEEP"
LEDGER = "NOISYHEALTH_LEDGER"
PARENT = "NOISYHEALTH_PARENT"
CELLS = "NOISYHEALTH_CELLS"
SWEPT = "NOISYHEALTH_SWEPT"
SEARCH = "NOISYHEALTH_SEARCH"

# After these no other cell could do better.
ENDING = (BudgetError, RefusedError, JournalError, UnreachableError)


@dataclass
class Begun:
    """What the process that started the sweep knows of it."""

    store: Store | None = None
    parent: str = ""
    planned: dict[str, str] = field(default_factory=dict)
    cells: dict[tuple[str, ...], Cell] = field(default_factory=dict)
    cache: str = ""
    bar: Any = None
    line: Line = field(default_factory=lambda: Line(()))
    checked: bool = False
    stop: Exception | None = None
    records: list[Record] = field(default_factory=list)


begun = Begun()


class Stop(BaseException):
    """Leaves Hydra before any job: it turns an Exception of a callback into a warning and goes on."""


def prepare(configs: Sequence[DictConfig]) -> None:
    """Fix what the processes of a command hand on, before torch, mlflow and the hub's client are imported.

    Raises ConfigError where "auto" would be settled on this machine and the cells run on others.
    """
    fix_threads(configs[0])
    if all(str(cfg.weights.name) == "embedded" and str(cfg.data.name) != "hub" for cfg in configs):
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    for cfg in configs:
        if str(cfg.hydra.launcher.get("_target_", "")).endswith("SlurmLauncher"):
            for name in ("accelerator", "precision", "dtype"):
                if cfg.model.get(name) == "auto":
                    raise ConfigError(
                        f"model.{name}=auto would mean one thing on this machine and another on Slurm's: give what the "
                        "nodes have, as model.accelerator=cuda model.precision=bf16-mixed, or model.dtype=bfloat16"
                    )


def fix_threads(cfg: DictConfig) -> None:
    """Fix what must be fixed in every process before torch is imported."""
    os.environ.setdefault("OMP_NUM_THREADS", str(cfg.threads))
    os.environ.setdefault("MKL_NUM_THREADS", str(cfg.threads))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
