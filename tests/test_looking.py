"""`list`, `show`, `status`, `plan` and `completion` of `python -m noisyhealth`."""

import json
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conftest import REPOSITORY, Ended, Study, asked, environment, execute

from noisyhealth import catalogue, progress
from noisyhealth.commands import completion, marked, parser, status
from noisyhealth.commands.status import Found
from noisyhealth.perturbations.engine import replay
from noisyhealth.records import Edit
from noisyhealth.tracking.store import Store

CONF = REPOSITORY / "conf"
TEXT = "The patient reports a severe headache since Monday and takes 500 mg paracetamol every evening without relief."


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a perturbation of a user's, which is the package's own under another name."""
    folder = tmp_path / "mine"
    (folder / "perturb").mkdir(parents=True)
    given = (CONF / "perturb/redact.yaml").read_text().replace("# Words are left out.", "# Mine leaves words out.")
    (folder / "perturb/gaps.yaml").write_text(given.replace("name: redact", "name: gaps"))
    return folder


def test_every_choice_of_every_group_is_listed_with_its_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for path in CONF.glob("*/*.yaml"):
        [told] = [line for line in lines if line.split()[:1] == [path.stem] and catalogue.sentence(path) in line]
        assert told.startswith("  ")
    assert lines[0] == "task=", "the order is that of the configuration"
    assert {f"{path.parent.name}=" for path in CONF.glob("*/*.yaml")} <= set(lines)


def test_a_group_of_the_user_s_is_listed_with_the_others(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert parser.main(["list", "perturb", "--config-dir", str(own)]) == 0
    out = capsys.readouterr().out
    assert ["gaps", "Mine leaves words out. (yours)"] in [line.split(maxsplit=1) for line in out.splitlines()]
    assert "  typo  " in out
    assert "task=" not in out


def test_a_shown_text_is_the_original_with_its_edits_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser.main(["show", "perturb=redact", "level=low,high", "--text", TEXT]) == 0
    low, high = capsys.readouterr().out.split("perturb=redact level=high")
    assert low.startswith("perturb=redact level=low: 10% of 17 words, 2\n")
    assert "2 of 17 words changed (11.8%)" in low
    assert "9 of 17 words" not in low
    [shown] = [line for line in low.splitlines() if line.startswith("The ")]
    assert shown.count(" → nothing]") == 2
    assert shown.replace(" → nothing]", "").replace("[", "") == TEXT
    assert "500" not in "".join(line for line in (low + high).splitlines() if line.startswith("  ")), (
        "a dose is left alone"
    )


def test_a_text_that_cannot_be_given_the_dose_is_told_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser.main(["show", "perturb=typo", "level=low,high", "--text", "It is on me"]) == 1
    out = capsys.readouterr().out
    assert (
        "perturb=typo level=low: 10% of 4 words, 0\nThis text cannot be given that dose: too short. It has 4 words"
        in out
    )
    assert "too few words can change" in out


def test_a_perturbation_of_the_user_s_is_shown(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert parser.main(["show", "perturb=gaps", "level=low", "--text", TEXT, "--config-dir", str(own)]) == 0
    assert "perturb=gaps level=low: 10% of 17 words, 2" in capsys.readouterr().out


def test_the_baseline_shows_the_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser.main(["show", "perturb=none", "--text", TEXT]) == 0
    assert TEXT in capsys.readouterr().out


def test_in_colours_nothing_but_the_edits_is_marked() -> None:
    edits = [Edit(4, "pain", "pian", "transpose", "NOUN", True, 1), Edit(9, "ebbs", "", "redact", "VERB", False, 2)]
    text = "Mild pain ebbs".replace("Mild", "The")
    shown = marked.marked(text, edits, colours=True)
    styles = {str(span.style): shown.plain[span.start : span.end] for span in shown.spans}
    assert styles["bold green"] == "pian"
    assert shown.plain == "The painpian ebbs"
    assert replay(text, edits) == "The pian "


@pytest.fixture(scope="module")
def left(nine: Study, shared_cache: Path) -> Ended:
    """A study of three cells on a small budget: one is done, one failed, one was not run."""
    grid = ("-m", "model=majority", "perturb=none,typo", "level=low,mid", "data.split.test=6", "study=left", "repeat=1")
    return execute(nine.folder, shared_cache, "run.py", *grid, "budget.calls=7")


def test_the_sentence_that_ends_a_sweep_is_told_once(left: Ended) -> None:
    assert left.returncode == 1
    assert (left.stdout + left.stderr).count("the budget is used up") == 1
    assert "BudgetError, which ends the sweep" in left.stdout


def test_the_status_of_a_study_names_every_cell_that_is_not_done(left: Ended, nine: Study, shared_cache: Path) -> None:
    ended = asked(nine.folder, shared_cache, "status", "left")
    assert (left.returncode, ended.returncode) == (1, 1), ended.stderr
    assert ended.stdout.startswith("Study left: ")
    store = Store(f"sqlite:///{nine.folder}/mlflow.db", "", "left", str(nine.folder / "lock"))
    found = {one.cell: one.status for one in status.of(store)}
    names = [f"sentiment · majority · {what}" for what in ("none", "typo · low", "typo · mid")]
    assert set(found) == set(names)
    assert sorted(found.values()) == ["done", "failed", "not run"]
    for name, became in found.items():
        assert (name in ended.stdout) == (became != "done")
    assert "budget is used up" in ended.stdout


def test_a_study_that_is_whole_has_status_zero(nine: Study, shared_cache: Path) -> None:
    ended = asked(nine.folder, shared_cache, "status", "noisyhealth")
    assert (ended.returncode, ended.stdout) == (0, "Study noisyhealth: 9 done.\n")


def test_a_cell_is_done_by_any_of_its_tries_and_else_what_its_last_one_is(
    nine: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(f"sqlite:///{nine.folder}/mlflow.db", "", "tried", str(nine.folder / "lock"))
    tries = {"a": ["FINISHED", "FAILED"], "b": ["FAILED", "KILLED"], "c": ["KILLED", "RUNNING"], "d": ["FAILED"]}
    for name, ends in tries.items():
        for end in ends:
            run = store.start(name, {"kind": "cell"}, {})
            if end != "RUNNING":
                store.end(run, end)
    found = status.of(store)
    assert [(one.cell, one.status) for one in found] == [
        ("a", "done"), ("b", "killed"), ("c", "running"), ("d", "failed"),
    ]  # fmt: skip
    monkeypatch.setattr(status.heartbeat, "vanished", lambda tags: True)
    assert Found("c", "killed", "its process vanished: it was killed outright, or the machine stopped") in status.of(
        store
    )


def test_plan_prints_what_run_py_prints_with_plan_true(nine: Study, shared_cache: Path) -> None:
    grid = ("model=majority", "perturb=none,typo", "level=low,mid", "data.split.test=6")
    ended = asked(nine.folder, shared_cache, "plan", "-m", *grid)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == execute(nine.folder, shared_cache, "run.py", "-m", *grid, "plan=true").stdout
    assert "Nothing is asked yet" in ended.stdout


@pytest.mark.parametrize(
    ("line", "wanted", "unwanted"),
    [
        ("python -m noisyhealth ", {"list", "show", "status", "verify", "--help"}, {"task="}),
        ("python -m noisyhealth li", {"list"}, {"show"}),
        ("python -m noisyhealth dataset ", {"build", "export"}, {"list"}),
        ("python -m noisyhealth show pert", {"perturb="}, {"task="}),
        ("python -m noisyhealth show perturb=", {"perturb=typo", "perturb=redact"}, set()),
        ("python -m noisyhealth show perturb=typo,re", {"perturb=typo,redact"}, {"perturb=typo,typo"}),
        ("python run.py -m mod", {"model="}, {"--multirun"}),
        ("python run.py -m model=gpt,", {"model=gpt,llama"}, {"model=gpt,gpt"}),
        ("python run.py model=gpt model.temp", {"model.temperature="}, set()),
        ("python run.py model=majority model.temp", set(), {"model.temperature="}),
        ("python run.py data.split.te", {"data.split.test="}, set()),
        ("python run.py experiment=", {"experiment=demo"}, set()),
        ("python run.py hydra/launcher=sl", {"hydra/launcher=slurm"}, set()),
        ("python analyze.py grid.mo", {"grid.model="}, set()),
        ("python -m noisyhealth show --", {"--text", "--config-dir"}, {"--port"}),
        ("python -m noisyhealth ui --", {"--port", "--store"}, {"--config-dir"}),
        ("python -m noisyhealth dataset export --", {"--to"}, {"--text"}),
        ("python run.py --config-dir {own} perturb=ga", {"perturb=gaps"}, set()),
        ("python -m noisyhealth check --config-dir={own} perturb=ga", {"perturb=gaps"}, set()),
    ],
)
def test_completion_offers_what_may_stand_there(
    line: str, wanted: set[str], unwanted: set[str], tmp_path: Path
) -> None:
    (tmp_path / "perturb").mkdir()
    (tmp_path / "perturb" / "gaps.yaml").write_text("# Gaps.\nname: gaps\n")
    line = line.format(own=tmp_path)
    found = completion.words(line, parser._names(parser._parser()))
    assert wanted <= set(found)
    assert not unwanted & set(found)
    assert all(one.startswith(line.rpartition(" ")[2]) for one in found)


@pytest.fixture
def pressed(nine: Study, shared_cache: Path) -> Callable[[str], list[str]]:
    """What bash holds after Tab was pressed at the end of a line, words cut at = as bash does."""
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash here")

    def press(line: str) -> list[str]:
        script = f"""
        eval "$({sys.executable} -m noisyhealth completion bash)"
        complete -p python >/dev/null || exit 3
        COMP_LINE={json.dumps(line)} COMP_POINT=${{#COMP_LINE}}
        COMP_LINE={json.dumps(line)}; COMP_POINT=${{#COMP_LINE}}
        _noisyhealth {sys.executable} "" ""
        printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        ended = subprocess.run(
            [bash, "--norc", "-c", script], cwd=nine.folder, env=environment(shared_cache), capture_output=True,
            text=True, check=False, timeout=60,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.split()

    return press


def test_bash_completes_commands_choices_and_studies(pressed: Callable[[str], list[str]]) -> None:
    assert pressed("python -m noisyhealth sta") == ["status"]
    assert "noisyhealth" in pressed("python -m noisyhealth status ")
    # bash takes what stands behind the = as a word of its own.
    assert pressed("python run.py -m model=majority perturb=typo,re") == ["typo,redact"]


def test_a_log_is_told_of_a_long_step_once_a_minute_and_of_a_short_one_never(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(0, 10_000, 25))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    assert list(progress.steps("abcdefg", "asking")) == list("abcdefg")
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[2].split(" texts")[0] for line in lines] == [" 2 of 7", " 5 of 7"]
    monkeypatch.undo()
    assert list(progress.steps("abc", "asking")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


def test_pages_are_not_served_on_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(store)) as db:
        db.execute("create table experiments (name, experiment_id, lifecycle_stage, creation_time)")
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        assert parser.main(["ui", "--store", str(store), "--port", str(port)]) == 2
    ended = capsys.readouterr()
    assert ended.out == ""
    assert ended.err == f"StoreError: port {port} is taken, by somebody's pages perhaps; give --port {port + 1}\n"


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parser.main(["--version"])
    assert left.value.code == 0
    assert re.fullmatch(r"noisyhealth \d+\.\d+\S*\n", capsys.readouterr().out)
