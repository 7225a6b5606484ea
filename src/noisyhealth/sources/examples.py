"""From rows to examples: cells become text, texts are mended, and what cannot be used says why."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from hashlib import sha256

from noisyhealth.errors import DataError
from noisyhealth.records import Example
from noisyhealth.sources.repair import REPAIRS, mend
from noisyhealth.sources.rows import Row, kind
from noisyhealth.sources.source import Columns, Read

_SURROGATE = re.compile("[\ud800-\udfff]")
_EXACT = 2**53  # up to here a float holds every whole number


def examples(
    rows: Iterable[Row], columns: Columns, *, task: str, origin: str, repair: Sequence[str] = ()
) -> Iterator[Read]:
    """Yield what each row gives; a label that `targets` does not name is another task's.

    Raises DataError for a missing column and a cell that is no text, and at the end when no row can be used or
    `targets` names a label that no row has, and rows have others: a misspelt one would leave texts out.
    """
    met: set[str] = set()
    counts: Counter[str] = Counter()
    for row in rows:
        cells = _cells(row, columns, task)
        met.add(cells["target"])
        read = _read(cells, columns, repair, row.repairs)
        counts[read.reason] += 1
        yield read
    _spelt(columns, met, origin)
    if not counts[""]:
        why = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count) or "it has no rows"
        raise DataError(f"{origin}: the file holds no text that can be used: {why}")


def used(columns: Columns) -> dict[str, str]:
    """Return the columns that are read, by what they hold."""
    optional = {"question": columns.question, "group": columns.group, "id": columns.id}
    return {"text": columns.text, "target": columns.target} | {k: v for k, v in optional.items() if v}


def _read(cells: Mapping[str, str], columns: Columns, repair: Sequence[str], marks: Sequence[str]) -> Read:
    """Return what a row gives. Labels that are mapped are not mended: `targets` names them as the file does."""
    mended = {role: mend(cells[role], repair) for role in cells if role in _mended(columns)}
    texts = {**cells, **{role: made.text for role, made in mended.items()}}
    done = {name for made in mended.values() for name in made.repairs}
    repairs = (*marks, *(name for name in REPAIRS if name in done))
    name = cells["id"] if columns.id else fingerprint(cells["text"])
    if reason := _reason(texts, columns):
        return Read(_known(name, {**texts, "target": cells["target"]}), repairs, reason)
    target = texts["target"] if columns.targets is None else columns.targets[texts["target"]]
    return Read(Example(name, texts["text"], target, texts.get("question", ""), texts.get("group", "")), repairs)


def _known(name: str, texts: Mapping[str, str]) -> Example:
    """Return what a row that cannot be used has; a text that is no Unicode text is not known."""
    text = "" if _SURROGATE.search(texts["text"]) else texts["text"]
    name, target, question, group = (
        _SURROGATE.sub("?", cell) for cell in (name, texts["target"], texts.get("question", ""), texts.get("group", ""))
    )
    return Example(name, text, target, question, group)


def _mended(columns: Columns) -> tuple[str, ...]:
    return ("text", "question", "target") if columns.targets is None else ("text", "question")


def _reason(texts: Mapping[str, str], columns: Columns) -> str:
    """Return why a row cannot be used, "" when it can."""
    if not texts["text"].strip():
        return "has no text"
    if any(_SURROGATE.search(cell) for cell in texts.values()):
        return "has characters that are no Unicode text"
    if not texts["target"].strip():
        return "has no target"
    if columns.targets is not None and texts["target"] not in columns.targets:
        return "has a target that is not mapped"
    return "has no id" if "id" in texts and not texts["id"].strip() else ""


def fingerprint(text: str) -> str:
    """Return the id of a text that has none of its own."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _spelt(columns: Columns, met: set[str], origin: str) -> None:
    unmet, unmapped = set(columns.targets or ()) - met, met - set(columns.targets or met) - {""}
    if unmet and unmapped:
        raise DataError(
            f"{origin}: targets maps {', '.join(sorted(unmet))}, which no row has in {columns.target!r}, and not "
            f"{', '.join(sorted(unmapped)[:20])}, which some have: is a label misspelt?"
        )


def _cells(row: Row, columns: Columns, task: str) -> dict[str, str]:
    """Return the cells that are read as text, by what they hold."""
    found = {}
    for role, column in used(columns).items():
        setting = f"data.source.columns.{task}.{role}"
        if column not in row.cells:
            raise DataError(
                f"{row.where}: no column {column!r}; it has {', '.join(map(str, row.cells))}: set {setting}"
            )
        text = _text(value := row.cells[column])
        if text is None:
            raise DataError(f"{row.where}: the column {column!r} holds {_kind(value)}, no text: set {setting}")
        found[role] = text
    return found


def _text(value: object) -> str | None:
    """Return a cell as text, a list's texts one a line, None for what has no text; numbers as JSON writes them.

    A whole number is written without a point: Parquet and pandas make 4.0 of a label 4 when a row has none.
    """
    match value:
        case str():
            return value
        case list() if all(isinstance(item, str) for item in value):
            return "\n".join(value)
        case float() if value.is_integer() and abs(value) <= _EXACT:
            return str(int(value))
        case bool() | int() | float():
            return "" if math.isnan(value) else json.dumps(value)  # NaN is how pandas writes an empty cell
        case Decimal() | date() | time():
            return str(value)
    return "" if value is None else None


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a list of other things than texts"
    return kind(value) if isinstance(value, dict) else f"a {type(value).__name__}"
