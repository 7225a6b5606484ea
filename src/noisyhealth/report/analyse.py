"""`analyze.py`: the runs of a study become a report: a folder, a summary on the terminal, a run in MLflow."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig
from omegaconf.errors import OmegaConfBaseException

from noisyhealth import manifest, overrides, paths, settings, study, unmeant, usage, version
from noisyhealth.errors import ConfigError, DataError, NoisyHealthError
from noisyhealth.report.clock import Clock

if TYPE_CHECKING:
    from noisyhealth.report.build import Built
    from noisyhealth.tracking.store import Store

_EXAMPLES = 8_000_000  # bytes of examples in a page, at first
_PAGE = 15_000_000  # bytes of a page


@dataclass(frozen=True)
class Options:
    """What may be chosen. `grid`: as `completeness.problems` expects it; `log`: also as a run in MLflow."""

    out: Path
    grid: Mapping[str, Sequence[str]]
    allow_incomplete: bool = False
    log: bool = True


def main(conf: Path) -> int:
    """Analyse what the command line names and return the exit code: 0, or 2 where nothing can be analysed."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises what it would tell in its own words
    begun = False

    def analysed(cfg: DictConfig) -> None:
        nonlocal begun
        begun = True
        _analyse(cfg)

    try:
        line = overrides.Line.of(sys.argv[1:])
        if line.help:
            print(usage.analyse(conf))
            return 0
        if line.several:  # else one report would be written before what is wrong with the next is known
            overrides.refuse_several(line)
        hydra.main(version_base="1.3", config_path=str(conf.resolve()), config_name="analyze")(analysed)()
    except _Stopped as stopped:
        told = stopped.args[0]
    except ConfigError as error:
        told = error
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        if begun:
            raise
        told = overrides.explained(error, line, conf, "analyze")
    else:
        return 0
    print(f"{type(told).__name__}: {told}", file=sys.stderr)
    return 2


class _Stopped(BaseException):
    """Carries an error past Hydra, which would print its traceback."""


def _analyse(cfg: DictConfig) -> None:
    try:
        unmeant.check(cfg, overrides.read(HydraConfig.get().overrides.task))
        allow, log = (_switch(name, cfg[name]) for name in ("allow_incomplete", "log"))
        grid = {str(name): _names(f"grid.{name}", given) for name, given in cfg.grid.items() if given is not None}
        store = settings.store(cfg)  # says first what is wrong with the study, which `out` may be named after
        analyse(store, Options(paths.checked_folder("out", cfg.out), grid, allow, log))
    except NoisyHealthError as error:
        raise _Stopped(error) from None


def _switch(name: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise ConfigError(f"{name}={given!r} is neither true nor false")
    return given


def _names(name: str, given: Any) -> list[str]:
    """Return the names of a list; a single name is a list of one."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, ListConfig) or not given:
        raise ConfigError(f"{name}={given!r} is no list of names: give {name}=[a,b], or null for what the runs have")
    return [str(one) for one in given]


def analyse(store: Store, options: Options) -> None:
    """Write the report of a study to a folder, print its main tables, and log it.

    The folder is touched last, so that a report that cannot be made leaves an earlier one as it was.
    Raises what `build.build` does.
    """
    from noisyhealth.report import build, files, logged, show

    if not store.exists():
        raise DataError(study.unknown(store))
    if names := store.bury():
        print(f"Marked KILLED, since their process vanished: {', '.join(names)}.")
    clock = Clock()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        built = build.build(store, folder, options.grid, allow_incomplete=options.allow_incomplete, clock=clock)
        _page(folder / "index.html", built)
        given = {"grid": dict(options.grid), "allow_incomplete": options.allow_incomplete}
        rests_on = {run.info.run_id: run.data.tags.get("manifest", "") for run in built.runs}
        manifest.write(folder, {"study": store.study, "code": version.of(), "settings": given, "runs": rests_on})
        clock.lap("figures and page")
        files.publish(folder, options.out)
        show.report(built.report)
        print(f"\n{len(built.runs)} runs, {len(built.scores)} scenarios.", end=" ")
        print(f"Report: {(options.out / 'index.html').resolve()}")
        if options.log:
            run = logged.log(store, built.report, built.runs, folder, given)
            print(f"MLflow: run {run} of the study {store.study!r}")
            clock.lap("logging")
    print(f"Seconds: {clock}")


def _page(path: Path, built: Built) -> None:
    """Write the page, with fewer examples where tables and figures leave them less room."""
    from noisyhealth.report import page

    room = _EXAMPLES
    while True:
        page.write(path, built.report, built.examples.items(room))
        if path.stat().st_size <= _PAGE or room < _EXAMPLES / 100:
            return
        room //= 2
