"""The texts and answers of a run as tables that MLflow's own page shows: of Parquet files it shows nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from noisyhealth.analysis.flips import flips

ROWS = 200  # texts shown; the first ones, which are the same in every cell of a task
VARIANTS, PREDICTIONS = "variants.json", "predictions.json"
# MLflow shows a file as a table where this tag names it.
TAGS: Mapping[str, str] = MappingProxyType(
    {"mlflow.loggedArtifacts": json.dumps([{"path": name, "type": "table"} for name in (PREDICTIONS, VARIANTS)])}
)


def write(folder: Path) -> None:
    """Write both tables beside the Parquet files of a run, from these, in the format of `mlflow.log_table`.

    A table has at most `ROWS` texts, and a last row that says where the others are.
    """
    _write(folder / VARIANTS, "variants.parquet", _variants(_rows(folder / "variants.parquet")))
    _write(folder / PREDICTIONS, "predictions.parquet", _predictions(_rows(folder / "predictions.parquet")))


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def _write(path: Path, whole: str, rows: Sequence[Mapping[str, object]]) -> None:
    columns = list(rows[0]) if rows else []
    data = [[_cell(row[name]) for name in columns] for row in rows[:ROWS]]
    if len(rows) > ROWS:
        data.append([f"{len(rows) - ROWS:,} more texts in {whole}", *[""] * (len(columns) - 1)])
    path.write_text(json.dumps({"columns": columns, "data": data}, ensure_ascii=False), encoding="utf-8")


def _cell(value: object) -> object:
    """Return what a cell shows: MLflow sorts as text, and shows None as "null"."""
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else value


def _variants(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Return a row a text; what a run does not keep has no column."""
    return [
        {
            **_of(row, "id", "edited_words"),
            **({"changes": _changes(row["edits"])} if "edits" in row else {}),
            **_of(row, "disturbed", "original", "dose_words", "dose_characters"),
        }
        for row in rows
    ]


def _changes(edits: str) -> str:
    """Return the edits of a text in words.

    >>> _changes('[{"before": "pain", "after": "pian"}, {"before": "mild", "after": ""}]')
    'pain → pian; mild left out'
    """
    told = ((edit["before"], edit["after"]) for edit in json.loads(edits))
    return "; ".join(f"{before} → {after}" if after else f"{before} left out" for before, after in told)


def _predictions(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Return a row a text: what was right, what was answered before and after, and what became of the answer."""
    clean = [row for row in rows if row["version"] == "clean"]
    disturbed = [row for row in rows if row["version"] == "disturbed"]
    if not disturbed:
        return [_of(row, "id", "target", "value", "right", "outcome", "reply", "question", "text") for row in clean]
    values = [[str(row.get("value")) for row in half] for half in (clean, disturbed)]
    rights = [[float(row["right"]) for row in half] for half in (clean, disturbed)]
    found = flips(values[0], values[1], rights[0], rights[1])
    return [
        {
            **_of(after, "id", "target"),
            **_of_clean(before, "value"),
            **_of(after, "value"),
            "flip": str(flip),
            **_of_clean(before, "right"),
            **_of(after, "right", "outcome", "reply"),
            **_of_clean(before, "reply"),
            **_of(after, "question", "text"),
        }
        for before, after, flip in zip(clean, disturbed, found, strict=True)
    ]


def _of(row: Mapping[str, Any], *names: str) -> dict[str, object]:
    return {name: row[name] for name in names if name in row}


def _of_clean(row: Mapping[str, Any], name: str) -> dict[str, object]:
    return {f"clean_{name}": row[name]} if name in row else {}
