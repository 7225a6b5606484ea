"""The text of a dataset card: what a person must know to use an exported dataset."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from shlex import quote
from string import Template
from typing import Any

from noisyhealth.dataset.attrition import Attrition
from noisyhealth.dataset.described import HOW, joined
from noisyhealth.dataset.split import PROMPT, TEST, TRAIN, VALIDATION

SPLITS = (PROMPT, VALIDATION, TEST)


@dataclass(frozen=True)
class Held:
    """What the rows are: how many by `split` and `encoder_split`, and whether any has a question."""

    counts: Mapping[tuple[str, str], int]
    questions: bool

    def texts(self, split: str = "", encoder: str = "") -> int:
        """Return how many rows are in a split and in an `encoder_split`, "" for any."""
        return sum(n for (own, other), n in self.counts.items() if split in ("", own) and encoder in ("", other))


def card(facts: Mapping[str, Any], held: Held) -> str:
    """Return the text of README.md. `facts` are those of the build, without paths."""
    given = facts["perturbations"]
    filled = {name: facts[name] for name in ("task", "seed", "draw", "tagger", "content", "hash")}
    template = files("noisyhealth.data").joinpath("dataset_card.md").read_text(encoding="utf-8")
    return Template(template).substitute(
        filled,
        texts=f"{held.texts():,}",
        versions=sum(len(found["levels"]) for found in given.values()),
        names=joined(list(given)),
        levels=joined(list(dict.fromkeys(level for found in given.values() for level in found["levels"]))),
        origin=_origin(facts),
        licence=_licence(facts["licence"]),
        privacy="" if facts["source"] == "sample" else _PRIVACY,
        pos=", ".join(facts["valid_pos"]),
        protected=", ".join(facts["protected"]) or "none",
        disturbances="\n".join(_disturbance(facts, name) for name in given),
        asks="the question on the text" if held.questions else "empty: the task asks the same of every text",
        columns=joined([f"`{name}_{level}`" for name, found in given.items() for level in found["levels"]]),
        snippet=snippet(facts),
        rates=_rates(facts),
        kept=_kept(facts),
        splits=_splits(held),
        command=_command(facts),
        invented=_INVENTED if facts["source"] == "sample" else "",
    )


def snippet(facts: Mapping[str, Any]) -> str:
    """Return Python that makes a version of `row` from its edits."""
    name, given = next(iter(facts["perturbations"].items()))
    variant = f"{name}_{list(given['levels'])[len(given['levels']) // 2]}"
    return f"""\
text, edits = row["{given["field"]}"], row["{variant}_edits"]
for edit in reversed(edits):  # from the right, so that places to the left stay
    end = edit["start"] + len(edit["before"])
    text = text[: edit["start"]] + edit["after"] + text[end:]
