"""A study in one archive: runs, replies, datasets and report, to be checked on a machine that has none of them.

manifest.json             the hashes of all that follows
runs/RUN.json             what MLflow said of a run; runs/RUN/ has its files
others.json               what MLflow said of the sweeps, and of the cells that did not finish
journal.jsonl             every reply as it arrived, with all that was asked
datasets/HASH/            the texts, all their variants and splits
report/                   the report, where there is one

Of runs that keep no texts (`tracking.keep_text=false`) neither replies nor datasets are packed, which hold the texts.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from noisyhealth import manifest, version
from noisyhealth.audit.kept import KeptRun, Logged
from noisyhealth.dataset import table
from noisyhealth.dataset.table import Build
from noisyhealth.errors import DataError
from noisyhealth.evidence import PREDICTIONS
from noisyhealth.records import Reply
from noisyhealth.tracking.journal import Journal

RUNS, OTHERS, JOURNAL, DATASETS, REPORT = "runs", "others.json", "journal.jsonl", "datasets", "report"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same study gives the same archive


@dataclass(frozen=True)
class Bundle:
    """An archive that was unpacked into a folder."""

    folder: Path

    def differences(self) -> Iterator[str]:
        """Yield in words what is not as it was packed."""
        yield from manifest.differences(self.folder)
        for path in sorted((self.folder / DATASETS).glob("*")):
            yield from _dataset(path)

    def runs(self) -> Iterator[KeptRun]:
        """Yield the runs in the order of their names.

        Raises DataError where one cannot be read.
        """
        for path in sorted((self.folder / RUNS).glob("*.json")):
            try:
                logged = Logged(**json.loads(path.read_text(encoding="utf-8")))
            except (TypeError, ValueError) as error:
                raise DataError(f"{RUNS}/{path.name} does not describe a run: {error}") from error
            yield KeptRun(path.stem, path.with_suffix(""), logged)

    def others(self) -> dict[str, Logged]:
        """Return what MLflow said of the runs that have no files here, by their ids.

        Raises DataError where that cannot be read.
        """
        try:
            listed = json.loads((self.folder / OTHERS).read_text(encoding="utf-8"))
            return {run: Logged(**logged) for run, logged in listed.items()}
        except (AttributeError, OSError, TypeError, ValueError) as error:
            raise DataError(f"{OTHERS} does not list runs: {error}") from error

    def replies(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return the kept replies among the keys."""
        return {key: self._journal[key] for key in keys if key in self._journal}

    @cached_property
    def _journal(self) -> dict[str, Reply]:
        rows = map(json.loads, (self.folder / JOURNAL).read_text(encoding="utf-8").splitlines())
        return {row["key"]: Reply(**row["reply"]) for row in rows}


def _dataset(folder: Path) -> Iterator[str]:
    """Yield where a dataset's texts and splits are not those of its hash."""
    import pyarrow.parquet as pq

    digest, build = sha256(), Build(folder)
    try:
        build.check()
        for part in pq.ParquetFile(folder / table.TABLE).iter_batches():
            for line in table.example_lines(part):
                digest.update(line)
    except (DataError, OSError, ValueError) as error:
        yield f"{DATASETS}/{folder.name}: {error}"
        return
    if digest.hexdigest()[:16] != build.hash:
        yield f"{DATASETS}/{folder.name}: its texts and splits do not give its hash {build.hash}"


def pack(
    study: str, runs: Iterable[KeptRun], others: Mapping[str, Logged], cache: Path, report: Path, scratch: Path
) -> Path:
    """Write a study's archive into an empty folder and return its path.

    `others`: runs without files, by their ids. `report`: a folder that may not be there.
    """
    folder = scratch / study
    (folder / RUNS).mkdir(parents=True)
    keys: set[str] = set()
    tables: set[str] = set()
    for run in runs:
        shutil.copytree(run.folder, folder / RUNS / run.id)
        _json(folder / RUNS / f"{run.id}.json", run.logged.plain())
        if run.logged.tags.get("keep_text") == "false":
            continue
        if (run.folder / PREDICTIONS).exists():
            keys |= {row["reply_key"] for row in run.calls}
        if (run.folder / table.FACTS).exists():
            tables.add(Build(run.folder).facts["table"])
    _json(folder / OTHERS, {run: logged.plain() for run, logged in others.items()})
    _journal(folder / JOURNAL, Journal(cache / "journal.sqlite"), keys)
    _datasets(folder / DATASETS, cache, tables)
    if (report / manifest.NAME).exists():
        shutil.copytree(report, folder / REPORT)
    manifest.write(folder, {"study": study, "code": version.of()})
    return _zipped(folder, scratch / f"{study}.zip")


def _journal(path: Path, journal: Journal, keys: set[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        if journal.path.exists():
            for row in journal.rows(keys):
                file.write(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n")


def _datasets(folder: Path, cache: Path, tables: set[str]) -> None:
    for facts in sorted(cache.glob(f"datasets/*/{table.FACTS}")):
        if (build := Build(facts.parent)).facts["table"] in tables:
            shutil.copytree(build.folder, folder / build.folder.name)


def _json(path: Path, whole: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False), encoding="utf-8")


def _zipped(folder: Path, to: Path) -> Path:
    with ZipFile(to, "w", ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = ZipInfo(path.relative_to(folder).as_posix(), _LONG_AGO)
            info.compress_type = ZIP_DEFLATED
            with path.open("rb") as source, archive.open(info, "w") as target:
                shutil.copyfileobj(source, target)
    return to


def unpack(archive: Path, scratch: Path) -> Bundle:
    """Return an archive's content, unpacked into an empty folder.

    Raises DataError for a file that is no such archive, and for one with a file that would leave the folder.
    """
    try:
        with ZipFile(archive) as opened:
            names = opened.namelist()
            for name in names:
                if not (scratch / name).resolve().is_relative_to(scratch.resolve()):
                    raise DataError(f"{archive}: its file {name!r} would be written outside; it is not unpacked")
            for name in names:
                opened.extract(name, scratch)
    except (BadZipFile, OSError, ValueError) as error:
        raise DataError(f"{archive} cannot be unpacked: {error}") from error
    if not (scratch / manifest.NAME).exists():
        raise DataError(f"{archive} has no {manifest.NAME}: it was not made by `python -m noisyhealth bundle`")
    return Bundle(scratch)
