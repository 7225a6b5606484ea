"""A built dataset as a folder that `datasets.load_dataset` reads and a hub takes as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from noisyhealth.dataset import table
from noisyhealth.dataset.card import LINES, SPLITS, Held, card
from noisyhealth.dataset.table import FACTS, TABLE, Build
from noisyhealth.errors import DataError

_ROWS = 256  # rows held at once, and of a row group
_PATHS = "paths"  # the key of settings whose values are files, absolute or not
_REPOS = "repos"  # that whose values are datasets of the hub, or folders
# SPDX ids in lower case that are a hub's `license` as they are (https://huggingface.co/docs/hub/repositories-licenses).
_SPDX = """
    afl-3.0 agpl-3.0 apache-2.0 artistic-2.0 bsd-2-clause bsd-3-clause bsl-1.0 cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0
    cc-by-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0
    cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cdla-permissive-1.0 cdla-permissive-2.0 cdla-sharing-1.0
    ecl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 gpl-2.0 gpl-3.0 isc lgpl-2.1 lgpl-3.0 mit mpl-2.0 ncsa ofl-1.1 osl-3.0
    postgresql unlicense wtfpl zlib"""
_LICENCES = {spdx: spdx for spdx in _SPDX.split()} | {"odc-by-1.0": "odc-by", "odbl-1.0": "odbl", "pddl-1.0": "pddl"}
_TYPES = {"double": "float64", "float": "float32"}  # Arrow's name: that of `datasets`


def export(build: Build, to: Path) -> None:
    """Write a build as Parquet and JSONL, a file a split, with its dataset card and its facts.

    Rows and their order are the build's; paths of this machine are written as file names. Raises DataError when
    `to` exists.
    """
    if to.exists() or to.is_symlink():
        raise DataError(f"{to} exists: remove it, or export to another folder (--to)")
    part = to.with_name(f"{to.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    for folder in ("data", "jsonl"):
        (part / folder).mkdir(parents=True)
    made = build.folder / TABLE
    facts = portable({name: value for name, value in build.facts.items() if name != "table"})  # of another file
    _write(made, part)
    (part / FACTS).write_text(json.dumps(facts, indent=2, ensure_ascii=False), encoding="utf-8")
    held, kinds = _held(made), features(pq.read_schema(made))
    name = f"{facts['task']}-{facts['content'][:12]}"
    named = licence(facts["licence"]) | {"language": ["en"]}
    about = _about(facts, held) | named | _loaded(name, "data/{}.parquet", kinds)
    (part / "README.md").write_text(_front(about) + card(facts, held), encoding="utf-8")
    # A card reads files of one kind only (https://github.com/huggingface/datasets/issues/6447).
    (part / "jsonl" / "README.md").write_text(
        _front(named | _loaded(name, "{}.jsonl", kinds)) + LINES, encoding="utf-8"
    )
    os.replace(part, to)


def portable(value: Any, of: str = "") -> Any:
    """Return settings with the name of a file or folder in place of its path on this machine.

    `of` is the key they stand under. Below `paths` every value is a path, below `repos` the name of a folder that is
    there; elsewhere it is a path when it is absolute, and deeper than the root.

    >>> portable({"paths": {"qa": "../ann/notes.csv"}, "answers": "/home/ann/.cache/datamuse.jsonl", "mask": "/?/"})
    {'paths': {'qa': 'notes.csv'}, 'answers': 'datamuse.jsonl', 'mask': '/?/'}
    """
    if isinstance(value, Mapping):
        return {key: portable(item, of if of in (_PATHS, _REPOS) else str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [portable(item, of) for item in value]
    if not isinstance(value, str):
        return value
    path = PureWindowsPath(value) if "\\" in value else PurePosixPath(value)
    own = of == _PATHS or (of == _REPOS and Path(value).is_dir()) or value.startswith(("~/", "file:"))
    own = own or (path.is_absolute() and len(path.parts) > 2)
    return (path.name or value) if own else value


def licence(stated: str) -> dict[str, str]:
    """Return a licence as a hub wants it.

    >>> licence("CC-BY-SA-3.0"), licence("ours (ask first)")
    ({'license': 'cc-by-sa-3.0'}, {'license': 'other', 'license_name': 'ours-ask-first'})
    """
    plain = stated.strip().lower()
    if plain in _LICENCES:
        return {"license": _LICENCES[plain]}
    name = re.sub(r"[^a-z0-9.]+", "-", plain).strip("-.")
    return {"license": "other", "license_name": name or "not-stated"}


def features(schema: pa.Schema) -> list[dict[str, Any]]:
    """Return the columns with their types as `dataset_info` wants them.

    >>> features(pa.schema({"id": pa.string(), "flags": pa.list_(pa.string())}))
    [{'name': 'id', 'dtype': 'string'}, {'name': 'flags', 'list': 'string'}]
    """
    return [{"name": field.name, **_kind(field.type)} for field in schema]


def _write(made: Path, part: Path) -> None:
    """Write the rows of each split, and the facts that the table carries."""
    known = json.loads((pq.read_schema(made).metadata or {}).get(b"noisyhealth", b"{}"))
    for split in SPLITS:
        with (part / "jsonl" / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as lines:
            table.write(part / "data" / f"{split}.parquet", _lined(_rows(made, split), lines), portable(known))


def _rows(made: Path, split: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one split in the table's order, gathered to whole row groups."""
    gathered: list[pa.RecordBatch] = []
    for read in pq.ParquetFile(made).iter_batches(_ROWS):
        gathered.append(read.filter(pc.equal(read.column("split"), split)))
        if sum(map(len, gathered)) >= _ROWS:
            yield pa.concat_batches(gathered)
            gathered = []
    if any(map(len, gathered)):
        yield pa.concat_batches(gathered)


