"""What a cell's key counts as its code, against what its code really imports."""

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
