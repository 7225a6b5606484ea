"""Hyperparameters: as a sweep, and searched by Optuna."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from conftest import Ended

from noisyhealth.tracking.store import Store

pytestmark = pytest.mark.slow

SMALL = ("task=sentiment", "data.split.test=6", "model.max_length=32", "model.frozen=6")
Command = Callable[..., Ended]


def test_a_search_chooses_by_the_validation_texts_alone(command: Command, workspace: Path) -> None:
    space = "model.epochs=choice(1,2)"
    ended = command("run.py", "experiment=tune", *SMALL, "hydra.sweeper.n_trials=3", space)
    assert ended.returncode == 0, ended.stderr
    store = Store(f"sqlite:///{workspace}/mlflow.db", "", "tune", str(workspace / "lock"))
    cells, fits, [sweep] = (store.runs(f"tags.kind = '{kind}'") for kind in ("cell", "fit", "sweep"))
    assert {run.info.status for run in (*cells, sweep)} == {"FINISHED"}
    assert {run.data.tags["mlflow.parentRunId"] for run in cells} == {sweep.info.run_id}
    assert {run.data.tags["fit_run"] for run in cells} == {run.info.run_id for run in fits}
    assert all("learning_rate=" in run.info.run_name for run in cells)
    [found] = (workspace / "multirun").glob("*/optimization_results.yaml")
    best = yaml.safe_load(found.read_text())
    scores = [run.data.metrics["fit/validation_f1"] for run in cells]
    assert best["best_value"] == pytest.approx(max(scores))
    assert scores == pytest.approx([run.data.metrics["validation_score"] for run in fits])
    assert (
        f"Best on the validation texts: model.learning_rate={best['best_params']['model.learning_rate']}"
        in ended.stdout
    )
    assert sweep.data.tags["mlflow.note.content"] in ended.stdout
    told = [float(score) for score in re.findall(r"validation score (\d\.\d+)", ended.stdout)]
    assert sorted(told) == pytest.approx(sorted(scores), abs=1e-4)


def test_a_sweep_over_settings_of_the_encoder_names_its_runs_after_them(command: Command, workspace: Path) -> None:
    grid = ("model=bluebert", "perturb=none,redact", "model.epochs=1,2", "study=grid")
    ended = command("run.py", "-m", *SMALL, *grid)
    assert ended.returncode == 0, ended.stderr
    store = Store(f"sqlite:///{workspace}/mlflow.db", "", "grid", str(workspace / "lock"))
    cells, fits = (store.runs(f"tags.kind = '{kind}'") for kind in ("cell", "fit"))
    assert sorted(run.info.run_name for run in cells) == [
        f"sentiment · bluebert(MiniLM-L6) · {perturb} · epochs={epochs}"
        for perturb in ("none", "redact · low")
        for epochs in (1, 2)
    ]
    assert len(fits) == 2, "the disturbed cells share the fits of the clean ones"
    assert {run.data.params["epochs"] for run in fits} == {"1", "2"}
    for run in cells:
        assert run.data.metrics["tokens/per_word"] > 1
        assert 0 <= run.data.metrics["tokens/truncated"] < 1


def test_a_trial_that_fails_ends_the_search(command: Command, workspace: Path) -> None:
    ended = command("run.py", "experiment=tune", "task=sentiment", "data.split.test=6", "model.max_length=1024")
    assert ended.returncode == 1
    assert ended.stdout.count("FAILED ConfigError: model.max_length=1024") == 1, "one of twelve trials"
    store = Store(f"sqlite:///{workspace}/mlflow.db", "", "tune", str(workspace / "lock"))
    assert [run.info.status for run in store.runs()] == ["FAILED", "FAILED"]  # the trial and the search


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("model=llama", r"llama\(SmolLM2-135M\) is not fine-tuned: use model=bluebert"),
        ("plan=true", r"plan=true: nobody knows before which cells hydra/sweeper=optuna will choose"),
        ("model.pooling=max", r"model.pooling='max': give mean or cls"),
        ("model.epochs=two", r"model.epochs='two': give a whole number"),
        (
            "seed=0,1",
            r"hydra/sweeper=optuna would choose seed, but scores .* can only be compared over settings of the fit",
        ),
        ("hydra/launcher=slurm", r"model.accelerator=auto would mean one thing on this machine and another on Slurm's"),
    ],
)
def test_a_search_that_cannot_be_made_is_told_before_any_work(
    argument: str, said: str, command: Command, workspace: Path
) -> None:
    ended = command("run.py", "experiment=tune", "task=sentiment", "data.split.test=6", argument)
    assert ended.returncode == 2
    assert re.search(said, ended.stderr), ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (workspace / "multirun").exists() or not list((workspace / "multirun").glob("*/cells.jsonl"))
