"""What is checked, and made, before the first cell of a command is run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, read_write

from noisyhealth import calls, evidence, experiment, overrides, paths, plan, progress, settings, study, unmeant
from noisyhealth.cell import Cell
from noisyhealth.errors import ConfigError, NoisyHealthError
from noisyhealth.models.model import Model
from noisyhealth.study import PLANNED, REUSED, Asked, Ledger
from noisyhealth.sweep import jobs, processes, show
from noisyhealth.sweep.processes import CELLS, ENDING, LEDGER, NAME, PARENT, SEARCH, SWEPT, Stop, begun
from noisyhealth.tracking.journal import Journal
from noisyhealth.tracking.store import Store

AT_ONCE = 4  # cells that hydra/launcher=submitit_local runs where hydra.sweeper.max_batch_size says nothing

NO_TAGS: Mapping[str, str] = MappingProxyType({})


class Before(Callback):
    """Checks every cell of a command before the first is run, and makes what they share."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        """Check the one cell."""
        with _stopping():
            unmeant.check(config, jobs.overrides(config))
            todo = _plan([config])
        if not todo:
            raise Stop

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Check the cells of a sweep; end here when there is nothing left to do."""
        with _stopping():
            unmeant.check(config, jobs.overrides(config))
            _bound(config)
            os.environ[SWEPT] = " ".join(jobs.swept(config))
            known = jobs.of(config)
            todo = _open(config) if known is None else _plan(known)
        if not todo:
            raise Stop


def _bound(config: DictConfig) -> None:
    """Have submitit's local launcher start a few cells at a time: left alone it starts a process for each, at once."""
    local = str(config.hydra.launcher.get("_target_", "")).endswith(".LocalLauncher")
    if local and "max_batch_size" in config.hydra.sweeper and config.hydra.sweeper.max_batch_size is None:
        with read_write(config):
            config.hydra.sweeper.max_batch_size = AT_ONCE


@contextmanager
def _stopping() -> Iterator[None]:
    """End the command where something raises that says what is wrong with it."""
    try:
        yield
    except Exception as error:  # Hydra would make it a warning and start the cells
        begun.stop = overrides.explained(error, begun.line)
        raise Stop from None
    begun.checked = True


def _plan(configs: Sequence[DictConfig]) -> int:
    """Return how many cells are left to run, with the store made and the finished cells on record.

    Raises NoisyHealthError at the first cell that cannot be run.
    """
    processes.prepare(configs)
    cells = [cell_of(config, config.hydra.overrides.task) for config in configs]
    paths.made_folder("cache", cells[0].cache)
    if settings.switch(configs[0], "plan"):
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
    asked = [study.asked(cell) for cell in progress.steps(cells, "reading texts", unit="cell")]
    whole = {study.key(cell, what): (cell, what) for cell, what in zip(cells, asked, strict=True)}
    keys = {key: cell for key, (cell, _) in whole.items()}
    store = cells[0].store
    _bury(store)
    done = store.finished(list(keys))
    begun.cache = cells[0].cache
    begun.planned = {key: cell.name for key, cell in keys.items()}
    begun.cells = {tuple(config.hydra.overrides.task): cell for config, cell in zip(configs, cells, strict=True)}
    os.environ[CELLS] = str(len(keys))
    if len(configs) > 1:
        twice = len(configs) - len(keys)  # a baseline is the same at every level
        again = f" ({twice} more {'job names' if twice == 1 else 'jobs name'} one of them again)" if twice else ""
        print(f"{len(keys)} cells{again}: {len(done)} done before, {len(keys) - len(done)} to run.")
    builds = {what.build.folder: (cell, what) for cell, what in zip(cells, asked, strict=True)}
    for cell, what in builds.values():
        print(_kept(cell, what))
    if len({what.build.hash for _, what in builds.values()}) > len({cell.task.name for cell, _ in builds.values()}):
        print("Not all cells of a task see the same texts: their settings differ in which texts they can keep.")
    if len(done) == len(keys):
        begun.records = [experiment.record(keys[k], k, REUSED, run) for k, run in done.items()]
        if len(configs) == 1:
            print(show.line(begun.records[0], 1, 1))
        return 0
    if len(configs) > 1:
        left = [pair for key, pair in whole.items() if key not in done]
        _ask_ahead(configs[0], [cell for cell, _ in left], [what for _, what in left])
        _start(store, {"cells": len(keys)}, {"choices": json.dumps(_choices(cells))})
        begun.bar = progress.bar(len(keys), "cell")
    return len(keys) - len(done)


