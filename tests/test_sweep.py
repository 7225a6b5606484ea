import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Ended, Study, error, execute, serving, started

from noisyhealth.tracking.journal import Journal
from noisyhealth.tracking.store import Store

Command = Callable[..., Ended]


@pytest.fixture
def run(nine: Study, shared_cache: Path) -> Command:
    """Run `run.py` in the folder of the nine cells, whose store is made already; each test has its own study."""

    def command(*arguments: str, **variables: str) -> Ended:
        return execute(nine.folder, shared_cache, "run.py", *arguments, **variables)

    return command


def runs(folder: Path, kind: str = "cell", study: str = "noisyhealth") -> list[Any]:
    """Return the runs of a kind in a study, oldest first."""
    store = Store(f"sqlite:///{folder}/mlflow.db", "", study, str(folder / "lock"))
    found = store.runs(f"tags.kind = '{kind}'")
    return sorted(found, key=lambda run: run.info.start_time)


def statuses(folder: Path, kind: str = "cell", study: str = "noisyhealth") -> dict[str, str]:
    return {run.info.run_name: run.info.status for run in runs(folder, kind, study)}


def table(ended: Ended) -> dict[str, str]:
    """Return the cells of the table at the end, with their status."""
    rows = [line.split("│") for line in ended.stdout.splitlines() if line.startswith("│")]
    return {row[1].strip(): row[2].strip() for row in rows}


def files_with(secret: str, *folders: Path) -> list[Path]:
    """Return the files that hold a text; weights, that no run writes, are passed over."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file() and "weights" not in path.parts)
    return [path for path in files if secret.encode() in path.read_bytes()]


def test_the_command_of_the_study_gives_a_finished_run_for_each_cell_under_one_sweep(nine: Study) -> None:
    assert nine.ended.returncode == 0, nine.ended.stderr
    found = statuses(nine.folder)
    assert Counter(found.values()) == {"FINISHED": 9}
    assert set(found) == {
        f"sentiment · majority · {perturb} · {level}"
        for perturb in ("typo", "homophone", "redact")
        for level in ("low", "mid", "high")
    }
    [sweep] = runs(nine.folder, "sweep")
    assert sweep.info.status == "FINISHED"
    assert {run.data.tags["mlflow.parentRunId"] for run in runs(nine.folder)} == {sweep.info.run_id}
    assert table(nine.ended) == dict.fromkeys(found, "done")
    assert "9 done" in nine.ended.stdout


def test_the_same_command_again_computes_nothing(nine: Study, run: Command) -> None:
    start = time.monotonic()
    again = run(*nine.arguments)
    assert again.returncode == 0, again.stderr
    assert time.monotonic() - start < 20
    assert "9 done before, 0 to run" in again.stdout
    assert set(table(again).values()) == {"reused"}
    assert len(runs(nine.folder)) == 9
    assert len(runs(nine.folder, "sweep")) == 1


@dataclass(frozen=True)
class Faulty:
    """A sweep whose one model's server only answers with an error."""

    ended: Ended
    folder: Path
    authorisations: set[str]


def faulty(nine: Study, cache: Path, study: str, fault: Any, times: int, *settings: str) -> Faulty:
    grid = ("-m", "perturb=none,typo", "level=low,mid,high", "data.split.test=6", "weights=study", f"study={study}")
    with serving() as server:
        server.faults[""] = [fault] * times
        url = f"weights.gpt.endpoint.url={server.url}"
        ended = execute(nine.folder, cache, "run.py", *grid, url, *settings, OPENAI_API_KEY=KEY)
        return Faulty(ended, nine.folder, server.authorisations)


@pytest.fixture(scope="module")
def failing(nine: Study, shared_cache: Path) -> Faulty:
    """A server that is broken for the six calls of the first cell."""
    return faulty(nine, shared_cache, "failing", error(500, "broken"), 6, "model=gpt", "model.retries=0")


@pytest.fixture(scope="module")
def refused(nine: Study, shared_cache: Path) -> Faulty:
    """A server that refuses the key, and says it again: no call could do better."""
    refusal = error(401, "Incorrect API key provided: {authorization}")
    return faulty(nine, shared_cache, "refused", refusal, 999, "model=gpt,majority")


def test_a_failing_cell_hides_no_other(failing: Faulty) -> None:
    assert failing.ended.returncode == 1
    assert statuses(failing.folder, study="failing") == {
        "sentiment · gpt(gpt-4o-mini) · none": "FAILED",
        **{f"sentiment · gpt(gpt-4o-mini) · typo · {level}": "FINISHED" for level in ("low", "mid", "high")},
    }
    assert statuses(failing.folder, "sweep", "failing").popitem()[1] == "FAILED"
    assert Counter(table(failing.ended).values()) == {"failed": 1, "done": 3}
    [told] = [line for line in failing.ended.stdout.splitlines() if line.startswith("FAILED sentiment")]
    assert "6 of 6 texts put to gpt(gpt-4o-mini) were lost" in told


