"""Code of the user's own: which files settings name code of, and that no result of other code is taken for theirs."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from noisyhealth import own_code, settings

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write files into a folder of the user's that Python finds: `write(**{"mine.py": "..."})`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def wrote(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        own_code._read.cache_clear()
        own_code._root.cache_clear()

    yield wrote
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("mine", "tables", "pack"):
            del sys.modules[name]
    own_code._read.cache_clear()
    own_code._root.cache_clear()


MINE = """
from random import Random
from noisyhealth.perturbations.engine import Change
from noisyhealth.records import Word

def shout(word: Word, text: str, rng: Random, mask: str = "") -> Change:
    return Change(word.start, word.text, word.text.upper(), "shout")

class Shorts:
    def __init__(self, grades=()):
        self.grades = grades

    def __call__(self, word):
        return None
"""
NAMED = {"_target_": "mine.shout", "_partial_": True}


@pytest.mark.parametrize(
    "node",
    [
        NAMED,
        {"_target_": "hydra.utils.get_method", "path": "mine.shout"},
        {"_target_": "hydra.utils.get_object", "_args_": ["mine.shout"]},
        {"_target_": "noisyhealth.perturbations.abbreviation.Abbreviation", "shorts": {"_target_": "mine.Shorts"}},
        {"parts": [{"part": NAMED}]},
    ],
    ids=["a function", "got by name", "got by place", "inside a part of the package's", "in a list"],
)
def test_a_file_that_settings_name_code_of_counts_wherever_it_is_named(node: Any, write: Write) -> None:
    write(**{"mine.py": MINE})
    before = own_code.hashes(node)
    assert list(before) == ["mine"]
    assert own_code.sources(node) == {"mine.py": MINE}
    write(**{"mine.py": MINE + "# changed\n"})
    assert own_code.hashes(node) != before


@pytest.mark.parametrize(
    "line", ["import tables", "from tables import WORDS", "def f():\n    import tables.more", "from tables import more"]
)
def test_what_a_file_imports_from_beside_it_counts_too(line: str, write: Write) -> None:
    write(**{"mine.py": f"import json\nimport numpy\nimport noisyhealth.records\n{line}\n"})
    write(**{"tables/__init__.py": "WORDS = 1\n", "tables/more.py": "import mine\n", "other.py": ""})
    assert {"mine", "tables"} <= set(own_code.hashes(NAMED)) <= {"mine", "tables", "tables.more"}
    before = own_code.hashes(NAMED)
    write(**{"tables/__init__.py": "WORDS = 2\n"})
    assert own_code.hashes(NAMED) != before


def test_names_beside_a_module_of_a_package_are_followed_also_without_an_init_file(write: Write) -> None:
    write(**{"pack/code.py": "from . import words\nfrom .more import X\n"})
    write(**{"pack/words.py": "", "pack/more.py": "X = 1\n"})
    node = {"_target_": "pack.code.Mine"}
    assert sorted(own_code.hashes(node)) == ["pack.code", "pack.more", "pack.words"]
    assert sorted(own_code.sources(node)) == ["pack/code.py", "pack/more.py", "pack/words.py"]


def test_of_an_installed_package_the_named_file_counts_and_is_not_copied() -> None:
    node = {"_target_": "tqdm.std.tqdm"}
    assert sorted(own_code.hashes(node)) == ["tqdm", "tqdm.std"]
    assert own_code.sources(node) == {}


@pytest.mark.parametrize("target", ["noisyhealth.perturbations.redact.Redact", "nowhere.Mine", "math.sqrt"])
def test_the_packages_own_code_and_what_has_no_file_has_no_hash(target: str) -> None:
    assert own_code.hashes({"_target_": target}) == {}


def test_the_settings_of_every_ordinary_cell_name_no_code_but_the_packages(
    configured: Callable[..., DictConfig],
) -> None:
    for model, perturb in (("gpt", "mixture"), ("llama", "typo"), ("bluebert", "dictation"), ("majority", "none")):
        cfg = configured(f"model={model}", f"perturb={perturb}", "task=qa")
        assert own_code.hashes(OmegaConf.to_container(cfg, resolve=True)) == {}


@pytest.mark.parametrize(
    "overrides",
    [
        ["perturb=redact", "perturb.change._target_=mine.shout", "+perturb.change._partial_=true"],
        ["keep.redact.change._target_=mine.shout", "+keep.redact.change._partial_=true"],
        [
            "perturb=mixture",
            "perturb.change.parts.redact.change._target_=mine.shout",
            "+perturb.change.parts.redact.change._partial_=true",
        ],
        ["perturb=abbreviation", "perturb.change.shorts._target_=mine.Shorts"],
    ],
    ids=["alone", "kept", "in a mixture", "in a part"],
)
def test_a_dataset_is_built_anew_when_the_users_code_in_it_changes(
    overrides: list[str], write: Write, configured: Callable[..., DictConfig]
) -> None:
    write(**{"mine.py": MINE})
    before = settings.design(configured(*overrides)).hash
    assert settings.design(configured(*overrides)).hash == before
    write(**{"mine.py": MINE.replace('"shout"', '"SHOUT"')})
    assert settings.design(configured(*overrides)).hash != before
