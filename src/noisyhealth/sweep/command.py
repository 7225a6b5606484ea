"""Hydra's side of a study: a command's cells, run one by one, and what became of them told at the end."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from uuid import uuid4

import hydra
import psutil
import yaml
from filelock import FileLock
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from tqdm import tqdm

from noisyhealth import experiment, fits, overrides, settings, study, unforeseen, usage
from noisyhealth.cell import Cell
from noisyhealth.errors import CallError, NoisyHealthError, StoreError
from noisyhealth.models.chat import loopback
from noisyhealth.study import FAILED, KILLED, MISSING, Ledger, Record
from noisyhealth.sweep import show
from noisyhealth.sweep.before import cell_of
from noisyhealth.sweep.processes import CELLS, ENDING, LEDGER, NAME, PARENT, SEARCH, SWEPT, Stop, begun, fix_threads
from noisyhealth.tracking import patience

GO_ON = "What is finished is kept; the same command goes on from here."
_DYING = 5.0  # seconds that workers have to end after a signal


def main(conf: Path) -> int:
    """Run what the command line asks for and return the exit code.

    0: every cell is done. 1: some failed. 2: the command cannot be run. 130: interrupted.
    """
    os.environ[NAME] = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{uuid4().hex[:6]}"
    os.environ[LEDGER] = str(Path("multirun", os.environ[NAME], "cells.jsonl").resolve())
    os.environ[SWEPT] = ""
    os.environ.pop(SEARCH, None)
    os.environ[loopback.OWNER] = str(os.getpid())
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises what it would tell in its own words
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        begun.line = overrides.Line.of(sys.argv[1:])
        if begun.line.help:
            print(usage.run(conf, begun.line.beside))
            raise Stop
        hydra.main(version_base="1.3", config_path=str(conf.resolve()), config_name="config")(job)()
    except Stop:
        if begun.stop is not None:
            return _refused(begun.stop)
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:  # the command cannot be read, a launcher gave up, or Hydra could not write its files
        told = error if begun.checked else overrides.explained(error, begun.line, conf)
        return _refused(told) if isinstance(told, NoisyHealthError) and not begun.checked else _gave_up(error)
    except SystemExit as stopped:
        if not any(record.status == KILLED for record in _records()):
            return 0 if stopped.code in (0, None) else 2  # Hydra refused an option and has said why, or gave its help
        return _interrupted()  # Lightning answers Ctrl-C during a fit by leaving the process
    code = study.exit_code(_records())
    if not _close("FAILED" if code else "FINISHED"):
        code = 1
    if reason := Ledger(Path(os.environ[LEDGER])).stopped():
        print(f"Stopped: {reason}", file=sys.stderr)
    return code


def _refused(error: Exception) -> int:
    print(unforeseen.told(error), file=sys.stderr)
    return 2


def _gave_up(error: Exception) -> int:
    with _noting():
        _keep_traceback(Ledger(Path(os.environ[LEDGER])), "the sweep")
    _close("FAILED")
    said = str(error).strip().partition("\n")[0]
    print(f"Stopped: {type(error).__name__}: {said}\n{GO_ON}", file=sys.stderr)
    return 1


def _interrupted() -> int:
    """End what a signal stopped; workers that it took along could not end their own runs."""
    _close("KILLED")
    psutil.wait_procs(psutil.Process().children(recursive=True), timeout=_DYING)
    if begun.store is not None:
        try:
            begun.store.bury("interrupted: its worker was stopped with the sweep")
        except StoreError as error:
            print(f"Runs of stopped workers cannot be marked now: {error}", file=sys.stderr)
    print(f"Interrupted. {GO_ON}", file=sys.stderr)
    return 130


def job(cfg: DictConfig) -> float | None:
    """Run one cell and return what hyperparameters are chosen by, None where nothing is fine-tuned.

    An error is recorded and told, and does not keep other cells from running; a search it ends, which has nothing to
    go by.
    """
    fix_threads(cfg)
    ledger, name, key = Ledger(Path(os.environ[LEDGER])), str(cfg.task.name), ""
    if reason := ledger.stopped():
        if SEARCH in os.environ:
            raise CallError(reason)
        return None
    try:
        cell = cell_of(cfg, HydraConfig.get().overrides.task)
        name = cell.name
        asked = study.asked(cell)
        key = study.key(cell, asked)
        # Two sweeps on one cache, or workers that outlived theirs, do not run a cell twice either.
        with FileLock(f"{cell.store.lock}.{key}"):
            if done := [record for record in ledger.read() if record.key == key]:
                return _objective(cell, done[0])  # the sweep names this cell twice: a baseline has no level
            budget = settings.budget(cfg, ledger.path.with_name("budget.sqlite"))
            record = experiment.run(
                cell, asked, key, budget=budget, parent=os.environ.get(PARENT, ""), given=ledger.given()
            )
            ledger.add(record)
        _tell(record, len(ledger.read()))
        chosen_by = _objective(cell, record)
        if chosen_by is not None and cell.ablation:
            tqdm.write(f"    validation score {chosen_by:.4f}")
        return chosen_by
    except Exception as error:
        record = Record(name, key, FAILED, error=f"{type(error).__name__}: {error}")
        with _noting():
            if isinstance(error, ENDING):
                ledger.stop(str(error))
            else:
                _keep_traceback(ledger, name)
            ledger.add(record)
        _tell(show.shortened(record, ledger.stopped()), len(ledger.read()))
        if SEARCH in os.environ:
            raise
        return None
    except BaseException:
        with _noting():
            if not any(record.key == key for record in ledger.read()):  # done, and interrupted on the way out
                ledger.add(Record(name, key, KILLED, error="interrupted"))
        raise


@contextmanager
def _noting() -> Iterator[None]:
    """Say where the sweep's own files cannot be written, and go on: the screen is told what they were to hold."""
    try:
        yield
    except OSError as error:
        tqdm.write(f"{error}: the sweep's own notes are not whole; see that the disk has room", file=sys.stderr)


