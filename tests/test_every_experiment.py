"""Every file in conf/experiment, from its command to the table of the report: the majority model on few texts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from conftest import KEY, REPOSITORY, environment, serving

from noisyhealth.jobs import DIMENSIONS

FILES = {path.stem: path for path in sorted((REPOSITORY / "conf/experiment").glob("*.yaml"))}
NOT_HERE = {
    "tune": "Optuna decides its cells; tests/test_tuning.py runs it",
    "homophones": "asks the Datamuse API, so it needs a network",
    "dtype": "its settings are those of weights that are loaded; run by hand (docs/log.md)",
    "learning_rate": "its settings are those of a fit; run by hand (docs/log.md)",
    "epochs": "its settings are those of a fit; run by hand (docs/log.md)",
}
FEW = ["data.split.test=6"]
OWN: dict[str, list[str]] = {"demo": ["task=sentiment,condition"]}  # BERTScore of qa's answers needs weights
VERIFIED = ("shots", "draws", "medical_words")


def params(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILES[name].read_text())["hydra"]["sweeper"]["params"]
    return found


def factors(name: str) -> dict[str, list[str]]:
    """Return the settings that an experiment sweeps beside the four dimensions, with their values."""
    swept = {key: str(value).split(",") for key, value in params(name).items() if key not in DIMENSIONS}
    return {key: values for key, values in swept.items() if len(values) > 1 and "{" not in values[0]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experiments")


@pytest.fixture(scope="module")
def ended(folder: Path, shared_cache: Path) -> dict[str, list[dict[str, Any]]]:
    """What became of run, analyze and, of some, verify of every experiment."""
    with serving() as server:
        # A temperature is one of models that write: a server on loopback stands for them.
        written = ["model=gpt", "weights=study", f"weights.gpt.endpoint.url={server.url}"]
        commands: dict[str, list[list[str]]] = {}
        for name in FILES.keys() - NOT_HERE.keys():
            model = written if "model.temperature" in params(name) else ["model=majority"]
            run = ["run", f"experiment={name}", *model, *FEW, *OWN.get(name, [])]
            commands[name] = [run, ["analyze", f"study={name}", "log=false"]]
            if name in VERIFIED:
                commands[name].append(["verify", name])
        (folder / "mine/prompt").mkdir(parents=True)
        (folder / "mine/prompt/mine.yaml").write_text("# Mine.\ndefaults: [study]\nname: mine\nsystem: Be brief.\n")
        own = ["run", "-m", "--config-dir=mine", "model=majority", "prompt=study,mine", "study=own_prompt", *FEW]
        commands["own prompt"] = [own, ["analyze", "study=own_prompt", "log=false"]]
        fewer = ["run", "experiment=shots", "model=majority", "prompt.shots=0,1", "study=fewer", *FEW]
        commands["fewer"] = [fewer, ["analyze", "study=fewer", "log=false"]]
        (folder / "commands.json").write_text(json.dumps(commands))
        script = [sys.executable, str(REPOSITORY / "tests/each_experiment.py"), str(REPOSITORY)]
        subprocess.run(
            [*script, "commands.json", "results.json"],
            cwd=folder,
            env=environment(shared_cache, OPENAI_API_KEY=KEY, PYTHONWARNINGS="ignore"),
            check=True,
            timeout=900,
        )
    return json.loads((folder / "results.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_experiment_runs_to_its_table(name: str, ended: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    if name in NOT_HERE:
        pytest.skip(NOT_HERE[name])
    for step in ended[name]:
        assert step["code"] == 0, step["stdout"] + step["stderr"]
        assert "Traceback" not in step["stderr"]
    tables = folder / "reports" / name / "tables"
    assert len(pd.read_csv(tables / "runs.csv"))
    for factor, values in factors(name).items():
        found = pd.read_csv(tables / f"ablation_{factor}.csv", dtype=str)
        assert list(dict.fromkeys(found[factor])) == values
        assert len(found) % len(values) == 0
        assert f"Ablation of {factor}" in ended[name][1]["stdout"]
    if name in VERIFIED:
        assert "different" not in ended[name][2]["stdout"].casefold()


@pytest.mark.slow
def test_draws_and_repeats_have_their_components_of_variance(
    ended: dict[str, list[dict[str, Any]]], folder: Path
) -> None:
    for name in ("draws", "temperature"):
        [path] = (folder / "reports" / name / "tables").glob("variance_*.csv")
        assert len(pd.read_csv(path)) == 7


@pytest.mark.slow
def test_a_prompt_of_ones_own_is_a_choice_beside_the_packages(
    ended: dict[str, list[dict[str, Any]]], folder: Path
) -> None:
    assert [step["code"] for step in ended["own prompt"]] == [0, 0], ended["own prompt"]
    found = pd.read_csv(folder / "reports/own_prompt/tables/ablation_prompt.csv")
    assert list(found["prompt"]) == ["study", "mine"]


@pytest.mark.slow
def test_the_command_line_has_the_last_word_on_what_an_experiment_sweeps(
    ended: dict[str, list[dict[str, Any]]], folder: Path
) -> None:
    assert [step["code"] for step in ended["fewer"]] == [0, 0], ended["fewer"]
    found = pd.read_csv(folder / "reports/fewer/tables/ablation_prompt.shots.csv", dtype=str)
    assert list(found["prompt.shots"]) == ["0", "1"]
    assert set(found["model"]) == {"majority"}


@pytest.mark.parametrize("name", FILES)
def test_an_experiment_file_is_one_screen_begins_with_its_question_and_has_a_study_of_its_own(name: str) -> None:
    lines = FILES[name].read_text().splitlines()
    assert len(lines) <= 30
    assert lines[0] == "# @package _global_"
    assert lines[1].startswith("# ")
    assert yaml.safe_load(FILES[name].read_text())["study"] == name
    assert name in NOT_HERE or factors(name) or name in ("demo", "smoke")


def test_every_experiment_is_in_the_docs() -> None:
    told = (REPOSITORY / "docs/ablations.md").read_text()
    assert [name for name in FILES if f"`{name}`" not in told] == []
