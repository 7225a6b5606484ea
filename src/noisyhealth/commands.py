"""The commands of `python -m noisyhealth`: each reads a configuration, as run.py does, and does one thing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from noisyhealth import settings, show
from noisyhealth.dataset import build, export
from noisyhealth.dataset.table import Build
from noisyhealth.errors import NoisyHealthError

_CONF = Path(__file__).parents[2] / "conf"


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code: 0 done, 2 it cannot be done."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if strange := [word for word in rest if word.startswith("-")]:
        parser.error(f"unknown option {strange[0]}")
    options.settings += rest  # settings may stand before and after options
    try:
        options.command(options)
    except (NoisyHealthError, HydraException, OmegaConfBaseException) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m noisyhealth", description="Commands beside run.py and analyze.py.")
    groups = parser.add_subparsers(required=True, metavar="COMMAND")
    dataset = groups.add_parser("dataset", help="build or export the disturbed dataset").add_subparsers(
        required=True, metavar="build|export"
    )
    for name, command, what in (
        ("build", _build, "disturb every text at every level, once; print how many are kept"),
        ("export", _export, "write the dataset as Parquet and JSONL, with a dataset card"),
    ):
        added = dataset.add_parser(name, help=what, description=what)
        added.add_argument(
            "settings", nargs="*", metavar="SETTING", help="as for run.py: task=qa data=files seed=1 ..."
        )
        added.set_defaults(command=command)
        if name == "export":
            added.add_argument("--to", type=Path, default=Path("exports"), help="folder; each task gets one in it")
    return parser


def _build(options: argparse.Namespace) -> None:
    for made in _builds(options.settings):
        show.attrition(made.facts["task"], made.attrition)
        show.realised(made.facts["realised"])
        print(f"content {made.facts['content'][:16]}, examples and splits {made.hash}\n{made.folder}\n")


def _export(options: argparse.Namespace) -> None:
    for made in _builds(options.settings):
        folder = options.to / made.facts["task"]
        export.export(made, folder)
        print(f"{made.attrition.kept:,} texts of task {made.facts['task']}: {folder}")


def _builds(given: Sequence[str]) -> list[Build]:
    """Return the builds that the settings name, one a task."""
    return [build.load(settings.design(cfg), str(cfg.cache)) for cfg in settings.compose(_CONF, given)]
