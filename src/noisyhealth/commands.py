"""The commands of `python -m noisyhealth`: each reads a configuration, as run.py does, and does one thing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from noisyhealth import paths, settings, show
from noisyhealth.audit import command as audit
from noisyhealth.dataset import build, export
from noisyhealth.dataset.table import Build
from noisyhealth.errors import NoisyHealthError


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code: 0 done, 2 it cannot be done; `verify` has 1 for a difference."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if strange := [word for word in rest if word.startswith("-")]:
        parser.error(f"unknown option {strange[0]}")
    options.settings += rest  # settings may stand before and after options
    try:
        if options.config_dir:
            options.settings.append(settings.search(options.config_dir))
        return int(options.command(options) or 0)
    except (NoisyHealthError, HydraException, OmegaConfBaseException) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m noisyhealth", description="Commands beside run.py and analyze.py.")
    groups = parser.add_subparsers(required=True, metavar="COMMAND")
    _dataset_commands(groups.add_parser("dataset", help="build or export the disturbed dataset"))
    check = _command(groups, "check", _check, "check that a perturbation keeps to the contract, and print its card")
    check.add_argument("--markdown", action="store_true", help="print the card as docs/perturbations.md has it")
    check.add_argument("--speed", type=float, default=1000.0, metavar="N", help="words a second it must reach (1000)")
    _settings(check, "perturb=..., and as for run.py: task=qa data=files ...")
    verify = _command(groups, "verify", _verify, "check a run, a study or an archive again, from what was kept")
    verify.add_argument("target", metavar="RUN|STUDY|ARCHIVE", help="a run's id, a study's name, or a file of `bundle`")
    verify.add_argument("--trust", action="store_true", help="run code of its author's that an archive's settings name")
    bundle = _command(groups, "bundle", _bundle, "pack a study into one file that `verify` reads anywhere")
    bundle.add_argument("study", metavar="STUDY")
    bundle.add_argument("--to", type=Path, default=Path("exports"), help="folder for the file")
    diff = _command(groups, "diff", _diff, "say in words what differs between two runs")
    diff.add_argument("runs", metavar="RUN", nargs=2)
    for command in (verify, bundle, diff):
        _settings(command, "where the runs are: tracking=server study=... cache=...")
    return parser


def _dataset_commands(parser: argparse.ArgumentParser) -> None:
    groups = parser.add_subparsers(required=True, metavar="build|export")
    build = _command(groups, "build", _build, "disturb every text at every level, once; print how many are kept")
    export = _command(groups, "export", _export, "write the dataset as Parquet and JSONL, with a dataset card")
    export.add_argument("--to", type=Path, default=Path("exports"), help="folder; each task gets one in it")
    for command in (build, export):
        _settings(command, "as for run.py: task=qa data=files seed=1 ...")


def _command(groups: Any, name: str, command: Callable[[argparse.Namespace], Any], what: str) -> Any:
    added = groups.add_parser(name, help=what, description=what)
    added.set_defaults(command=command)
    return added


def _settings(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("settings", nargs="*", metavar="SETTING", help=what)
    command.add_argument(
        "--config-dir", type=Path, metavar="DIR", help="a folder with settings of your own (docs/extend.md)"
    )


def _check(options: argparse.Namespace) -> int:
    from noisyhealth.contract import card, command

    found = []
    for one in command.cards(options.settings, least=options.speed):
        print(f"## {one.name}\n\n{card.markdown(one)}\n" if options.markdown else card.plain(one), flush=True)
        found.append(one.found.holds)
    return 0 if all(found) else 1


def _verify(options: argparse.Namespace) -> int:
    return int(audit.verify(options.target, _place(options.target, options.settings), trust=options.trust))


def _bundle(options: argparse.Namespace) -> None:
    made = audit.pack(_place(options.study, options.settings), options.to)
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB. To check it anywhere: python -m noisyhealth verify {made}")


def _diff(options: argparse.Namespace) -> None:
    one, other = options.runs
    audit.compare(one, other, _place("", options.settings))


def _place(study: str, given: Sequence[str]) -> audit.Place:
    """Return where runs are looked for; a study may be named as the target or as a setting."""
    [cfg] = settings.compose(settings.CONF, given)
    if study and not audit.is_archive(study) and not any(one.startswith("study=") for one in given):
        cfg.study = study
    return audit.Place.of(cfg)


def _build(options: argparse.Namespace) -> None:
    for made in _builds(options.settings):
        show.attrition(made.facts["task"], made.attrition)
        show.realised(made.facts["realised"])
        print(f"content {made.facts['content'][:16]}, examples and splits {made.hash}\n{made.folder}\n")


def _export(options: argparse.Namespace) -> None:
    paths.checked_folder("--to", options.to)
    for made in _builds(options.settings):
        folder = options.to / made.facts["task"]
        export.export(made, folder)
        print(f"{made.attrition.kept:,} texts of task {made.facts['task']}: {folder}")


def _builds(given: Sequence[str]) -> list[Build]:
    """Return the builds that the settings name, one a task."""
    configured = settings.compose(settings.CONF, given)
    return [build.load(settings.design(cfg), str(paths.checked_folder("cache", cfg.cache))) for cfg in configured]