def _kept(cell: Cell, asked: Asked) -> str:
    return show.kept(cell.task.name, asked.build.attrition, len(asked.examples), cell.design.split.test)


def _bury(store: Store) -> None:
    """End the runs that a killed process left behind, and say so."""
    if names := store.bury():
        print(f"Marked KILLED, since their process vanished: {', '.join(names)}.")


def _choices(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Return what a sweep set out to run, so that an analysis knows what it lacks when the sweep never got there.

    Of each of the four, of the weights and of every factor its values, in the order in which they were given.
    """
    listed = {
        "weights": [cell.weights for cell in cells],
        "task": [cell.task.name for cell in cells],
        "model": [str(cell.model.signature()["model"]) for cell in cells],
        "perturb": [cell.perturb for cell in cells],
        "level": [cell.level for cell in cells if cell.rate] or ["none"],
        **{name: [dict(cell.factors)[name] for cell in cells] for name, _ in cells[0].factors},
    }
    return {name: list(dict.fromkeys(values)) for name, values in listed.items()}


def _start(store: Store, settings: Mapping[str, object], tags: Mapping[str, str] = NO_TAGS) -> None:
    """Start the sweep's run, which its cells stand under."""
    begun.store = store
    begun.parent = os.environ[PARENT] = store.start(os.environ[NAME], {"kind": "sweep", **tags}, settings)
    if begun.planned:
        with TemporaryDirectory() as folder:
            Path(folder, PLANNED).write_text(json.dumps(list(begun.planned.values()), ensure_ascii=False), "utf-8")
            store.log(begun.parent, {}, {}, Path(folder))


def _open(config: DictConfig) -> bool:
    """Begin a sweep whose sweeper chooses each cell by what came of the ones before.

    Raises NoisyHealthError when cells of its kind cannot be run, or have nothing to be chosen by.
    """
    sweeper = config.hydra.runtime.choices["hydra/sweeper"]
    first = jobs.shared(config)
    processes.prepare([first])
    if first.plan:
        raise ConfigError(f"plan=true: nobody knows before which cells hydra/sweeper={sweeper} will choose")
    cell = settings.cell(first)
    cell.model.check()
    cell.task.check()
    asked = study.asked(cell)
    if "fit" not in cell.model.signature():
        raise ConfigError(
            f"hydra/sweeper={sweeper} chooses settings by the score on the validation texts, and {cell.model.label} "
            "is not fine-tuned: use model=bluebert, or name the values and leave hydra/sweeper out"
        )
    # A mean over windows of a note depends on how it is cut and on how long an answer may be.
    unlike = set() if cell.task.labels else {"model.longest", "model.stride", "model.max_length"}
    chosen = jobs.chosen(config)
    if wrong := [key for key in chosen if not key.startswith("model.") or key in unlike]:
        raise ConfigError(
            f"hydra/sweeper={sweeper} would choose {', '.join(wrong)}, but scores on the validation texts can only be "
            f"compared over settings of the fit{f' other than {sorted(unlike)}' if unlike else ''}: fix it to one value"
        )
    os.environ[SEARCH] = sweeper
    _bury(cell.store)
    print(_kept(cell, asked))
    begun.cache = cell.cache
    _start(cell.store, {"sweeper": sweeper})
    return True


def _ask_ahead(config: DictConfig, cells: Sequence[Cell], asked: Sequence[Asked]) -> None:
    """Ask the batches of all cells at once: one cell after the other, each could wait for a day."""
    ledger = Ledger(Path(os.environ[LEDGER]))
    try:
        if given := calls.ask_ahead(cells, asked, settings.budget(config, ledger.path.with_name("budget.sqlite"))):
            ledger.give(given)
    except ENDING as error:
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
    for lacking in dict.fromkeys(_lacking(cells)):
        print(f"Before it can run: {lacking}")


def _lacking(cells: Sequence[Cell]) -> Iterator[str]:
    for model in _distinct(cells):
        try:
            model.check()
        except NoisyHealthError as error:
            yield str(error)


def cell_of(config: DictConfig, given: Sequence[str]) -> Cell:
    """Return the cell of one job of a command, the one that was checked where it was in this process.

    `given`: what was set for it.
    """
    if known := begun.cells.pop(tuple(given), None):
        return known
    swept = os.environ.get(SWEPT, "").split()
    # What a search tries is no ablation: its settings are drawn, and no value is met by every cell.
    factors = settings.NO_FACTORS if SEARCH in os.environ else jobs.factors(given, swept)
    return settings.cell(config, jobs.ablation(given, swept), factors)
