"""Hydra's side of a study: the cells of a command, checked before any work, then run one by one."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import uuid4

import hydra
from filelock import FileLock
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from tqdm import tqdm

from noisyhealth import calls, evidence, experiment, plan, settings, show, study
from noisyhealth.errors import BudgetError, ConfigError, JournalError, NoisyHealthError, RefusedError
from noisyhealth.models.chat import loopback
from noisyhealth.models.model import Model
from noisyhealth.settings import Cell
from noisyhealth.study import FAILED, KILLED, MISSING, REUSED, Asked, Ledger, Record
from noisyhealth.tracking.journal import Journal
from noisyhealth.tracking.store import Store

# What the processes of one sweep share: Hydra's launchers hand the environment on.
_NAME = "NOISYHEALTH_SWEEP"
_LEDGER = "NOISYHEALTH_LEDGER"
_PARENT = "NOISYHEALTH_PARENT"
_CELLS = "NOISYHEALTH_CELLS"

# After these no other cell could do better.
_ENDING = (BudgetError, RefusedError, JournalError)


@dataclass
class _Sweep:
    """What the process that started the sweep knows of it."""

    store: Store | None = None
    parent: str = ""
    planned: dict[str, str] = field(default_factory=dict)
    cache: str = ""
    bar: Any = None
    stop: Exception | None = None
    records: list[Record] = field(default_factory=list)


_sweep = _Sweep()


class _Stop(BaseException):
    """Leaves Hydra before any job: it turns an Exception of a callback into a warning and goes on."""


def main(conf: Path) -> int:
    """Run what the command line asks for and return the exit code.

    0: every cell is done. 1: some failed. 2: the command cannot be run. 130: interrupted.
    """
    os.environ[_NAME] = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{uuid4().hex[:6]}"
    os.environ[_LEDGER] = str(Path("multirun", os.environ[_NAME], "cells.jsonl").resolve())
    os.environ[loopback.OWNER] = str(os.getpid())
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        hydra.main(version_base="1.3", config_path=str(conf.resolve()), config_name="config")(job)()
    except _Stop:
        if _sweep.stop is not None:
            print(f"{type(_sweep.stop).__name__}: {_sweep.stop}", file=sys.stderr)
            return 2
    except KeyboardInterrupt:
        _close("KILLED")
        print("Interrupted. What is finished is kept; the same command goes on from here.", file=sys.stderr)
        return 130
    except SystemExit as stopped:
        if not any(record.status == KILLED for record in _records()):
            if _sweep.parent:  # a launcher gave up
                _close("FAILED")
                return 1
            return 0 if stopped.code in (0, None) else 2  # Hydra refused the command and has said why, or gave its help
        _close("KILLED")  # Lightning answers Ctrl-C during a fit by leaving the process
        return 130
    code = study.exit_code(_records())
    _close("FAILED" if code else "FINISHED")
    if reason := Ledger(Path(os.environ[_LEDGER])).stopped():
        print(f"Stopped: {reason}", file=sys.stderr)
    return code


def job(cfg: DictConfig) -> None:
    """Run one cell. An error is recorded and told, and does not keep other cells from running."""
    _prepare(cfg)
    ledger, name, key = Ledger(Path(os.environ[_LEDGER])), str(cfg.task.name), ""
    if ledger.stopped():
        return
    try:
        cell = settings.cell(cfg)
        name = cell.name
        asked = study.asked(cell)
        key = study.key(cell, asked)
        with FileLock(ledger.path.with_name(f"{key}.lock")):
            if any(record.key == key for record in ledger.read()):
                return  # the sweep names this cell twice: a baseline has no level
            budget = settings.budget(cfg, ledger.path.with_name("budget.sqlite"))
            record = experiment.run(
                cell, asked, key, budget=budget, parent=os.environ.get(_PARENT, ""), given=ledger.given()
            )
            ledger.add(record)
    except Exception as error:
        if isinstance(error, _ENDING):
            ledger.stop(str(error))
        else:
            _keep_traceback(ledger, name)
        record = Record(name, key, FAILED, error=f"{type(error).__name__}: {error}")
        ledger.add(record)
    except BaseException:
        ledger.add(Record(name, key, KILLED, error="interrupted"))
        raise
    _tell(record, len(ledger.read()))


class Before(Callback):
    """Checks every cell of a command before the first is run, and makes what they share."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        """Check the one cell."""
        with _stopping():
            todo = _plan([config])
        if not todo:
            raise _Stop

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Check the cells of a sweep; end here when there is nothing left to do."""
        with _stopping():
            jobs = _jobs(config)
            todo = jobs is None or _plan(jobs)
        if not todo:
            raise _Stop


@contextmanager
def _stopping() -> Iterator[None]:
    """End the command where something raises that says what is wrong with it."""
    try:
        yield
    except Exception as error:  # Hydra would make it a warning and start the cells
        if not isinstance(error, NoisyHealthError | HydraException | OmegaConfBaseException):
            traceback.print_exc()  # not one of those that say what to do: a bug, or a user's own part
        _sweep.stop = error
        raise _Stop from None


