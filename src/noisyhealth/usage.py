"""The help of run.py and analyze.py; Hydra's own takes seconds to list the groups, and shows all settings at once."""

from __future__ import annotations

from pathlib import Path

from noisyhealth import catalogue

_RUN = """\
Run cells of the study: one, or with -m every combination of what commas name.

  python run.py model=llama perturb=typo level=mid
  python run.py -m model=gpt,llama,bluebert perturb=typo,homophone,redact level=low,mid,high

A SETTING is GROUP=CHOICE, or NAME=VALUE for any number in conf/. Groups and choices
(`python -m noisyhealth list` says what each choice is):

{groups}

plan=true prints what cells would ask and cost, and asks nothing.

options:
  -m, --multirun    run a cell for every combination of what commas name
  --config-dir DIR  folder of your own groups
  --cfg job         show all settings, and run nothing
  --hydra-help      show the options of Hydra, which reads the configuration

Exit codes: 0 all cells are done; 1 some are not; 2 the command cannot be run; 130 interrupted.
`python -m noisyhealth --help` shows the other commands."""

_ANALYSE = """\
Analyse the runs of a study: tables, figures and a page of them.

  python analyze.py study=demo
  python analyze.py study=demo 'grid.model=[gpt,llama]' allow_incomplete=true

A SETTING is NAME=VALUE:

{settings}

Exit codes: 0 done; 2 it cannot be done. `python -m noisyhealth --help` shows the other commands."""


def run(conf: Path, beside: str | None = None) -> str:
    """Return the help of run.py; `beside`: a folder of the user's own groups."""
    found = catalogue.groups(conf, beside)
    return _RUN.format(groups="\n".join(f"  {name}={','.join(one.name for one in found[name])}" for name in found))


def analyse(conf: Path) -> str:
    """Return the help of analyze.py, with its settings as their file explains them."""
    lines = (conf / "analyze.yaml").read_text(encoding="utf-8").partition("\nhydra:")[0].splitlines()
    own = lines[lines.index("") + 1 :]  # what stands above is which other files are read
    return _ANALYSE.format(settings="\n".join(f"  {line}" for line in own if line))
