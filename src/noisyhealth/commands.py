"""The commands of `python -m noisyhealth`: each reads a configuration, as run.py does, and does one thing.

What a command needs is imported when it runs, so that help and wrong input are answered at once.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from noisyhealth.configuration import CONF
from noisyhealth.errors import ConfigError, NoisyHealthError

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from noisyhealth.audit.command import Place
    from noisyhealth.dataset.table import Build

_ABOUT = """\
Commands beside run.py, which runs cells, and analyze.py, which analyses a study.

A SETTING is NAME=VALUE, as for run.py: perturb=typo, task=qa,condition, data.split.test=100.
Exit codes: 0 done; 1 the answer is no (`verify`, `status`, `show` say what); 2 it cannot be done."""


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong with a command line in one line, with the nearest command."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and leave with exit code 2."""
        from noisyhealth.overrides import nearest

        if found := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
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
        options.settings += rest  # settings may stand before and after options
    try:
        return int(options.command(options) or 0)
    except NoisyHealthError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m noisyhealth", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    listed = _command(groups, "list", _list, "list what can be chosen: every group, each choice with its sentence")
    listed.add_argument("group", nargs="?", metavar="GROUP", help="one group alone, as perturb or experiment")
    _beside(listed)
    shown = _command(groups, "show", _show, "show one text disturbed, its edits marked")
    shown.add_argument("--text", required=True, help="the text; - reads it from standard input")
    _settings(shown, "what disturbs it: perturb=typo level=mid; commas show several")
    planned = _command(groups, "plan", _plan, "print what cells would ask and cost, and ask nothing: run.py plan=true")
    check = _command(groups, "check", _check, "check that a perturbation keeps to the contract, and print its card")
    check.add_argument("--markdown", action="store_true", help="print the card as docs/perturbations.md has it")
    check.add_argument("--speed", type=float, default=1000.0, metavar="N", help="words a second it must reach (1000)")
    _settings(check, "perturb=..., and as for run.py: task=qa data=files ...")
    _settings(planned, "the cells, as for run.py -m: model=gpt perturb=typo level=low,mid,high")


def _study_commands(groups: Any) -> None:
    status = _command(groups, "status", _status, "say what has become of every cell of a study")
    status.add_argument("study", metavar="STUDY")
    verify = _command(groups, "verify", _verify, "check a run, a study or an archive again, from what was kept")
    verify.add_argument("target", metavar="RUN|STUDY|ARCHIVE", help="a run's id, a study's name, or a file of `bundle`")
    verify.add_argument("--trust", action="store_true", help="run code of its author's that an archive's settings name")
    diff = _command(groups, "diff", _diff, "say in words what differs between two runs")
    diff.add_argument("runs", metavar="RUN", nargs=2)
    bundle = _command(groups, "bundle", _bundle, "pack a study into one file that `verify` reads anywhere")
    bundle.add_argument("study", metavar="STUDY")
    bundle.add_argument("--to", type=Path, default=Path("exports"), help="folder for the file")
    for command in (status, verify, diff, bundle):
        _settings(command, "where the runs are: tracking=server study=... cache=...")
    ui = _command(groups, "ui", _ui, "open MLflow's pages on this machine, and say where each study is")
    ui.add_argument("--port", type=int, default=5000)
    ui.add_argument("--store", type=Path, default=Path("mlflow.db"), help="SQLite file of the runs")
    ui.add_argument("--artifacts", type=Path, default=Path("mlruns"), help="folder of their files")


def _dataset_commands(parser: argparse.ArgumentParser) -> None:
    groups = parser.add_subparsers(required=True, metavar="build|export")
    build = _command(groups, "build", _build, "disturb every text at every level, once; print how many are kept")
    export = _command(groups, "export", _export, "write the dataset as Parquet and JSONL, with a dataset card")
    export.add_argument("--to", type=Path, default=Path("exports"), help="folder; each task gets one in it")
    for command in (build, export):
        _settings(command, "as for run.py: task=qa data=files seed=1 ...")


def _command(groups: Any, name: str, command: Callable[[argparse.Namespace], Any], what: str) -> Any:
    added = groups.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    added.set_defaults(command=command)
    return added