def _plan(configs: Sequence[DictConfig]) -> int:
    """Return how many cells are left to run, with the store made and the finished cells on record.

    Raises NoisyHealthError at the first cell that cannot be run.
    """
    _prepare(configs[0])
    cells = [settings.cell(config) for config in configs]
    if configs[0].plan:
        _tell_plan(cells)
        return 0
    limited = settings.budget(configs[0], Path()).usd is not None
    for model in _distinct(cells):
        model.check()
        if limited and model.price() is None:
            raise ConfigError(
                f"budget.usd is set, but no price of {model.label} is known: give "
                "prices.usd_per_million.MODEL={prompt: ..., reply: ...}, US dollars a million tokens"
            )
    for task in {cell.task.name: cell.task for cell in cells}.values():
        task.check()
    asked = [study.asked(cell) for cell in cells]
    whole = {study.key(cell, what): (cell, what) for cell, what in zip(cells, asked, strict=True)}
    keys = {key: cell for key, (cell, _) in whole.items()}
    store = cells[0].store
    done = store.finished(list(keys))
    _sweep.store, _sweep.cache = store, cells[0].cache
    _sweep.planned = {key: cell.name for key, cell in keys.items()}
    os.environ[_CELLS] = str(len(keys))
    if len(configs) > 1:
        again = f" ({len(configs) - len(keys)} more jobs name one of them again)" if len(configs) > len(keys) else ""
        print(f"{len(keys)} cells{again}: {len(done)} done before, {len(keys) - len(done)} to run.")
    builds = {what.build.folder: (cell.task.name, what.build) for cell, what in zip(cells, asked, strict=True)}
    for name, build in builds.values():
        print(show.kept(name, build.attrition))
    if len({build.hash for _, build in builds.values()}) > len({name for name, _ in builds.values()}):
        print("Not all cells of a task see the same texts: their settings differ in which texts they can keep.")
    if len(done) == len(keys):
        _sweep.records = [experiment.record(keys[k], k, REUSED, run) for k, run in done.items()]
        if len(configs) == 1:
            print(show.line(_sweep.records[0], 1, 1))
        return 0
    if len(configs) > 1:
        left = [pair for key, pair in whole.items() if key not in done]
        _ask_ahead(configs[0], [cell for cell, _ in left], [what for _, what in left])
        _sweep.parent = os.environ[_PARENT] = store.start(os.environ[_NAME], {"kind": "sweep"}, {"cells": len(keys)})
        _sweep.bar = tqdm(total=len(keys), unit="cell", disable=None, smoothing=0.1)
    return len(keys) - len(done)


def _ask_ahead(config: DictConfig, cells: Sequence[Cell], asked: Sequence[Asked]) -> None:
    """Ask the batches of all cells at once: one cell after the other, each could wait for a day."""
    ledger = Ledger(Path(os.environ[_LEDGER]))
    try:
        if given := calls.ask_ahead(cells, asked, settings.budget(config, ledger.path.with_name("budget.sqlite"))):
            ledger.give(given)
    except _ENDING as error:
        ledger.stop(str(error))


def _distinct(cells: Sequence[Cell]) -> list[Model]:
    """Return the models of the cells, those with the same settings once: two that differ may have one label."""
    found: list[Model] = []
    for cell in cells:
        if cell.model not in found:
            found.append(cell.model)
    return found


def _tell_plan(cells: Sequence[Cell]) -> None:
    """Print what the cells would ask, and one prompt of each task, whole."""
    asked = [study.asked(cell) for cell in cells]
    shown: set[str] = set()
    for cell, what in zip(cells, asked, strict=True):
        if cell.task.name not in shown:
            shown.add(cell.task.name)
            print(f"--- {cell.name}: what is asked of the first text\n{evidence.prompt(cell, what)}\n")
    show.plan(plan.lines(cells, asked, Journal(Path(cells[0].cache) / "journal.sqlite")))
    for model in _distinct(cells):
        try:
            model.check()
        except NoisyHealthError as error:
            print(f"Before it can run: {error}")


def _jobs(config: DictConfig) -> list[DictConfig] | None:
    """Return the configuration of every job of a sweep, None when a sweeper decides them as it goes."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser

    if not str(config.hydra.sweeper.get("_target_", "")).endswith("BasicSweeper"):
        return None
    loader = GlobalHydra.instance().config_loader()
    params = config.hydra.sweeper.get("params") or {}
    given = [f"{key}={value}" for key, value in params.items()] + list(config.hydra.overrides.task)
    overrides = OverridesParser.create(config_loader=loader).parse_overrides(given)
    [batch] = BasicSweeper.split_arguments(overrides, None)
    return [loader.load_sweep_config(config, list(job)) for job in batch]


def _prepare(cfg: DictConfig) -> None:
    """Fix what must be fixed before torch and mlflow are imported."""
    os.environ.setdefault("OMP_NUM_THREADS", str(cfg.threads))
    os.environ.setdefault("MKL_NUM_THREADS", str(cfg.threads))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if str(cfg.weights.name) == "embedded" and str(cfg.data.name) != "hub":
        os.environ.setdefault("HF_HUB_OFFLINE", "1")


def _keep_traceback(ledger: Ledger, name: str) -> None:
    with (ledger.path.parent / "errors.log").open("a", encoding="utf-8") as log:
        log.write(f"{name}\n{traceback.format_exc()}\n")


def _tell(record: Record, place: int) -> None:
    """Print a finished cell's line above the bar."""
    tqdm.write(show.line(record, place, int(os.environ.get(_CELLS, place))))
    sys.stdout.flush()
    if _sweep.bar is not None:
        _sweep.bar.update()


def _records() -> list[Record]:
    """Return what became of every planned cell, also of those that were not reached."""
    records = _sweep.records or Ledger(Path(os.environ[_LEDGER])).read()
    known = {record.key for record in records}
    return [*records, *(Record(name, key, MISSING) for key, name in _sweep.planned.items() if key not in known)]


def _close(status: str) -> None:
    """End the sweep's run and servers, and print its table."""
    if _sweep.bar is not None:
        _sweep.bar.close()
    if _sweep.cache:
        loopback.stop_all(_sweep.cache)
    if _sweep.store is not None and _sweep.parent:
        _sweep.store.end(_sweep.parent, status)
    if len(_sweep.planned) > 1:
        show.table(_records())


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
