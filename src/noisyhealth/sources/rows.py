"""The rows of a file, whatever its kind, one after the other."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from noisyhealth.errors import DataError
from noisyhealth.sources.repair import BYTE_ORDER_MARK

_WHOLE_FIELD = 2**31 - 1  # characters; csv stops at 131,072 unless told
_BATCH = 1024  # rows of Parquet held at a time
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row by column; `where` names file and row, `repairs` what was mended in reading."""

    where: str
    cells: Mapping[str, object]
    repairs: tuple[str, ...] = ()


def rows(path: Path, wanted: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a file, by its ending. `wanted`: the columns that will be read.

    Raises DataError, with the row where there is one, for a file that is not what its ending says.
    """
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty: was it written to its end?")
    with path.open("rb") as file:
        marks = (BYTE_ORDER_MARK,) if file.read(3) == b"\xef\xbb\xbf" else ()
    try:
        for row in _by_ending(path, wanted):
            yield replace(row, repairs=marks) if marks else row
            marks = ()
    except UnicodeDecodeError:
        raise DataError(_not_utf8(path)) from None


def kind(value: object) -> str:
    """Return what a value of JSON is called in a message."""
    return _KINDS.get(type(value), "a number")


def _by_ending(path: Path, wanted: Sequence[str]) -> Iterator[Row]:
    match path.suffix.lower():
        case ".csv":
            return _table(path, wanted, ",")
        case ".tsv":
            return _table(path, wanted, "\t")
        case ".jsonl":
            return _lines(path)
        case ".json":
            return _document(path)
        case ".parquet":
            return _parquet(path, wanted)
        case other:
            raise DataError(f"{path}: cannot read {other!r} files; give CSV, TSV, JSONL, JSON or Parquet")


def _table(path: Path, wanted: Sequence[str], separator: str) -> Iterator[Row]:
    csv.field_size_limit(_WHOLE_FIELD)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator, strict=True)
        header: list[str] = []
        while True:
            where = f"{path}, line {reader.line_num + 1}"
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise DataError(f"{where}: {_not_csv(error)}") from None
            if not header:
                _once(header := cells, wanted, path)
            elif len(cells) == len(header):
                yield Row(where, dict(zip(header, cells, strict=True)))
            elif cells:  # a blank line is no row
                raise DataError(
                    f"{where}: {len(cells)} cells, but the header has {len(header)} columns ({', '.join(header)}): "
                    f"put quotes round a cell that holds {separator!r}, a quote or a line break"
                )


def _not_csv(error: csv.Error) -> str:
    if "unexpected end" in str(error):
        return (
            'a quote that opens in this row is not closed, so the rest of the file is one cell: close it, or write ""'
        )
    return f'not CSV ({error}): write a quote inside quotes as ""'


def _once(names: Sequence[str], wanted: Sequence[str], path: Path) -> None:
    """Raise DataError when a wanted column stands there twice: nobody knows which is meant."""
    if twice := [name for name, count in Counter(names).items() if count > 1 and name in wanted]:
        raise DataError(f"{path}: the column {twice[0]!r} stands there {names.count(twice[0])} times: rename one")


def _lines(path: Path) -> Iterator[Row]:
    # Lines end at \n alone: a JSON string may hold other line separators of Unicode.
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                where = f"{path}, line {number}"
                hint = "give one object a line, or end the name of one whole document in .json"
                try:
                    yield Row(where, _object(_parsed(line), where, hint))
                except (ValueError, RecursionError) as error:
                    raise DataError(f"{where}: not JSON ({error}): {hint}") from None


def _document(path: Path) -> Iterator[Row]:
    """Yield the objects of a list, or those of an object with their names as the column "key" (PubMedQA)."""
    try:
        whole = _parsed(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise
    except json.JSONDecodeError as error:
        hint = "; is it one object a line? Then end its name in .jsonl" if error.msg == "Extra data" else ""
        raise DataError(f"{path}, line {error.lineno}: not JSON ({error}){hint}: mend it there") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON that can be read ({error}): mend it") from None
    hint = "give a list of objects, or an object of objects"
    if isinstance(whole, list):
        for number, item in enumerate(whole, 1):
            yield Row(where := f"{path}, row {number}", _object(item, where, hint))
    else:
        for key, item in _object(whole, str(path), hint).items():
            yield Row(where := f"{path}, key {key!r}", {"key": key, **_object(item, where, hint)})


def _parsed(text: str) -> object:
    parsed: object = json.loads(text, object_pairs_hook=_unique)
    return parsed


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object. Raises ValueError for a name that stands in it twice: `json` would keep the last."""
    if len(made := dict(pairs)) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the name {twice!r} stands twice in one object")
    return made


def _object(value: object, where: str, hint: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise DataError(f"{where}: {kind(value)}, not an object: {hint}")
    return value


def _parquet(path: Path, wanted: Sequence[str]) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _once(names, wanted, path)
            # With one missing, all are read, so that the message can name them.
            only = list(wanted) if set(wanted) <= set(names) else None
            for batch in file.iter_batches(_BATCH, columns=only):
                for cells in batch.to_pylist():
                    number += 1
                    yield Row(f"{path}, row {number}", cells)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, after row {number}: not UTF-8 ({error}): write the column as text") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}, after row {number}: not Parquet that can be read ({error}): write it anew") from None


def _not_utf8(path: Path) -> str:
    """Return the message for the first line that is not UTF-8."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return f"{path}, line {number}: not UTF-8 ({error}): save the file as UTF-8"
    raise AssertionError(f"{path} changed while it was read")
