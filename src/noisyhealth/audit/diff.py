"""What differs between two runs, in words: settings, data, prompt, weights, code, machine, answers, numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from noisyhealth.audit.kept import KeptRun, Row
from noisyhealth.evidence import ENVIRONMENT
from noisyhealth.experiment import flat

_SHOWN = 10  # of many that differ, so many are told in full
_LONG = 90  # characters of a value


def differences(one: KeptRun, other: KeptRun) -> Iterator[tuple[str, list[str]]]:
    """Yield each aspect with its differences in words, none where both runs agree."""
    yield "settings", list(_values(flat(one.config), flat(other.config)))
    yield "data", list(_data(one, other))
    yield "prompt", list(_prompt(one, other))
    yield "weights and decoding", list(_values(flat(one.model["signature"]), flat(other.model["signature"])))
    tags = ("code_hash", "own_code", "git_commit", "git_dirty")
    yield "code", list(_values(_chosen(one.logged.tags, tags), _chosen(other.logged.tags, tags)))
    yield "machine and packages", list(_values(_environment(one), _environment(other)))
    yield "answers", list(_answers(one, other))
    yield "numbers", list(_numbers(one, other))


def _values(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(one.keys() | other.keys()):
        before, after = (_shown(values[name]) if name in values else "nothing" for values in (one, other))
        if one.get(name) != other.get(name):
            yield f"{name}: {before} → {after}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _chosen(values: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: values[name] for name in names if name in values}


def _environment(run: KeptRun) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.folder / ENVIRONMENT).read_text(encoding="utf-8"))
    return flat(found)


def _data(one: KeptRun, other: KeptRun) -> Iterator[str]:
    first, second = ({row["id"]: row for row in run.predictions if row["version"] == "clean"} for run in (one, other))
    both = first.keys() & second.keys()
    if alone := len(first.keys() ^ second.keys()):
        yield f"{alone} texts are in one run alone, {len(both)} in both"
    for name in ("text", "question", "target"):
        if changed := [key for key in first if key in both and first[key][name] != second[key][name]]:
            yield f"{len(changed)} examples have another {name}: {_ids(changed)}"
    disturbed = [{row["id"]: row["disturbed"] for row in run.variants} for run in (one, other)]
    if changed := [key for key in first if key in both and disturbed[0][key] != disturbed[1][key]]:
        yield f"{len(changed)} of {len(both)} texts were disturbed in another way: {_ids(changed)}"


def _prompt(one: KeptRun, other: KeptRun) -> Iterator[str]:
    if one.logged.tags.get("prompt_hash") != other.logged.tags.get("prompt_hash"):
        yield f"{one.logged.tags.get('prompt')} → {other.logged.tags.get('prompt')}: its wording differs (settings)"
    if one.model["shots"] != other.model["shots"]:
        yield f"other examples are shown: {', '.join(one.model['shots'])} → {', '.join(other.model['shots'])}"
    for version in ("clean", "disturbed"):
        first, second = (_asked(run, version) for run in (one, other))
        both = [key for key in first if key in second]
        # Other texts are told under "data": here, what was asked in place of the same.
        same = [key for key in both if first[key][0] == second[key][0]]
        if changed := [key for key in same if first[key][1] != second[key][1]]:
            yield f"{len(changed)} of {len(both)} {version} texts were asked in other words: {_ids(changed)}"


def _asked(run: KeptRun, version: str) -> dict[str, tuple[str, list[str]]]:
    """Return of each text how it came in, and what was asked in its place."""
    found = {row["id"]: (row["text"], list[str]()) for row in run.predictions if row["version"] == version}
    for row in run.calls:
        if row["version"] == version:
            found[row["id"]][1].append(row["text"])
    return found


def _answers(one: KeptRun, other: KeptRun) -> Iterator[str]:
    """Yield which examples got another answer, on the clean and on the disturbed text."""
    for version in ("clean", "disturbed"):
        first, second = (
            {row["id"]: row for row in run.predictions if row["version"] == version} for run in (one, other)
        )
        both = [key for key in first if key in second]
        changed = [key for key in both if _answer(first[key]) != _answer(second[key])]
        if changed:
            yield f"{len(changed)} of {len(both)} {version} texts got another answer:"
        yield from (f"  {key}: {_read(first[key])} → {_read(second[key])}" for key in changed[:_SHOWN])
        if len(changed) > _SHOWN:
            yield f"  and {len(changed) - _SHOWN} more"


def _answer(row: Row) -> tuple[str, str]:
    return row["value"], row["outcome"]


def _read(row: Row) -> str:
    value = _shown(row["value"]) if row["outcome"] == "scored" else row["outcome"]
    return (
        f"{value} ({'right' if row['right'] == 1 else 'wrong' if row['right'] == 0 else format(row['right'], '.2f')})"
    )


def _numbers(one: KeptRun, other: KeptRun) -> Iterator[str]:
    first, second = one.logged.metrics, other.logged.metrics
    for name in sorted(first.keys() | second.keys()):
        before, after = first.get(name), second.get(name)
        if before != after and not name.startswith("seconds"):
            yield f"{name}: {_number(before)} → {_number(after)}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _ids(keys: list[str]) -> str:
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return ", ".join(keys[:_SHOWN]) + more
