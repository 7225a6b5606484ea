"""What a command line sets, and what is wrong with it where Hydra refuses it, told with the nearest match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException
from rapidfuzz.distance import OSA

from noisyhealth.configuration import CONF, opened
from noisyhealth.errors import ConfigError

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

_LIKE = OSA.normalized_similarity  # an exchange of neighbours counts as one error
_NEAR = 0.6
LIST = "`python -m noisyhealth list` shows what there is"


@dataclass(frozen=True)
class Line:
    """A command line as Hydra reads it.

    `given`: its settings. `several`: commas make several jobs (-m). `beside`: the user's own folder of configuration.
    `help`: nothing but help is asked for.
    """

    given: Sequence[str]
    several: bool = False
    beside: str | None = None
    help: bool = False

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Line:
        """Return the line of a script that Hydra runs.

        Raises ConfigError for an option that Hydra does not know, for settings on both sides of an option, and for one
        that is given twice.
        """
        from hydra._internal.utils import get_args_parser

        known, rest = get_args_parser().parse_known_args(list(arguments))
        for word in rest:
            if word.startswith("-"):
                raise ConfigError(
                    f"there is no option {word}; --help shows those there are, and a setting has no dashes"
                )
            raise ConfigError(f"{word} stands behind an option that stands behind settings: put options first, as -m")
        once(known.overrides)
        return cls(known.overrides, known.multirun, known.config_dir, known.help)


def once(given: Sequence[str]) -> None:
    """Raise ConfigError for a setting that is given twice: Hydra takes the last without a word."""
    names = [setting.partition("=")[0].lstrip("+") for setting in given]
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        # Without the values: one may be a secret in the wrong place.
        raise ConfigError(
            f"{twice[0]} is given twice; leave one of them out (a shell takes {{a,b}} apart: quote the whole setting)"
        )


def read(given: Sequence[str]) -> list[Override]:
    """Return settings as Hydra understands them; raises its OverrideParseException."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    return OverridesParser.create().parse_overrides(list(given))


def explained(error: Exception, line: Line, conf: Path = CONF, name: str = "config") -> Exception:
    """Return what is wrong with a command line in words, for an error of Hydra's; any other error as it is.

    `name` is the primary configuration, in the folder `conf`.
    """
    if isinstance(error, OverrideParseException):
        return ConfigError(_unread(error))
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options is not None:
        group, _, choice = error.missing_cfg_file.rpartition("/")
        return ConfigError(f"{group}={choice}: {no_choice(group, choice, sorted(error.options))}")
    if isinstance(error, OmegaConfBaseException | HydraException | ValueError):
        try:
            return ConfigError(_cause(line, conf, name) or _told(error))
        except ConfigError as found:
            return found
        except Exception:  # the same fault again, met while its cause was looked for
            return ConfigError(_told(error))
    return error


def _unread(error: OverrideParseException) -> str:
    """Return why a word of a command line is no setting."""
    if error.override.endswith(","):
        return f"{error.override!r} ends with a comma: give values without blanks between them, as level=low,mid"
    if "=" not in error.override:
        return f"{error.override!r} has no =: give NAME=VALUE without blanks, as study=demo"
    return (
        f"{error.override!r} cannot be read: give NAME=VALUE, and quote a value that has blanks, commas, brackets, "
        f"= or quotes: 'NAME=\"VALUE\"' ({_first(error)})"
    )


def no_choice(group: str, choice: str, options: Sequence[str]) -> str:
    """Return that a group has no such choice, which is nearest, and which there are.

    >>> no_choice("model", "gtp", ["gpt", "llama"])
    "there is no model 'gtp', did you mean gpt? There are gpt, llama"
    """
    return f"there is no {group} {choice!r}{meant(nearest(choice, options))} There are {', '.join(options)}"


def nearest(word: str, options: Sequence[str]) -> str:
    """Return the option that a misspelt word is nearest to, "" where none is near.

    A name without its place is near to the same name in any place.

    >>> nearest("hgih", ["low", "high"]), nearest("rate", ["level.rate", "seed"]), nearest("xyz", ["seed"])
    ('high', 'level.rate', '')
    >>> nearest("LLAMA", ["gpt", "llama"])
    'llama'
    """
    word = word.casefold()
    leaf = word.rpartition(".")[2]
    plain = {one: one.casefold() for one in options}
    same = [one for one in options if plain[one].rpartition(".")[2] == leaf]
    like = {one: max(_LIKE(word, name), _LIKE(leaf, name.rpartition(".")[2]) - 0.2) for one, name in plain.items()}
    close = [one for one in options if like[one] >= _NEAR]
    return next(iter([*sorted(same, key=len), *sorted(close, key=lambda one: -like[one])]), "")