def _lined(batches: Iterator[pa.RecordBatch], lines: TextIO) -> Iterator[pa.RecordBatch]:
    """Yield the batches on, each row written as a line of JSON."""
    for batch in batches:
        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
        yield batch


def _held(made: Path) -> Held:
    """Count the rows by their two splits, and tell whether any has a question."""
    counts: Counter[tuple[str, str]] = Counter()
    questions = False
    for read in pq.ParquetFile(made).iter_batches(columns=["split", "encoder_split", "question"]):
        counts.update(zip(read.column("split").to_pylist(), read.column("encoder_split").to_pylist(), strict=True))
        questions = questions or any(read.column("question").to_pylist())
    return Held(counts, questions)


def _about(facts: Mapping[str, Any], held: Held) -> dict[str, Any]:
    """Return what a hub shows and finds a dataset by."""
    names = list(facts["perturbations"])
    return {
        "pretty_name": f"noisyhealth {facts['task']}, disturbed: {', '.join(names)}",
        "task_categories": ["question-answering" if held.questions else "text-classification"],
        "tags": ["noisyhealth", "health", "medical", "robustness", "perturbation", *names],
    }


def _loaded(name: str, path: str, kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what `load_dataset` reads: a file a split, and the types of the columns.

    `name` is no other export's: `load_dataset` keeps what it has read under the names of folder and configuration.
    """
    files = [{"split": split, "path": path.format(split)} for split in SPLITS]
    return {
        "configs": [{"config_name": name, "default": True, "data_files": files}],
        "dataset_info": [{"config_name": name, "features": kinds}],
    }


def _front(matter: Mapping[str, Any]) -> str:
    return f"---\n{yaml.safe_dump(dict(matter), sort_keys=False, allow_unicode=True, width=120)}---\n\n"


def _kind(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(kind):
        inner = _kind(kind.value_type)
        return {"list": inner.get("struct") or inner.get("dtype") or inner}
    if pa.types.is_struct(kind):
        return {"struct": features(pa.schema(list(kind.fields)))}
    return {"dtype": _TYPES.get(str(kind), str(kind))}