def _objective(cell: Cell, record: Record) -> float | None:
    """Return the score on the validation texts, None where nothing was fitted."""
    fitted = record.run and "fit" in cell.model.signature()
    return fits.objective(cell.store.metrics(record.run)) if fitted else None


def _keep_traceback(ledger: Ledger, name: str) -> None:
    with (ledger.path.parent / "errors.log").open("a", encoding="utf-8") as log:
        log.write(f"{name}\n{traceback.format_exc()}\n")


def _tell(record: Record, place: int) -> None:
    """Print a finished cell's line above the bar."""
    tqdm.write(show.line(record, place, int(os.environ.get(CELLS, place))))
    sys.stdout.flush()
    if begun.bar is not None:
        begun.bar.update()


def _records() -> list[Record]:
    """Return what became of every planned cell, also of those that were not reached."""
    records = begun.records or Ledger(Path(os.environ[LEDGER])).read()
    known = {record.key for record in records}
    return [*records, *(Record(name, key, MISSING) for key, name in begun.planned.items() if key not in known)]


def _close(status: str) -> bool:
    """End the sweep's run and servers, and print its table; return whether the run could be ended."""
    if begun.bar is not None:
        begun.bar.close()
    if begun.cache:
        loopback.stop_all(begun.cache)
    best = _best()
    if Ledger(Path(os.environ[LEDGER])).stopped():
        patience.end()  # it may be the store that a worker has waited for in vain
    ended = True
    if begun.store is not None and begun.parent:
        try:
            if best:
                begun.store.tag(begun.parent, "mlflow.note.content", best)
            begun.store.end(begun.parent, status)
        except StoreError as error:
            ended = False
            print(f"The sweep's own run cannot be ended: {error}", file=sys.stderr)
    if len(records := _records()) > 1:
        stopped = Ledger(Path(os.environ[LEDGER])).stopped()
        show.table([show.shortened(record, stopped) for record in records])
    if best:
        print(best)
    return ended


def _best() -> str:
    """Return what a search found, "" where none was made."""
    found = Path(os.environ[LEDGER]).with_name("optimization_results.yaml")
    return show.best(yaml.safe_load(found.read_text(encoding="utf-8"))) if found.exists() else ""


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
