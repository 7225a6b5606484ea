"""The configuration: every choice composes, and every `_target_` takes the arguments it is given."""

import inspect
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.types import RunMode
from hydra.utils import get_object
from omegaconf import OmegaConf

from noisyhealth.configuration import opened
from noisyhealth.sweep import jobs

CONF = Path(__file__).resolve().parents[1] / "conf"
FILES = sorted(CONF.rglob("*.yaml"))
GROUPS = {
    folder.name: sorted(path.stem for path in folder.glob("*.yaml"))
    for folder in sorted(CONF.iterdir())
    if folder.is_dir() and folder.name != "hydra"
}
STUDY = {
    "task": ["condition", "qa", "sentiment"],
    "model": ["bluebert", "gpt", "llama", "majority"],
    "perturb": ["homophone", "none", "redact", "typo"],
    "level": ["high", "low", "mid"],
}
KEYS = {"_target_", "_convert_", "_partial_", "_recursive_", "_args_"}


@pytest.fixture(scope="module", autouse=True)
def hydra() -> Iterator[None]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def composed(*overrides: str, name: str = "config") -> dict[str, Any]:
    plain = OmegaConf.to_container(compose(name, list(overrides)), resolve=True, throw_on_missing=True)
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


def targets(node: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every node that names a `_target_`, with its place in the configuration."""
    if isinstance(node, dict):
        if "_target_" in node:
            yield path, node
        for key, value in node.items():
            yield from targets(value, f"{path}.{key}".lstrip("."))
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield from targets(value, f"{path}[{at}]")


@cache
def signature(target: str) -> inspect.Signature:
    return inspect.signature(get_object(target))


def bind(config: dict[str, Any]) -> int:
    """Bind the arguments of every target; return how many there were."""
    found = list(targets(config))
    for path, node in found:
        try:
            signature(node["_target_"]).bind(**{k: v for k, v in node.items() if k not in KEYS})
        except TypeError as error:
            pytest.fail(f"{path}: {node['_target_']}: {error}")
    return len(found)


@pytest.mark.parametrize("group", STUDY)
def test_the_folders_hold_the_choices_of_the_study(group: str) -> None:
    assert set(STUDY[group]) <= set(GROUPS[group])


@pytest.mark.slow
@pytest.mark.parametrize(("task", "model"), list(product(GROUPS["task"], GROUPS["model"])))
def test_every_cell_composes_and_its_targets_take_their_arguments(task: str, model: str) -> None:
    for perturb, level in product(GROUPS["perturb"], GROUPS["level"]):
        config = composed(f"task={task}", f"model={model}", f"perturb={perturb}", f"level={level}")
        assert bind(config) >= 12
        assert (config["task"]["name"], config["perturb"]["name"], config["level"]["name"]) == (task, perturb, level)
        assert config["level"]["rate"] == config["perturb"]["levels"][level]


@pytest.mark.parametrize(
    ("group", "choice"),
    [(group, choice) for group, choices in GROUPS.items() if group not in STUDY for choice in choices],
)
def test_every_other_choice_composes_and_its_targets_take_their_arguments(group: str, choice: str) -> None:
    assert bind(composed(f"{group}={choice}", *(["task=qa", "model=gpt"] if group == "weights" else []))) >= 12


@pytest.mark.parametrize(("weights", "model"), list(product(GROUPS["weights"], GROUPS["model"])))
def test_every_model_can_be_played_by_every_weights(weights: str, model: str) -> None:
    config = composed(f"weights={weights}", f"model={model}")
    assert bind(config) >= 12
    assert config["weights"]["name"] == weights


def test_the_analysis_composes() -> None:
    assert composed(name="analyze")["study"]


def test_the_launcher_for_slurm_composes_on_the_plugins_own() -> None:
    launcher = compose("config", ["hydra/launcher=slurm"], return_hydra_config=True).hydra.launcher
    assert launcher._target_.endswith(".SlurmLauncher")
    assert (launcher.nodes, launcher.tasks_per_node, launcher.array_parallelism) == (1, 1, 16)
    assert (launcher.partition, launcher.gpus_per_node) == (None, None)


def test_a_cell_on_slurm_gets_the_processors_that_it_uses() -> None:
    launcher = compose("config", ["hydra/launcher=slurm", "threads=8"], return_hydra_config=True).hydra.launcher
    assert launcher.cpus_per_task == 8


def test_on_slurms_gpus_a_cell_asks_for_one_and_for_all_else_as_without() -> None:
    plain, gpu = (
        OmegaConf.to_container(compose("config", [f"hydra/launcher={name}"], return_hydra_config=True).hydra.launcher)
        for name in ("slurm", "slurm_gpu")
    )
    assert isinstance(plain, dict)
    assert isinstance(gpu, dict)
    assert {key: value for key, value in gpu.items() if plain[key] != value} == {"partition": "gpu", "gpus_per_node": 1}


def test_hydras_callbacks_take_their_arguments() -> None:
    whole = compose("config", return_hydra_config=True)
    assert bind({"callbacks": OmegaConf.to_container(whole.hydra.callbacks, resolve=True)}) >= 1


@pytest.mark.parametrize(
    ("perturb", "rates"), [("typo", [0.1, 0.3, 0.5]), ("homophone", [0.1, 0.2, 0.3]), ("redact", [0.1, 0.3, 0.5])]
)
def test_the_rates_are_those_of_the_study(perturb: str, rates: list[float]) -> None:
    levels = composed(f"perturb={perturb}")["perturb"]["levels"]
    assert [levels[name] for name in ("low", "mid", "high")] == rates


@pytest.mark.parametrize("perturb", [name for name in GROUPS["perturb"] if name not in STUDY["perturb"]])
def test_a_perturbation_beyond_the_study_decides_only_its_own_cells_unless_it_is_kept(perturb: str) -> None:
    assert list(composed(f"perturb={perturb}")["keep"]) == ["typo", "homophone", "redact"]
    kept = composed(f"perturb={perturb}", f"+perturb@keep.{perturb}={perturb}")
    assert kept["keep"][perturb] == kept["perturb"]


def test_a_mixture_has_every_perturbation_as_its_own_file_has_it() -> None:
    change = composed("perturb=mixture")["perturb"]["change"]
    every = set(GROUPS["perturb"]) - {"none", "mixture"}
    assert set(change["parts"]) == set(change["shares"]) == every
    assert all(change["parts"][name] == composed(f"perturb={name}")["perturb"] for name in every)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(CONF).as_posix())
def test_every_file_begins_with_a_sentence_that_says_what_it_chooses(path: Path) -> None:
    # Hydra wants its own directives ("# @package") before anything else.
    first = next(line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("# @"))
    assert first.startswith("# ")
    assert first[2].isupper()
    assert first.endswith((".", "?"))


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.parent != CONF and p.parent.name in GROUPS], ids=lambda p: p.stem
)
def test_a_choice_that_has_a_name_is_called_like_its_file(path: Path) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert content.get("name", path.stem) == path.stem


def test_no_key_is_written_into_the_configuration() -> None:
    assert not any("sk-" in path.read_text(encoding="utf-8") for path in FILES)


def test_a_job_of_a_sweep_is_composed_as_hydra_composes_it_alone() -> None:
    with opened(CONF) as loader:
        whole = loader.load_configuration("config", ["model=gpt,llama", "weights=study,embedded"], RunMode.MULTIRUN)
        given = [["model=llama", "weights=study"], ["model=gpt", "task=qa"], ["model=gpt", "perturb=redact", "seed=3"]]
        alone = [loader.load_sweep_config(whole, list(job)) for job in given]
        loader.repository = jobs.Read(loader.repository)
        kept = [loader.load_sweep_config(whole, list(job)) for job in [*given, *given]]
    assert [OmegaConf.to_container(config) for config in kept] == [OmegaConf.to_container(one) for one in alone] * 2
