"""The command line of `python -m noisyhealth`: which commands there are, and what each takes."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from noisyhealth import unforeseen
from noisyhealth.commands import actions

_ABOUT = """\
Commands beside run.py, which runs cells, and analyze.py, which analyses a study.

A SETTING is NAME=VALUE, as for run.py: perturb=typo, task=qa,condition, data.split.test=100.
Exit codes: 0 done; 1 the answer is no (`verify`, `status`, `show` say what); 2 it cannot be done."""


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong with a command line in one line, with the nearest command."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and leave with exit code 2."""
        from noisyhealth.overrides import nearest

        strange = r"argument (?:COMMAND|build.export): invalid choice: '(.*)' \(choose from (.*)\)"
        if found := re.search(strange, message):
            near = nearest(found[1], re.findall(r"'([^']+)'", found[2]))
            message = f"there is no command {found[1]!r}{f', did you mean {near}?' if near else ''}"
        self.exit(2, f"{self.prog}: {message}; --help shows what there is\n")


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code: 0 done, 1 the answer is no, 2 it cannot be done."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if strange := [word for word in rest if word.startswith("-")]:
        parser.error(f"unknown option {strange[0]}")
    if rest and not hasattr(options, "settings"):
        parser.error(f"{rest[0]!r} is one word too many")
    if rest:
        options.settings = [*options.settings, *rest]  # settings may stand before and after options
    try:
        code = int(options.command(options) or 0)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        print(unforeseen.told(error), file=sys.stderr)
        return 2
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m noisyhealth", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"noisyhealth {version('noisyhealth')}")
    groups = parser.add_subparsers(required=True, metavar="COMMAND")
    _looking_commands(groups)
    _study_commands(groups)
    _dataset_commands(groups.add_parser("dataset", help="build or export the disturbed texts", description="Datasets."))
    completion = _command(
        groups, "completion", _completion, 'print what makes bash complete: eval "$(... completion bash)"'
    )
    completion.add_argument("shell", choices=["bash", "words"], metavar="bash")
    completion.add_argument("line", nargs="?", default="", help=argparse.SUPPRESS)
    return parser


def _looking_commands(groups: Any) -> None:
    listed = _command(
        groups, "list", actions.list_choices, "list what can be chosen: every group, each choice with its sentence"
    )
    listed.add_argument("group", nargs="?", metavar="GROUP", help="one group alone, as perturb or experiment")
    _beside(listed)
    shown = _command(groups, "show", actions.show_text, "show one text disturbed, its edits marked")
    shown.add_argument("--text", required=True, help="the text; - reads it from standard input")
    _settings(shown, "what disturbs it: perturb=typo level=mid; commas show several")
    planned = _command(
        groups, "plan", actions.plan_cells, "print what cells would ask and cost, and ask nothing: run.py plan=true"
    )
    check = _command(
        groups,
        "check",
        actions.check_perturbations,
        "check that a perturbation keeps to the contract, and print its card",
    )
    check.add_argument("--markdown", action="store_true", help="print the card as docs/perturbations.md has it")
    check.add_argument("--speed", type=_speed, default=1000.0, metavar="N", help="words a second it must reach (1000)")
    _settings(check, "perturb=..., and as for run.py: task=qa data=files ...")
    planned.add_argument("-m", "--multirun", action="store_true", help=argparse.SUPPRESS)  # as it stands behind run.py
    _settings(planned, "the cells, as for run.py -m: model=gpt perturb=typo level=low,mid,high")


def _study_commands(groups: Any) -> None:
    status = _command(groups, "status", actions.show_status, "say what has become of every cell of a study")
    status.add_argument("study", metavar="STUDY")
    verify = _command(
        groups, "verify", actions.verify_kept, "check a run, a study or an archive again, from what was kept"
    )
    verify.add_argument("target", metavar="RUN|STUDY|ARCHIVE", help="a run's id, a study's name, or a file of `bundle`")
    verify.add_argument("--trust", action="store_true", help="run code of its author's that an archive's settings name")
    diff = _command(groups, "diff", actions.diff_runs, "say in words what differs between two runs")
    diff.add_argument("runs", metavar="RUN", nargs=2)
    bundle = _command(groups, "bundle", actions.bundle_study, "pack a study into one file that `verify` reads anywhere")
    bundle.add_argument("study", metavar="STUDY")
    bundle.add_argument("--to", type=Path, default=Path("exports"), help="folder for the file")
    for command in (status, verify, diff, bundle):
        _settings(command, "where the runs are: tracking=server study=... cache=...")
    ui = _command(groups, "ui", actions.open_ui, "open MLflow's pages on this machine, and say where each study is")
    ui.add_argument("--port", type=_port, default=5000)
    ui.add_argument("--store", type=Path, default=Path("mlflow.db"), help="SQLite file of the runs")
    ui.add_argument("--artifacts", type=Path, default=Path("mlruns"), help="folder of their files")


def _dataset_commands(parser: argparse.ArgumentParser) -> None:
    groups = parser.add_subparsers(required=True, metavar="build|export")
    build = _command(
        groups, "build", actions.build_datasets, "disturb every text at every level, once; print how many are kept"
    )
    export = _command(
        groups, "export", actions.export_datasets, "write the dataset as Parquet and JSONL, with a dataset card"
    )
    export.add_argument("--to", type=Path, default=Path("exports"), help="folder; each task gets one in it")
    for command in (build, export):
        _settings(command, "as for run.py: task=qa data=files seed=1 ...")


def _port(given: str) -> int:
    if not 0 < (port := int(given)) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{given} is no port: give 1 to 65535")
    return port


def _speed(given: str) -> float:
    if not (speed := float(given)) >= 0:
        raise argparse.ArgumentTypeError(f"{given} is no speed: give words a second, 0 or more")
    return speed


def _command(groups: Any, name: str, command: Callable[[argparse.Namespace], Any], what: str) -> Any:
    added = groups.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    added.set_defaults(command=command)
    return added


def _settings(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("settings", nargs="*", default=[], metavar="SETTING", help=what)
    _beside(command)


def _beside(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config-dir", metavar="DIR", help="folder of your own groups, as for run.py")


def _names(parser: argparse.ArgumentParser, before: str = "") -> dict[str, list[str]]:
    """Return the options of every command; of a command of commands those of each."""
    found: dict[str, list[str]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                options = [text for one in below._actions for text in one.option_strings if text.startswith("--")]
                found |= _names(below, f"{name} ") or {f"{before}{name}": options}
    return found


def _completion(options: argparse.Namespace) -> None:
    from noisyhealth.commands import completion

    if options.shell == "bash":
        print(completion.BASH)
    else:
        print("\n".join(completion.words(options.line, _names(_parser()))))
