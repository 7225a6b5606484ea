"""docs/extend.md: its files are saved and its commands are run as they stand, in a folder of the user's."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from conftest import REPOSITORY, Ended, environment

from noisyhealth import own_code, settings, study
from noisyhealth.audit import command as audit
from noisyhealth.audit.finding import Verdict
from noisyhealth.cell import Cell
from noisyhealth.configuration import CONF

pytestmark = pytest.mark.slow

PAGE = (REPOSITORY / "docs" / "extend.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`(mine/[^`]+)`\n\n```(?:python|yaml)\n(.*?)^```", PAGE, re.M | re.S))
COMMANDS = [line for block in re.findall(r"^```bash\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]
CHECK, PERTURBATION, MODEL, TASK, TOGETHER, ANALYSIS, VERIFIED = COMMANDS[1:]
Said = Callable[..., str]
TOGETHER_RUN = "urgency · neighbour · stretch · high"


@dataclass(frozen=True)
class Place:
    """A folder that looks like a checkout, with nothing of the package in it but links."""

    folder: Path
    cache: Path

    def run(self, command: str) -> Ended:
        """Run a line of the page."""
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        ended = subprocess.run(
            ["bash", "-euc", f"{COMMANDS[0]}\n{command}"],
            cwd=self.folder,
            env=environment(self.cache, PATH=path),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def artifacts(self, study: str) -> list[Path]:
        """Return the folders with the files of a study's cells."""
        return sorted(path.parent for path in (self.folder / "mlruns" / study).glob("*/artifacts/predictions.parquet"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Place:
    folder = tmp_path_factory.mktemp("extend")
    for name in ("run.py", "analyze.py", "conf", "src"):
        (folder / name).symlink_to(REPOSITORY / name)
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return Place(folder, shared_cache)


@pytest.fixture(scope="module")
def said(place: Place) -> Said:
    """Run commands of the page, one after the other and each once, and return what the last one printed."""

    @cache
    def once(command: str) -> str:
        ended = place.run(command)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
        return ended.stdout

    return lambda *commands: [once(command) for command in commands][-1]


def test_the_page_adds_each_in_one_file_and_one_yaml_and_no_more() -> None:
    assert COMMANDS[0] == "export PYTHONPATH=mine"
    assert sorted(name for name in FILES if name.endswith(".py")) == [
        f"mine/{name}.py" for name in ("neighbour", "sensitivity", "stretch", "urgency")
    ]
    assert sorted(name.removeprefix("mine/conf/") for name in FILES if name.endswith(".yaml")) == [
        *("data/mine.yaml", "metric/sensitivity.yaml", "model/neighbour.yaml", "perturb/stretch.yaml"),
        "task/urgency.yaml",
    ]


def test_the_perturbation_keeps_to_the_contract(said: Said) -> None:
    printed = said(CHECK)
    assert "BROKEN" not in printed
    assert printed.count("holds") == 8
    assert re.search(r"low +10 % .*\[\w+\]", printed)


@pytest.mark.parametrize(
    ("command", "cell"),
    [
        (PERTURBATION, "sentiment · majority · stretch · mid"),
        (MODEL, "sentiment · neighbour · typo · high"),
        (TASK, "urgency · majority · redact · low"),
        (TOGETHER, TOGETHER_RUN),
    ],
)
def test_each_of_the_four_is_run_to_its_end(command: str, cell: str, said: Said) -> None:
    printed = said(command)
    assert re.search(rf"{cell}: \w+ 0\.\d+ → [01]\.\d+ \(.*\).*, 6 texts", printed), printed


def test_the_report_has_the_task_the_perturbation_the_model_and_the_metric(said: Said, place: Place) -> None:
    said(TOGETHER, ANALYSIS)
    report = place.folder / "reports" / "mine"
    scores = pd.read_csv(report / "scores.csv")
    assert set(scores.score_name) == {"closeness", "sensitivity"}
    assert set(scores.task) == {"urgency"}
    assert set(scores.perturb) == {"stretch"}
    assert set(scores.model) == {"neighbour"}
    page = (report / "index.html").read_text(encoding="utf-8")
    assert all(name in page for name in ("sensitivity", "closeness", "stretch", "neighbour"))


def test_the_metric_is_that_of_the_answers_in_the_run(said: Said, place: Place) -> None:
    said(TOGETHER)
    [run, _] = place.artifacts("mine")
    kept = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    answers = pd.read_parquet(run / "predictions.parquet")
    soon = answers[(answers.version == "disturbed") & (answers.target == "soon")]
    assert kept["metrics"]["sensitivity"] == (soon.value == "soon").mean()
    assert kept["tags"]["scenarios"] == "closeness,sensitivity"
    assert "category/sensitivity" in kept["tags"]


def test_a_run_keeps_the_code_that_made_it_and_verify_finds_it_the_same(said: Said, place: Place) -> None:
    assert "2 runs: 2 the same." in said(TOGETHER, ANALYSIS, VERIFIED)
    names = ["neighbour.py", "sensitivity.py", "stretch.py", "urgency.py"]
    for run in place.artifacts("mine"):
        assert sorted(path.name for path in (run / "own_code").iterdir()) == names
        assert (run / "own_code" / "stretch.py").read_text(encoding="utf-8") == FILES["mine/stretch.py"]


@pytest.fixture
def cell(said: Said, place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Cell]]:
    """Make the last cell of the page in this process, as another process would that starts now."""
    said(TOGETHER)
    monkeypatch.chdir(place.folder)
    monkeypatch.syspath_prepend("mine")
    monkeypatch.setenv("NOISYHEALTH_CACHE", str(place.cache))

    def made() -> Cell:
        for name in ("neighbour", "sensitivity", "stretch", "urgency"):
            sys.modules.pop(name, None)
        own_code._read.cache_clear()
        settings._disturbance.cache_clear()
        importlib.invalidate_caches()
        given = [setting for setting in TOGETHER.split()[5:] if "level=" not in setting]
        [cfg] = settings.compose(CONF, [*given, "level=high"], "mine/conf")
        return settings.cell(cfg)

    yield made
    for name, text in FILES.items():
        (place.folder / name).write_text(text, encoding="utf-8")
    made()


def test_a_cell_that_was_run_is_done(cell: Callable[[], Cell]) -> None:
    made = cell()
    assert made.name == TOGETHER_RUN
    assert len(made.store.finished([study.key(made, study.asked(made))])) == 1


@pytest.mark.parametrize("name", ["neighbour", "sensitivity", "stretch", "urgency"])
def test_after_an_edit_of_any_of_the_files_the_cell_is_not_done(name: str, cell: Callable[[], Cell]) -> None:
    before = study.asked(cell())
    edit(name)
    made = cell()
    after = study.asked(made)
    assert made.store.finished([study.key(made, after)]) == {}
    assert (after.clean_keys != before.clean_keys) == (name == "neighbour")  # its replies are asked for anew
    assert (made.design.hash != before.build.folder.name.rpartition("-")[2]) == (name == "stretch")  # texts, too


def test_verify_says_that_a_file_is_another_even_where_its_texts_are_the_same(
    cell: Callable[[], Cell], capsys: pytest.CaptureFixture[str]
) -> None:
    made = cell()
    [run] = made.store.finished([study.key(made, study.asked(made))]).values()
    where = audit.Place(made.store, Path(made.cache), Path("reports/mine"))
    assert audit.verify(run, where) is Verdict.SAME
    assert "the run was made by" not in capsys.readouterr().out
    edit("stretch")
    cell()
    assert audit.verify(run, where) is Verdict.SAME
    assert "Of 1 run: the run was made by another stretch than is here.\n" in capsys.readouterr().out


def test_verify_says_which_file_is_another_than_the_run_was_made_by(
    cell: Callable[[], Cell], capsys: pytest.CaptureFixture[str]
) -> None:
    made = cell()
    [run] = made.store.finished([study.key(made, study.asked(made))]).values()
    where = audit.Place(made.store, Path(made.cache), Path("reports/mine"))
    edit("stretch", "self.more *", "(1 + self.more) *")
    cell()
    assert audit.verify(run, where) is Verdict.DIFFERENT
    assert "(the run was made by another stretch than is here)" in capsys.readouterr().out


def edit(name: str, old: str = '"""\n\n', new: str = '"""\n\n# edited\n') -> None:
    """Change a file of the user's, in the working directory."""
    file = Path("mine", f"{name}.py")
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