def _settings(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("settings", nargs="*", metavar="SETTING", help=what)
    _beside(command)


def _beside(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config-dir", metavar="DIR", help="folder of your own groups, as for run.py")


def _list(options: argparse.Namespace) -> None:
    from noisyhealth import catalogue

    found = catalogue.groups(CONF, options.config_dir)
    for group, choices in (catalogue.only(found, options.group) if options.group else found).items():
        print(f"{group}=")
        for choice in choices:
            print(f"  {choice.name:<14} {choice.sentence}{' (yours)' if choice.own else ''}".rstrip())


def _show(options: argparse.Namespace) -> int:
    text = sys.stdin.read().rstrip("\n") if options.text == "-" else options.text
    if not text.strip():
        raise ConfigError(f"--text {options.text!r} holds no words: give the text to disturb")
    configured = _composed(options)
    from noisyhealth import marked  # loads what disturbs texts, which a setting that is wrong need not wait for

    reached = [marked.show(cfg, text) for cfg in configured]
    return int(not all(reached))


def _plan(options: argparse.Namespace) -> int:
    from noisyhealth import sweep

    beside = ["--config-dir", options.config_dir] if options.config_dir else []
    sys.argv = ["run.py", "-m", *beside, *options.settings, "plan=true"]
    return sweep.main(CONF)


def _status(options: argparse.Namespace) -> int:
    from noisyhealth import status

    store = _place(options.study, options).store
    return int(not status.show(store.study, status.of(store)))


def _check(options: argparse.Namespace) -> int:
    from noisyhealth import settings
    from noisyhealth.contract import card, command

    own = [settings.search(Path(options.config_dir))] if options.config_dir else []
    found = []
    for one in command.cards([*options.settings, *own], least=options.speed):
        print(f"## {one.name}\n\n{card.markdown(one)}\n" if options.markdown else card.plain(one), flush=True)
        found.append(one.found.holds)
    return 0 if all(found) else 1


def _verify(options: argparse.Namespace) -> int:
    from noisyhealth.audit import command as audit

    return int(audit.verify(options.target, _place(options.target, options), trust=options.trust))


def _bundle(options: argparse.Namespace) -> None:
    from noisyhealth.audit import command as audit

    made = audit.pack(_place(options.study, options), options.to)
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB. To check it anywhere: python -m noisyhealth verify {made}")


def _diff(options: argparse.Namespace) -> None:
    from noisyhealth.audit import command as audit

    one, other = options.runs
    audit.compare(one, other, _place("", options))


def _place(study: str, options: argparse.Namespace) -> Place:
    """Return where runs are looked for; a study may be named as the target or as a setting."""
    from noisyhealth.audit import command as audit

    cfg = _one(options)
    if study and not audit.is_archive(study) and not any(one.startswith("study=") for one in options.settings):
        cfg.study = study
    return audit.Place.of(cfg)


def _composed(options: argparse.Namespace) -> list[DictConfig]:
    from noisyhealth import settings

    return settings.compose(CONF, options.settings, options.config_dir)


def _one(options: argparse.Namespace) -> DictConfig:
    if len(configured := _composed(options)) > 1:
        raise ConfigError(f"{' '.join(options.settings)} names {len(configured)} places: name one")
    return configured[0]


def _build(options: argparse.Namespace) -> None:
    from noisyhealth import show

    for made in _builds(options):
        show.attrition(made.facts["task"], made.attrition)
        show.realised(made.facts["realised"])
        print(f"content {made.facts['content'][:16]}, examples and splits {made.hash}\n{made.folder}\n")


def _export(options: argparse.Namespace) -> None:
    from noisyhealth import paths
    from noisyhealth.dataset import export

    paths.checked_folder("--to", options.to)
    for made in _builds(options):
        folder = options.to / made.facts["task"]
        export.export(made, folder)
        print(f"{made.attrition.kept:,} texts of task {made.facts['task']}: {folder}")


def _builds(options: argparse.Namespace) -> list[Build]:
    """Return the builds that the settings name, one a task."""
    from noisyhealth import paths, settings
    from noisyhealth.dataset import build

    configured = _composed(options)
    return [build.load(settings.design(cfg), str(paths.checked_folder("cache", cfg.cache))) for cfg in configured]


def _ui(options: argparse.Namespace) -> None:
    from noisyhealth.tracking import ui

    ui.serve(options.store, options.artifacts, options.port)


def _completion(options: argparse.Namespace) -> None:
    from noisyhealth import completion

    if options.shell == "bash":
        print(completion.BASH)
    else:
        print("\n".join(completion.words(options.line, _names())))


def _names() -> list[str]:
    [groups] = [action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return list(groups.choices)
