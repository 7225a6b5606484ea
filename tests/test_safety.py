"""What SECURITY.md promises: nothing is unpickled, no path leaves its folder, no secret is written."""

import ast
import json
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import KEY, REPOSITORY, Answering, Ended
from omegaconf import DictConfig
from transformers import BertConfig, LlamaConfig

from noisyhealth import paths, settings
from noisyhealth.dataset import card
from noisyhealth.errors import ConfigError
from noisyhealth.models.chat.endpoint import Remote
from noisyhealth.models.encoder import net
from noisyhealth.models.local import causal

Command = Callable[..., Ended]
SOURCES = sorted(
    path
    for place in ("src", "scripts", "benchmarks", "run.py", "analyze.py")
    for path in ([REPOSITORY / place] if place.endswith(".py") else (REPOSITORY / place).rglob("*.py"))
)
# Calls that run what a file says, by their last name, and what they may be called on (None: anything).
RUNNING: dict[str, set[str] | None] = {
    **{key: {"pickle", "cloudpickle", "dill", "joblib", "marshal", "yaml", "jsonpickle"} for key in ("load", "loads")},
    **{key: {"yaml"} for key in ("unsafe_load", "full_load", "load_all", "unsafe_load_all", "full_load_all")},
    **dict.fromkeys(("read_pickle", "load_from_checkpoint", "unpack_archive"), None),
    **{"system": {"os"}, "popen": {"os"}, "open": {"shelve"}, "Unpickler": {"pickle"}, "eval": {""}, "exec": {""}},
}
FEELINGS = ("happy", "sad", "calm", "weak", "tired", "strong", "dizzy", "hopeful", "awful", "fine", "sore", "anxious")
# Calls that are safe with one setting alone.
SAFE_WITH: dict[str, tuple[str, object]] = {
    "torch.load": ("weights_only", True),
    "ModelCheckpoint": ("save_weights_only", True),
    "extractall": ("filter", "data"),
}
# Bytes that the same process made a moment before, and that no file holds.
ITS_OWN = {"src/noisyhealth/sweep/jobs.py": ["pickle.loads(self._known[config_path])"]}


def dangers(source: str) -> list[str]:
    """Return the calls of a module that may run what they read."""
    return [ast.unparse(call) for call in ast.walk(ast.parse(source)) if isinstance(call, ast.Call) and _runs(call)]


def _runs(call: ast.Call) -> bool:
    given = {word.arg: getattr(word.value, "value", ...) for word in call.keywords}
    if any(given.get(name, False) for name in ("trust_remote_code", "allow_pickle", "shell")):
        return True
    on, _, name = ast.unparse(call.func).rpartition(".")
    for called in (name, f"{on}.{name}"):
        if called in SAFE_WITH:
            word, value = SAFE_WITH[called]
            return given.get(word) != value
    owners = RUNNING.get(name, set())
    return owners is None or on in owners


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_nothing_runs_what_it_reads(path: Path) -> None:
    allowed = ITS_OWN.get(path.relative_to(REPOSITORY).as_posix(), [])
    assert dangers(path.read_text(encoding="utf-8")) == allowed


@pytest.mark.parametrize(
    "line",
    [
        "pickle.load(file)",
        "joblib.load(path)",
        "pickle.Unpickler(file).load()",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "torch.load(path, weights_only=chosen)",
        "Net.load_from_checkpoint(path)",
        "pd.read_pickle(path)",
        "np.load(path, allow_pickle=True)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
        "AutoModel.from_pretrained(path, trust_remote_code=True)",
        "subprocess.run(line, shell=True)",
        "eval(text)",
        "tarfile.open(path).extractall(folder)",
        "ModelCheckpoint(dirpath=folder)",
    ],
)
def test_a_call_that_runs_what_it_reads_would_be_found(line: str) -> None:
    assert dangers(f"def f():\n    return {line}\n")
    assert dangers("torch.load(path, weights_only=True)\nnetwork.eval()\njson.load(file)\nyaml.safe_load(file)") == []


