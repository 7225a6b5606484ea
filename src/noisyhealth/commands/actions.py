"""What each command of `python -m noisyhealth` does: it reads a configuration, as run.py does, and does one thing.

What a command needs is imported when it runs, so that help and wrong input are answered at once.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from noisyhealth.configuration import CONF
from noisyhealth.errors import ConfigError

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from noisyhealth.audit.command import Place
    from noisyhealth.dataset.table import Build


def list_choices(options: argparse.Namespace) -> None:
    """Print every group, each choice with its sentence."""
    from noisyhealth import catalogue

    found = catalogue.groups(CONF, options.config_dir)
    for group, choices in (catalogue.only(found, options.group) if options.group else found).items():
        print(f"{group}=")
        width = max((len(choice.name) for choice in choices), default=0)
        for choice in choices:
            print(f"  {choice.name:<{width}}  {choice.sentence}{' (yours)' if choice.own else ''}".rstrip())


def show_text(options: argparse.Namespace) -> int:
    """Print a text disturbed, its edits marked; 1 where a level cannot be reached."""
    text = _given() if options.text == "-" else options.text
    if not text.strip():
        raise ConfigError(f"--text {options.text!r} holds no words: give the text to disturb")
    configured = _composed(options)
    from noisyhealth.commands import (
        marked,  # loads what disturbs texts, which a setting that is wrong need not wait for
    )

    reached = [marked.show(cfg, text) for cfg in configured]
    return int(not all(reached))


def _given() -> str:
    """Return the text on standard input as it is, but for the end of its last line."""
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise ConfigError(f"--text -: what stands on standard input is not UTF-8: {error}") from None


def plan_cells(options: argparse.Namespace) -> int:
    """Print what cells would ask and cost."""
    from noisyhealth.sweep import command

    beside = ["--config-dir", options.config_dir] if options.config_dir else []
    sys.argv = ["run.py", "-m", *beside, *options.settings, "plan=true"]
    return command.main(CONF)


def show_status(options: argparse.Namespace) -> int:
    """Print what has become of every cell; 1 where one is not done."""
    from noisyhealth.commands import status

    store = _place(options.study, options).store
    return int(not status.show(store.study, status.of(store)))


def check_perturbations(options: argparse.Namespace) -> int:
    """Print the card of each perturbation; 1 where one breaks the contract."""
    from noisyhealth.contract import card, command

    found = []
    for one in command.cards(options.settings, options.config_dir, least=options.speed):
        print(f"## {one.name}\n\n{card.markdown(one)}\n" if options.markdown else card.plain(one), flush=True)
        found.append(one.found.holds)
    return 0 if all(found) else 1


def verify_kept(options: argparse.Namespace) -> int:
    """Check a run, a study or an archive again; 1 for a difference, 2 for what cannot be checked."""
    from noisyhealth.audit import command as audit

    place = _place(options.target, options)
    verdict = audit.verify(options.target, place, trust=options.trust)
    if audit.is_study(options.target):
        from noisyhealth.commands import status
        from noisyhealth.study import DONE

        found = status.of(place.store)
        if left := sum(one.status != DONE for one in found):
            told = f"{left} of {len(found)} cells are not done, which no check of runs can see"
            print(f"{told}: python -m noisyhealth status {place.store.study}")
    return int(verdict)


def bundle_study(options: argparse.Namespace) -> None:
    """Pack a study into an archive."""
    from noisyhealth import paths
    from noisyhealth.audit import command as audit

    paths.checked_folder("--to", options.to)
    made = audit.pack(_place(options.study, options), options.to)
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB. To check it anywhere: python -m noisyhealth verify {made}")


def diff_runs(options: argparse.Namespace) -> None:
    """Print what differs between two runs."""
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


def build_datasets(options: argparse.Namespace) -> None:
    """Build the disturbed texts of each task, and print how many are kept."""
    from noisyhealth.sweep import show

    for made in _builds(options):
        show.attrition(made.facts["task"], made.attrition)
        show.realised(made.facts["realised"])
        print(f"{len(made.test):,} of them tested; the others are for prompts and training")
        print(f"content {made.facts['content'][:16]}, examples and splits {made.hash}\n{made.folder}\n")


def export_datasets(options: argparse.Namespace) -> None:
    """Write the disturbed texts of each task."""
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


def open_ui(options: argparse.Namespace) -> None:
    """Serve MLflow's pages until Ctrl-C."""
    from noisyhealth.tracking import ui

    ui.serve(options.store, options.artifacts, options.port)
