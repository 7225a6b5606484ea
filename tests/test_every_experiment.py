"""Every file in conf/experiment, from its command to the table of the report: the majority model on few texts."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pandas as pd
import pytest
import yaml
from conftest import KEY, REPOSITORY, environment, serving

from noisyhealth.sweep.jobs import DIMENSIONS, text
from noisyhealth.text.homophones import Table

pytestmark = pytest.mark.slow

FILES = {path.stem: path for path in sorted((REPOSITORY / "conf/experiment").glob("*.yaml"))}
NOT_HERE = {"tune": "Optuna decides its cells; tests/test_tuning.py runs it"}
# Settings of loaded weights, of a fit and of models that write are met by no majority.
REAL = {
    "dtype": ["threads=1"],
    "learning_rate": ["threads=1", "model.epochs=1"],
    "epochs": ["threads=1", "data.split.train=0.3"],
}
KINDS = {"exact": "rel_hom", "near": "sl"}  # Datamuse's words for the table's grades
ALSO = {
    "own": ["-m", "--config-dir=mine", "model=majority", "prompt=study,mine"],
    "fewer": ["experiment=shots", "model=majority", "prompt.shots=0,1"],
}
# The whole demo is 81 cells, and BERTScore of qa's answers needs weights; `make demo` runs it.
FEWER = {"demo": ["task=sentiment,condition", "perturb=none,typo,redact", "level=low,high"]}
VERIFIED = ("shots", "draws", "medical_words")


def params(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILES[name].read_text())["hydra"]["sweeper"]["params"]
    return found


def factors(name: str) -> dict[str, list[str]]:
    """Return the settings that an experiment sweeps beside the four dimensions, with their values."""
    swept = {
        key: [_text(one) for one in str(value).split(",")]
        for key, value in params(name).items()
        if key not in DIMENSIONS
    }
    return {key: values for key, values in swept.items() if len(values) > 1 and "{" not in values[0]}


def _text(value: str) -> str:
    """Return a value as the tables have it: 3e-4 is 0.0003."""
    try:
        return text(float(value))
    except ValueError:
        return value


@contextmanager
def sounding() -> Iterator[str]:
    """Serve as Datamuse does, with the words of the offline table as answers, and yield the address."""
    table = Table()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            [(kind, [word])] = parse_qs(urlparse(self.path).query).items()
            found = table(word)
            words = [{"word": found.word, "score": 100}] if found and kind == KINDS[found.grade] else []
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(words).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/words"
        server.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experiments")


@pytest.fixture(scope="module")
def ended(folder: Path, shared_cache: Path, request: pytest.FixtureRequest) -> dict[str, list[dict[str, Any]]]:
    """What became of run, analyze and, of some, verify of every experiment that a chosen test is about."""
    params = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    names = {name for one in params if (name := one.get("name")) in {*FILES, *ALSO} and name not in NOT_HERE}
    (folder / "mine/prompt").mkdir(parents=True)
    (folder / "mine/prompt/mine.yaml").write_text("# Mine.\ndefaults: [study]\nname: mine\nsystem: Be brief.\n")
    with serving() as server, sounding() as datamuse:
        commands = {name: steps(name, server.url) for name in sorted(names)}
        (folder / "commands.json").write_text(json.dumps(commands))
        script = [sys.executable, str(REPOSITORY / "tests/each_experiment.py"), str(REPOSITORY)]
        subprocess.run(
            [*script, "commands.json", "results.json"],
            cwd=folder,
            env=environment(shared_cache, OPENAI_API_KEY=KEY, DATAMUSE_URL=datamuse, PYTHONWARNINGS="ignore"),
            check=True,
            timeout=1200,
        )
    found: dict[str, list[dict[str, Any]]] = json.loads((folder / "results.json").read_text())
    return found


def steps(name: str, url: str) -> list[list[str]]:
    """Return the commands of an experiment: run, analyze and, of some, verify."""
    written = ["model=gpt", "weights=study", f"weights.gpt.endpoint.url={url}"]  # by a server on loopback
    settings = written if name == "temperature" else REAL.get(name, ["model=majority"])
    run = ALSO.get(name, [f"experiment={name}", *settings])
    verify = [["verify", name]] if name in VERIFIED else []
    return [
        ["run", *run, f"study={name}", "data.split.test=6", *FEWER.get(name, [])],
        ["analyze", f"study={name}", "log=false"],
        *verify,
    ]


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


@pytest.mark.parametrize("name", ["draws", "temperature"])
def test_what_stands_for_chance_has_its_components_of_variance(
    name: str, ended: dict[str, list[dict[str, Any]]], folder: Path
) -> None:
    assert ended[name][1]["code"] == 0, ended[name][1]["stderr"]
    [path] = (folder / "reports" / name / "tables").glob("variance_*.csv")
    assert len(pd.read_csv(path)) == 7  # text, two settings, three pairs, all three


@pytest.mark.parametrize(
    ("name", "setting", "values"), [("own", "prompt", ["study", "mine"]), ("fewer", "prompt.shots", ["0", "1"])]
)
def test_a_prompt_of_ones_own_is_a_choice_and_the_command_line_has_the_last_word(
    name: str, setting: str, values: list[str], ended: dict[str, list[dict[str, Any]]], folder: Path
) -> None:
    assert [step["code"] for step in ended[name]] == [0, 0], ended[name]
    found = pd.read_csv(folder / f"reports/{name}/tables/ablation_{setting}.csv", dtype=str)
    assert list(found[setting]) == values
    assert set(found["model"]) == {"majority"}


@pytest.mark.parametrize("file", FILES)
def test_an_experiment_file_is_one_screen_begins_with_its_question_and_has_a_study_of_its_own(file: str) -> None:
    lines = FILES[file].read_text().splitlines()
    assert len(lines) <= 30
    assert lines[0] == "# @package _global_"
    assert lines[1].startswith("# ")
    assert yaml.safe_load(FILES[file].read_text())["study"] == file
    assert file in NOT_HERE or factors(file) or file in ("demo", "smoke")


def test_every_experiment_is_in_the_docs() -> None:
    told = (REPOSITORY / "docs/ablations.md").read_text()
    assert [name for name in FILES if f"`{name}`" not in told] == []