class Attack:
    """Makes a folder when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def attack(tmp_path: Path) -> Iterator[Path]:
    """A folder of weights whose checkpoint is a pickle that would leave a mark."""
    mark, folder = tmp_path / "mark", tmp_path / "weights"
    folder.mkdir()
    content = pickle.dumps({"weight": Attack(mark)})
    (folder / "pytorch_model.bin").write_bytes(content)
    yield folder
    assert not mark.exists()
    pickle.loads(content)
    assert mark.exists(), "the checkpoint would have left its mark"


def test_a_checkpoint_that_would_run_code_is_refused_as_an_encoder(attack: Path) -> None:
    config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    config.save_pretrained(attack)
    with pytest.raises(Exception, match=r"(?i)weights.only|unpickl"):
        net.load_body(attack, config, "mean")


def test_a_checkpoint_that_would_run_code_is_refused_as_a_language_model(attack: Path) -> None:
    config = LlamaConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=9)
    config.architectures = ["LlamaForCausalLM"]
    config.save_pretrained(attack)
    with pytest.raises(Exception, match=r"(?i)weights.only|unpickl"):
        causal.load(attack, "float32", 64, 1)


NAMES = ["../x", "../../x", "a/b", "/tmp/x", "..", ".", "", " ", ".hidden", "a\\b", "a\nb", "a\0b", "x" * 201]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_a_path_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^study=.* cannot name a folder: give 1 to 200 bytes without slashes"):
        paths.checked_name("study", name)


@pytest.mark.parametrize("name", ["demo", "high doses", "größer", "2026-11-30_a.b", "x" * 200])
def test_a_name_that_is_one_folder_is_taken(name: str, tmp_path: Path) -> None:
    (tmp_path / paths.checked_name("study", name)).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("setting", ["study=../../x", "study=a/b", "task.name=../x", "task.name=a/b"])
def test_a_cell_whose_name_would_leave_its_folder_is_no_cell(
    configured: Callable[..., DictConfig], workspace: Path, setting: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^{setting.partition('=')[0]}='.*' cannot name a folder"):
        settings.cell(configured("model=majority", setting))
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "given", "said"),
    [
        ("run.py", ["study=../../x"], "ConfigError: study='../../x' cannot name a folder"),
        ("run.py", ["cache=taken"], "ConfigError: cache='taken': taken is a file, and a folder is needed"),
        ("run.py", ["cache=taken/below"], "ConfigError: cache='taken/below': taken is a file"),
        ("run.py", ["tracking.artifacts=taken"], "ConfigError: tracking.artifacts='taken': taken is a file"),
        ("analyze.py", ["study=a/b"], "ConfigError: study='a/b' cannot name a folder"),
        ("analyze.py", ["out=taken"], "ConfigError: out='taken': taken is a file, and a folder is needed"),
        ("analyze.py", ["out=taken/below"], "ConfigError: out='taken/below': taken is a file"),
    ],
)
def test_a_path_that_cannot_be_used_is_told_in_a_sentence_before_any_work(
    command: Command, workspace: Path, script: str, given: list[str], said: str
) -> None:
    (workspace / "taken").write_text("of the user's")
    ended = command(script, *(["model=majority", "data.split.test=6"] if script == "run.py" else []), *given)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert ended.stderr.startswith(said)
    assert "Traceback" not in ended.stderr
    assert [path.name for path in workspace.iterdir()] == ["taken"]
    assert (workspace / "taken").read_text() == "of the user's"


@pytest.mark.slow
def test_an_id_with_slashes_is_data_and_no_path(command: Command, workspace: Path) -> None:
    (workspace / "messages.jsonl").write_text(
        "".join(
            json.dumps({"id": f"../../{n}/x", "text": f"I feel {' and '.join(Random(n).sample(FEELINGS, 6))} today",
                        "target": ("positive", "negative")[n % 2]}) + "\n"
            for n in range(30)
        )
    )  # fmt: skip
    ended = command(
        "run.py", "model=majority", "perturb=redact", "level=low", "data=files", "data.split.test=6", "cache=cache",
        "data.source.paths.sentiment=messages.jsonl", "data.source.columns.sentiment.id=id",
        "~keep.typo", "~keep.homophone",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert sorted(path.name for path in workspace.iterdir()) == [
        "cache", "messages.jsonl", "mlflow.db", "mlruns", "multirun",
    ]  # fmt: skip
    assert [path for path in workspace.rglob("*") if path.name == "x"] == []


def files_with(secret: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_key_is_in_no_file_of_a_study_and_its_report(command: Command, workspace: Path, server: Answering) -> None:
    ended = command(
        "run.py", "-m", "model=gpt", "weights=study", f"weights.gpt.endpoint.url={server.url}", "cache=cache",
        "perturb=none,typo", "level=low,mid,high", "data.split.test=6", OPENAI_API_KEY=KEY,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    report = command("analyze.py", "cache=cache", OPENAI_API_KEY=KEY)
    assert report.returncode == 0, report.stderr
    assert server.authorisations == {f"Bearer {KEY}"}, "the key was sent"
    assert KEY not in ended.stdout + ended.stderr + report.stdout + report.stderr
    for secret in (KEY, KEY[8:], "Bearer "):
        assert files_with(secret, workspace) == []
    assert {path.relative_to(workspace).parts[0] for path in files_with("gpt-4o-mini", workspace)} == {
        "cache", "mlflow.db", "mlruns", "multirun", "reports",
    }, "the search finds what is there"  # fmt: skip


TRACKED = [
    "http://me:{}@127.0.0.1:9",
    "http://{}@127.0.0.1:9",
    "http://127.0.0.1:9/?access_token={}",
    "postgresql+psycopg2://mlflow:{}@127.0.0.1/mlflow",
    "postgresql+psycopg2://mlflow@127.0.0.1/mlflow?password={}",
]


@pytest.mark.parametrize("form", TRACKED)
def test_a_secret_in_the_address_of_runs_is_refused_without_it(
    configured: Callable[..., DictConfig], workspace: Path, form: str
) -> None:
    with pytest.raises(ConfigError, match=r"^tracking.uri holds a user, a password or a token.*PGPASSWORD") as refused:
        settings.store(configured(f"tracking.uri='{form.format(KEY)}'"))
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("form", ["http://127.0.0.1:5000", "postgresql+psycopg2://mlflow@127.0.0.1:5432/mlflow"])
def test_an_address_of_runs_without_a_secret_is_taken(
    configured: Callable[..., DictConfig], workspace: Path, form: str
) -> None:
    assert settings.store(configured(f"tracking.uri='{form}'")).uri == form


@pytest.mark.parametrize(
    ("given", "variables"),
    [
        (["model=majority", "tracking=server"], {"MLFLOW_TRACKING_URI": f"http://me:{KEY}@127.0.0.1:9"}),
        (["model=gpt", "weights=study", f"weights.gpt.endpoint.key_variable='{KEY}'"], {}),
    ],
    ids=["in MLFLOW_TRACKING_URI", "in place of its variable's name"],
)
def test_a_misplaced_secret_reaches_no_file_and_no_screen(
    command: Command, workspace: Path, given: list[str], variables: dict[str, str]
) -> None:
    ended = command("run.py", "data.split.test=6", "cache=cache", *given, **variables)
    assert ended.returncode == 2
    assert "is written into every run" in ended.stderr or "would be written into every run" in ended.stderr
    assert KEY not in ended.stdout + ended.stderr
    assert files_with(KEY, workspace) == []


@pytest.mark.parametrize("name", ["sk-abc", "KEY=1", "MY KEY", "1KEY"])
def test_what_names_no_variable_is_never_repeated(name: str) -> None:
    with pytest.raises(ConfigError, match="key_variable is not the name of an environment variable") as refused:
        Remote("m", "http://127.0.0.1:9/v1", "m", key_variable=name).check()
    assert name not in str(refused.value)


def test_a_dataset_card_takes_no_html_from_settings() -> None:
    assert "&lt;script&gt;" in card._licence("<script>alert(1)</script>")
    assert "<script>" not in card._licence("<script>alert(1)</script>")