def meant(near: str) -> str:
    """Return the question after a word that is not known."""
    return f", did you mean {near}?" if near else "."


def keys(config: DictConfig) -> list[str]:
    """Return the names of all settings, with those of the groups and mappings that hold them."""
    return list(_keys(OmegaConf.to_container(config, resolve=False), ""))


def _keys(node: Any, place: str) -> Iterator[str]:
    if isinstance(node, dict):
        for name, below in node.items():
            yield f"{place}{name}"
            yield from _keys(below, f"{place}{name}.")


def refuse_several(line: Line) -> None:
    """Raise ConfigError for a setting with several values, of a command that does one thing at a time."""
    if several := [one.input_line for one in read(line.given) if one.is_sweep_override()]:
        raise ConfigError(f"{several[0]} has several values: give one a command, and quote one that has a comma")


def _cause(line: Line, conf: Path, name: str) -> str:
    """Return what is wrong with the first of the settings that are, "" where it is not found."""
    from hydra import compose

    parsed = read(line.given)
    with opened(conf, line.beside) as loader:
        options = {one.key_or_group: sorted(loader.get_group_options(one.key_or_group)) for one in parsed}
        chosen = [one for one in parsed if options[one.key_or_group]]
        if wrong := _unchosen(chosen, options, compose(name, return_hydra_config=True)):
            return wrong
        usable = [one for one in chosen if not one.is_sweep_override() and not one.package]
        config = compose(name, [str(one.input_line) for one in usable], return_hydra_config=True)
    known = keys(config)
    for one in parsed:
        if one not in chosen and not one.is_add() and not one.is_force_add() and one.key_or_group not in known:
            key = one.key_or_group
            if other := _elsewhere(key, conf, line, name):
                return f"{one.input_line}: there is no setting {key!r} here; {other} has it"
            return f"{one.input_line}: there is no setting {key!r}{meant(nearest(key, known))} {LIST}"
        if one.is_sweep_override() and not line.several and not str(config.hydra.mode).endswith("MULTIRUN"):
            if name != "config":
                return f"{one.input_line} has several values: give one a command, and quote one that has a comma"
            return f"{one.input_line} has several values: add -m to run a cell for each; quote one that has a comma"
    return ""


def _unchosen(chosen: Sequence[Override], options: Mapping[str, Sequence[str]], plain: DictConfig) -> str:
    """Return what is wrong with the first choice that a group does not have, or whose group the script does not have.

    `plain`: the configuration where nothing is set.
    """
    for one in chosen:
        key = one.key_or_group
        for choice in _choices(one):
            if choice not in options[key]:
                return f"{one.input_line}: {no_choice(key, choice, options[key])}"
        if key not in plain.hydra.runtime.choices and not one.package and not one.is_add():
            return f"{one.input_line}: there is no setting {key!r} here{meant(nearest(key, keys(plain)))} {LIST}"
    return ""


def _choices(override: Override) -> list[str]:
    """Return the choices of a group that a setting names, those of a list one by one."""
    if override.is_range_sweep():
        return [str(one) for one in override.sweep_string_iterator()]
    listed = [value if isinstance(value, list) else [value] for value in values(override)]
    return [str(getattr(one, "text", one)) for value in listed for one in value if not isinstance(one, dict)]


def _elsewhere(key: str, conf: Path, line: Line, name: str) -> str:
    """Return the choice of a setting's group that has the setting, "" where none has."""
    from hydra import compose

    group = key.partition(".")[0]
    with opened(conf, line.beside) as loader:
        for choice in sorted(loader.get_group_options(group)):
            if key in keys(compose(name, [f"{group}={choice}"])):
                return f"{group}={choice}"
    return ""


def values(override: Override) -> list[Any]:
    """Return the values of a setting, one or several, without the quotes round them."""
    value = override.value()
    listed = getattr(value, "list", [value]) if override.is_sweep_override() else [value]
    return [getattr(one, "text", one) for one in listed or []]


def _first(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _told(error: BaseException) -> str:
    """Return the error in one sentence, with its cause where that says more."""
    if isinstance(error, ConfigAttributeError | ConfigKeyError) and error.key is not None:
        return f"the setting {error.full_key or error.key} is needed, and is not there: did ~ take it away?"
    cause = error.__cause__
    said = _first(error).removesuffix(", set env var HYDRA_FULL_ERROR=1 to see chained exception.")
    return f"{said}: {_first(cause)}" if cause and _first(cause) and _first(cause) not in said else said
