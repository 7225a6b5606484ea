"""What a cell's key counts as its code, against what its code really imports."""

import subprocess
from pathlib import Path

import pytest
from grimp import ImportGraph, build_graph

from noisyhealth import version

ROOT = Path(version.__file__).parent


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    return build_graph("noisyhealth", exclude_type_checking_imports=True)


@pytest.fixture(scope="module")
def needed(graph: ImportGraph) -> set[str]:
    """Every module that running a cell imports."""
    return graph.find_upstream_modules("noisyhealth.experiment") | {"noisyhealth.experiment"}


def readers() -> set[str]:
    """The modules that are left out of the hash."""
    files = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")}
    left_out = {name for name in files if name.startswith(version._READERS)}
    return {f"noisyhealth.{name.removesuffix('.py').replace('/', '.').removesuffix('.__init__')}" for name in left_out}


def test_nothing_that_a_cell_imports_is_left_out_of_the_hash_of_its_code(needed: set[str]) -> None:
    assert needed & readers() == set()


def test_no_statistic_that_only_reads_runs_makes_every_cell_run_again(graph: ImportGraph, needed: set[str]) -> None:
    analysis = {name for name in graph.modules if name.startswith("noisyhealth.analysis.")}
    assert analysis - needed == analysis & readers()


@pytest.mark.parametrize("name", version._READERS)
def test_what_is_left_out_exists(name: str) -> None:
    assert (ROOT / name).exists()


def test_what_is_uncommitted_is_a_patch_that_gives_the_checkout_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str, folder: Path) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)

    here, there = tmp_path / "here", tmp_path / "there"
    (here / "src").mkdir(parents=True)
    (here / "src" / "old.py").write_text("one = 1\n")
    git("init", "-q", folder=here)
    git("add", "-A", folder=here)
    git("commit", "-qm", "first", folder=here)
    git("clone", "-q", str(here), str(there), folder=tmp_path)
    (here / "src" / "old.py").write_text("one = 2\n# no newline at the end")
    (here / "src" / "new.py").write_text("two = 'ü'\n", encoding="utf-8")
    monkeypatch.setattr(version, "_ROOT", here)
    (tmp_path / "patch").write_text(version.uncommitted.__wrapped__(), encoding="utf-8")
    git("apply", str(tmp_path / "patch"), folder=there)
    for name in ("old.py", "new.py"):
        assert (there / "src" / name).read_bytes() == (here / "src" / name).read_bytes()
    (here / "src" / "old.py").write_bytes(b"one = '\xe9'\n")
    assert "\\xe9" in version.uncommitted.__wrapped__()