assert text == row["{variant}"]"""


def percent(share: float) -> str:
    """Return a fraction as a percentage.

    >>> percent(0.125)
    '12.5 %'
    """
    return f"{100 * share:.1f} %"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> str:
    r"""Return a table in Markdown, the first `left` columns set to the left and the others to the right.

    >>> print(table(("level", "texts"), [("low", "1,200"), ("a|b", "7")], left=1))
    | level | texts |
    |---|---:|
    | low | 1,200 |
    | a\|b | 7 |
    """
    rule = "".join("---|" if at < left else "---:|" for at in range(len(heads)))
    lines = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
    return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}", *lines])


def _origin(facts: Mapping[str, Any]) -> str:
    task, name = facts["task"], facts["source"]
    source = _settings(facts, "source", "source")
    if name == "sample":
        return "The sample texts of noisyhealth, all invented by language-model assistants under rules written by hand."
    if file := _of(source.get("paths"), task):
        return f"Texts from the file `{file}` of whoever built this dataset."
    if repo := _of(source.get("repos"), task):
        revision = _of(source.get("revisions"), task) or "the newest when it was built"
        return f"Texts from all splits of the dataset `{repo}` (revision: {revision})."
    return f"Texts from the source `{name}`."


def _licence(stated: str) -> str:
    if not (stated := escape(stated.strip(), quote=False)):
        return _NOT_STATED
    family, *parts = stated.lower().split("-")
    if family == "cc0":
        return f"**Licence: {stated}**, no rights reserved, neither for the texts nor for their disturbed versions."
    terms = [_TERMS[part] for part in parts if part in _TERMS] if family == "cc" else []
    asked = joined(terms) or "read its terms before you share this folder"
    return f"**Licence: {stated}** by the source; disturbed versions are adaptations, so it binds them too: {asked}."


def _disturbance(facts: Mapping[str, Any], name: str) -> str:
    """Return what a disturbance does, by the class that makes it, or by its name where that is not known."""
    given, change = facts["perturbations"][name], _settings(facts, "keep", name, "change")
    kind = str(change.get("_target_", name)).rpartition(".")[2].lower()
    how = HOW[kind](change) if kind in HOW else "See `settings` in `build.json`."
    levels = joined([f"{level} {percent(rate)}" for level, rate in given["levels"].items()])
    unit = _UNITS.get(given["unit"], given["unit"])
    nested = "a higher level contains the edits of a lower one" if given["nested"] else "each level is drawn anew"
    means = f"Levels: {levels} of {unit} of the {given['field']}; {nested}{_CHOSEN.get(given['words'], '')}."
    return f"- **{escape(name, quote=False)}.** {how} {means}"


def _rates(facts: Mapping[str, Any]) -> str:
    def row(name: str, level: str, found: Mapping[str, Any]) -> tuple[str, ...]:
        unit = facts["perturbations"][name]["unit"].replace("_", " ")
        shares = (percent(found[part]) for part in ("words", "valid_words", "characters"))
        distance, medical = f"{found['edit_distance']:,.1f}", percent(found["medical"])
        return name, level, f"{percent(found['rate'])} of {unit}", f"{found['texts']:,}", *shares, distance, medical

    heads = ("disturbance", "level", "asked", "texts", "words", "valid words", "characters", "edit distance", "medical")
    found = facts["realised"].items()
    return table(heads, (row(name, level, means) for name, levels in found for level, means in levels.items()), left=3)


def _kept(facts: Mapping[str, Any]) -> str:
    found = Attrition.of(facts["attrition"]).rows()
    rows = ((what.strip() if what.startswith(" ") else f"**{what}**", why, f"{texts:,}") for what, texts, why in found)
    return table(("texts that are ...", "others", "number"), rows, left=2)


def _splits(held: Held) -> str:
    encoder = (TRAIN, VALIDATION, TEST)
    rows = (
        (f"`{split}`" if split else "all", *(f"{held.texts(split, other):,}" for other in ("", *encoder)))
        for split in (*SPLITS, "")
    )
    return table(("`split`", "texts", *(f"`encoder_split` {name}" for name in encoder)), rows, left=1)


def _command(facts: Mapping[str, Any]) -> str:
    """Return the command that builds the dataset, as far as the settings of every source go."""
    task, source = facts["task"], _settings(facts, "source")
    given = {"task": task, "data": source.get("name", facts["source"]), "seed": facts["seed"], "draw": facts["draw"]}
    for key in ("paths", "repos", "revisions"):
        if value := _of(_of(source.get("source"), key), task):
            plain = re.fullmatch(r"[\w./-]+", value)
            given[f"data.source.{key}.{task}"] = value if plain else '"' + value.replace('"', r"\"") + '"'
    return " ".join(["python -m noisyhealth dataset build", *(quote(f"{key}={value}") for key, value in given.items())])


def _settings(facts: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return a part of the settings, empty where there is none."""
    found: Any = facts["settings"]
    for key in keys:
        found = _of(found, key)
    return found if isinstance(found, Mapping) else {}


def _of(mapping: Any, key: str) -> Any:
    return mapping.get(key) if isinstance(mapping, Mapping) else None


_CHOSEN = {"medical": "; medical words alone", "others": "; words alone that are no medical terms"}
_UNITS = {"words": "all words", "valid_words": "the words that may be disturbed", "chars": "all characters"}
# What parts of a Creative Commons licence ask of who passes texts on (https://creativecommons.org/licenses/).
_TERMS = {
    "by": "name the authors of the texts and say that they were changed",
    "nc": "use and share them for nothing commercial",
    "sa": "share them under this licence alone",
    "nd": "**do not share this folder**, since changed texts may not be passed on",
}
_NOT_STATED = """**Licence: not stated.** Before you share this folder, or anything made from it, find out under which
terms the texts may be used: their disturbed versions are adaptations of them, and noisyhealth gives no right to either.
Then build again with `data.source.licences`, or write the licence here."""
_PRIVACY = """

Texts, targets, `id` and `group` are as the source has them. Before you share this folder, make sure that none of them
names a person or points to one."""
_INVENTED = "\n- The texts are invented: they must not be cited, nor read as evidence for any treatment."

LINES = """\
The rows of `../data`, one JSON object a line, UTF-8. `load_dataset` of this folder gives them the same types, with one
exception: where all values of a column look like dates (2026-01-31), it takes them for dates. All else is in
`../README.md`.
"""