def test_a_refusal_that_holds_for_every_call_ends_the_sweep_at_once(refused: Faulty) -> None:
    assert refused.ended.returncode == 1
    assert Counter(table(refused.ended).values()) == {"failed": 1, "not run": 7}
    assert list(statuses(refused.folder, study="refused").values()) == ["FAILED"]
    [told] = [line for line in refused.ended.stderr.splitlines() if line.startswith("Stopped: ")]
    assert "OPENAI_API_KEY" in told


def test_a_baseline_that_is_named_three_times_runs_once(failing: Faulty) -> None:
    assert "4 cells (2 more jobs name one of them again)" in failing.ended.stdout
    names = [run.info.run_name for run in runs(failing.folder, study="failing")]
    assert Counter(name for name in names if name.endswith("none")).total() == 1


@pytest.mark.parametrize("sweep", ["failing", "refused"])  # the one has finished cells too
def test_a_key_is_in_nothing_that_a_sweep_wrote(sweep: str, request: pytest.FixtureRequest, shared_cache: Path) -> None:
    swept: Faulty = request.getfixturevalue(sweep)
    assert swept.authorisations == {f"Bearer {KEY}"}
    assert KEY not in swept.ended.stdout + swept.ended.stderr
    assert files_with(KEY, swept.folder, shared_cache) == []
    assert files_with("gpt-4o-mini", swept.folder, shared_cache) != [], "the search finds what is there"


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("form", ["https://me:{}@localhost/v1", "https://localhost/v1?api-key={}"])
def test_a_secret_in_an_address_reaches_no_file_and_no_screen(
    command: Command, workspace: Path, form: str, several: bool
) -> None:
    # The other cell's address is sound, and its model has the same label.
    url = f"weights.gpt.endpoint.url='{form.format(KEY)}'" + (",http://127.0.0.1:9/v1" if several else "")
    ended = command(
        "run.py", *(["-m"] if several else []), "model=gpt", "weights=study", url, "data.split.test=6",
        "cache=cache", OPENAI_API_KEY="another",
    )  # fmt: skip
    assert ended.returncode == 2
    assert "weights.gpt.endpoint.url holds a" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert KEY not in ended.stdout + ended.stderr
    assert files_with(KEY, workspace) == []
    assert not (workspace / "mlflow.db").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["model=majority,gpt", "weights=study"], r"OPENAI_API_KEY, which is not set: .*weights=embedded"),
        (["model=majority", "perturb=typo,redact", "level=low", "~keep.redact", "~perturb.levels.low"], "has no level"),
        (["model=majority,llama", "prompt.shots=5000"], "prompt.shots=5000, but the pool for prompts holds"),
        (["model=majority,llama", "prompt=json"], "prompt.format=json_schema asks for an object, and model=llama"),
        (
            ["model=majority,llama", "prompt=chain_of_thought"],
            "has the model reason before it answers, and model=llama",
        ),
        (["model=majority,gpt", "prompt=json"], "the embedded one does not: give prompt=json_in_words"),
        (
            ["model=majority", "task.label_order=given,random"],
            "task.label_order='random' of task sentiment: give given",
        ),
        (["model=majority", "perturb.words=all,nouns"], "perturb=typo: words='nouns' is none of all, medical, others"),
        (
            ["model=gpt", "model.batch=true", "perturb=none,typo"],
            "the embedded server has none: give model.batch=false",
        ),
        (["model=majority", "repeat=0,-1"], "repeat=-1: give a whole number of 0 or more"),
        (
            ["model=majority,gpt", "prompt.format=xml"],
            "prompt.format='xml' of prompt study: give text or json or json_schema",
        ),
        (["model=majority", "level=low,lowest"], "there is no level 'lowest'. There are high, low, mid"),
        (["model=majority", "level=low,mid", "+perturb.foo=1"], "perturb.foo=1: Disturbance takes no 'foo'"),
    ],
    ids=[
        "no key",
        "no such level of a perturbation",
        "too many shots",
        "no schema here",
        "no reasoning here",
        "no schema there",
        "no such order of labels",
        "no such choice of words",
        "no batches here",
        "no such repeat",
        "no such format",
        "no such level",
        "no such setting",
    ],
)
def test_a_command_that_cannot_be_run_is_told_in_a_sentence_before_any_work(
    command: Command, workspace: Path, arguments: list[str], said: str
) -> None:
    ended = command("run.py", "-m", "data.split.test=6", *arguments)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert said.replace(r".*", "") in ended.stderr or all(part in ended.stderr for part in said.split(".*"))
    assert "Traceback" not in ended.stderr
    assert "Warning" not in ended.stderr
    assert ended.stdout == ""
    assert not (workspace / "mlflow.db").exists(), "no run is made"


