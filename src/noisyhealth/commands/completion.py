"""Shell completion: what may stand at the end of a command line, and the lines of bash that ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from noisyhealth import catalogue
from noisyhealth.configuration import CONF

# bash cuts words at = and :, so the part of a word before the last of them is not given back.
BASH = r"""
_noisyhealth() {
    local line="${COMP_LINE:0:COMP_POINT}" word head
    if [[ "$line" != *" -m noisyhealth"* && "$line" != *run.py* && "$line" != *analyze.py* ]]; then
        COMPREPLY=($(compgen -o default -- "$2"))
        return
    fi
    word="${line##*[[:space:]]}"
    head=""
    [[ "$word" == *[=:]* && "$COMP_WORDBREAKS" == *"="* ]] && head="${word%"${word##*[=:]}"}"
    local IFS=$'\n'
    COMPREPLY=($("$1" -m noisyhealth completion words "$line" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$head"}")
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *= ]] && compopt -o nospace 2>/dev/null
}
complete -o default -F _noisyhealth python python3 .venv/bin/python
"""

_STUDIES = ("verify", "bundle", "status")
_FIRST = {"dataset": ("build", "export"), "completion": ("bash",)}  # what stands first behind a command
_SCRIPTS = {"run.py": ("--help", "--multirun", "--config-dir", "--cfg"), "analyze.py": ("--help", "--cfg")}


def words(line: str, commands: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the words that the last, unfinished word of a command line may become.

    `commands` are those of `python -m noisyhealth`, each with its options; one of two words is "dataset build".
    """
    given = line.split()
    word = "" if line[-1:].isspace() or not given else given.pop()
    script = next((name for name in _SCRIPTS if any(Path(one).name == name for one in given)), "")
    if script:
        options = [*_SCRIPTS[script], *(_settings(word, given) if script == "run.py" else _analysis(word))]
    else:
        after = given[given.index("noisyhealth") + 1 :] if "noisyhealth" in given else []
        options = _of(after, word, commands, given)
    return [one for one in options if one.startswith(word)]


def _of(after: Sequence[str], word: str, commands: Mapping[str, Sequence[str]], given: Sequence[str]) -> list[str]:
    """Return what may follow the words of a command of `python -m noisyhealth`."""
    if not after:
        return [*dict.fromkeys(name.partition(" ")[0] for name in commands), "--help"]
    if word.startswith("-"):
        return list(commands.get(" ".join(after[:2]), commands.get(after[0], ())))
    if after[0] in _FIRST and len(after) == 1:
        return list(_FIRST[after[0]])
    if after[0] == "list":
        return list(catalogue.groups(CONF, _beside(given)))
    if after[0] in _STUDIES and len(after) == 1:
        return [*_studies(), *_settings(word, given)]
    return _settings(word, given)


def _settings(word: str, given: Sequence[str]) -> list[str]:
    """Return settings: the names of groups and of what they hold, or, behind a =, a group's choices."""
    groups = catalogue.groups(CONF, _beside(given))
    group, sign, values = word.partition("=")
    if sign:
        before, comma, _ = values.rpartition(",")
        taken = before.split(",")
        return [f"{group}={before}{comma}{one.name}" for one in groups.get(group, []) if one.name not in taken]
    chosen = dict(one.split("=", 1) for one in given if "=" in one)
    names = catalogue.settings(CONF, chosen)
    # Before its first dot, a word would have too many ends to choose from.
    return [*(f"{name}=" for name in groups), *(f"{name}=" for name in names if "." in word or "." not in name)]


def _beside(given: Sequence[str]) -> str | None:
    """Return the folder of the user's own groups that a command line names."""
    for at, one in enumerate(given):
        if one == "--config-dir" and at + 1 < len(given):
            return given[at + 1]
        if one.startswith("--config-dir="):
            return one.partition("=")[2]
    return None


def _analysis(word: str) -> list[str]:
    if word.startswith("study="):
        return [f"study={one}" for one in _studies()]
    return [f"{name}=" for name in ("study", "tracking", "grid.task", "grid.model", "grid.perturb", "grid.level")] + [
        "allow_incomplete=true",
        "log=false",
        "out=",
    ]


def _studies() -> list[str]:
    """Return the studies in this folder's own store."""
    from noisyhealth.tracking import ui

    return list(ui.studies(store)) if (store := Path("mlflow.db")).is_file() else []