@pytest.mark.slow
def test_a_journal_that_cannot_be_written_ends_the_sweep(command: Command, workspace: Path) -> None:
    (workspace / "own").mkdir()
    with Journal(workspace / "own" / "journal.sqlite").writing() as writer:
        writer.db.execute(
            "create trigger full before insert on replies begin select raise(abort, 'database or disk is full'); end"
        )
    ended = command("run.py", "-m", "model=majority", "perturb=typo", "level=low,mid", "data.split.test=6", "cache=own")
    assert ended.returncode == 1
    assert Counter(table(ended).values()) == {"failed": 1, "not run": 1}
    assert "own/journal.sqlite cannot be used: database or disk is full; see that the disk has room" in ended.stderr


def test_a_single_cell_that_is_done_says_so(nine: Study, run: Command) -> None:
    ended = run("model=majority", "perturb=typo", "level=mid", "data.split.test=6")
    assert ended.returncode == 0, ended.stderr
    assert "sentiment · majority · typo · mid" in ended.stdout
    assert "reused" in ended.stdout
    assert len(runs(nine.folder)) == 9


@pytest.mark.slow
def test_two_workers_run_every_cell_once(nine: Study, run: Command) -> None:
    grid = ("-m", "model=majority", "perturb=none,typo", "level=low,mid", "data.split.test=6", "study=workers")
    ended = run(*grid, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert ended.returncode == 0, ended.stderr
    assert Counter(table(ended).values()) == {"done": 3}  # the baseline stands there twice
    assert list(statuses(nine.folder, study="workers").values()) == ["FINISHED"] * 3
    assert len(runs(nine.folder, study="workers")) == 3


@pytest.mark.slow
def test_an_interrupted_sweep_keeps_what_is_finished_and_goes_on_from_there(
    nine: Study, run: Command, shared_cache: Path
) -> None:
    # A seed of its own: no other test's replies may answer for this one.
    grid = ("-m", "model=gpt", "perturb=none,typo", "level=low,mid", "data.split.test=10", "seed=77", "study=cut")
    with started(nine.folder, shared_cache, "run.py", *grid) as sweep:
        assert sweep.stdout
        for line in sweep.stdout:
            if line.startswith("[1/"):
                break
        wait_for(lambda: rows(nine.folder / "mlflow.db", "runs where status = 'RUNNING'") == 2, 60)  # sweep and cell
        assert servers_of(sweep.pid)
        os.kill(sweep.pid, signal.SIGINT)
        said, warned = sweep.communicate(timeout=60)
    assert sweep.returncode == 130
    assert "the same command goes on from here" in warned
    assert "Traceback" not in warned
    assert "1 done, 1 killed, 1 not run" in said
    first, second = runs(nine.folder, study="cut")
    assert (first.info.status, second.info.status) == ("FINISHED", "KILLED")
    assert statuses(nine.folder, "sweep", "cut").popitem()[1] == "KILLED"
    assert not processes_of(sweep.pid)
    wait_for(lambda: not servers_of(sweep.pid), 20)
    kept = rows(shared_cache / "journal.sqlite", "replies")

    again = run(*grid)
    assert again.returncode == 0, again.stderr
    assert Counter(table(again).values()) == {"reused": 1, "done": 2}
    assert first.info.run_id in {
        one.info.run_id for one in runs(nine.folder, study="cut") if one.info.status == "FINISHED"
    }
    assert Counter(one.info.status for one in runs(nine.folder, study="cut")) == {"FINISHED": 3, "KILLED": 1}
    assert rows(shared_cache / "journal.sqlite", "replies") > kept > 0


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def processes_of(session: int) -> list[int]:
    """Return the processes that still live in a command's session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == session:
                    found.append(int(entry.name))
            except ProcessLookupError:
                pass
    return found


def servers_of(owner: int) -> list[str]:
    """Return the loopback servers that a sweep started; they live in sessions of their own."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(entry.read_bytes().replace(b"\0", b" ").decode())
    return [line for line in lines if f"--owner {owner} " in line]


def rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        count: int = db.execute(f"select count(*) from {table}").fetchone()[0]
    return count
