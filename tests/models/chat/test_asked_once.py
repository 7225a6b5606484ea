"""What several processes need at the same time is asked once: requests are counted by a real server."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Ended
from faulty import Faulty, running

pytestmark = pytest.mark.slow

CONF = Path(__file__).parents[3] / "conf"

# Imports once; then each line it reads, "JOURNAL FIRST-END FIRST-END ...", is a process a range that asks these texts.
PROCESSES = """
import os, sys
from pathlib import Path
import openai
from hydra.utils import instantiate
from noisyhealth import calls, settings
from noisyhealth.models.chat.endpoint import Remote
from noisyhealth.models.model import reply_key
from noisyhealth.records import Query, Training
from noisyhealth.text.prompt import Prompt, Wording
from noisyhealth.tracking.journal import Journal
[cfg] = settings.compose(Path(sys.argv[1]), ["model=gpt", "weights=study", "model.concurrency=4", "model.retries=9"])
model = instantiate(cfg.model, _convert_="all")
model.prompt = Prompt("bare", shots=0, shot_seed=0, system="", user="{block}", answer="{answer}")
model.endpoint = Remote("m", sys.argv[2], "m", "")
model.fit(Wording("", "", "{text}"), Training((), (), ()))
for line in sys.stdin:
    journal, *ranges = line.split()
    children = []
    for asked in ranges:
        queries = [Query(str(at), f"{journal} {at}", "", ()) for at in range(*map(int, asked.split("-")))]
        children.append(os.fork())
        if not children[-1]:
            try:
                calls.ask(model, queries, [reply_key(model, query) for query in queries], Journal(Path(journal)))
                os._exit(0)
            finally:
                os._exit(1)
    print(*children, flush=True)
    print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children), flush=True)
"""


@dataclass
class Asking:
    """Processes that ask texts of a server, and how often each text was asked."""

    process: subprocess.Popen[str]
    server: Faulty

    def start(self, journal: Path, *ranges: str) -> list[int]:
        """Start a process a range of texts; returns their ids."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{journal} {' '.join(ranges)}\n")
        self.process.stdin.flush()
        return self._numbers()

    def ended(self) -> list[int]:
        """Wait for all, and return their exit codes."""
        return self._numbers()

    def asked(self, journal: Path) -> Counter[str]:
        """Return how often each text of a journal was asked."""
        return Counter(text for _, text, _ in self.server.calls if text.startswith(f"{journal} "))

    def _numbers(self) -> list[int]:
        assert self.process.stdout is not None
        return [int(word) for word in self.process.stdout.readline().split()]


@pytest.fixture(scope="module")
def server() -> Iterator[Faulty]:
    with running(Faulty(latency=0.02)) as faulty:
        yield faulty


@pytest.fixture(scope="module")
def asking(server: Faulty) -> Iterator[Asking]:
    command = [sys.executable, "-c", PROCESSES, str(CONF), server.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        yield Asking(started, server)
        assert started.stdin is not None
        started.stdin.close()


@pytest.mark.parametrize(
    "ranges",
    [
        ["0-60"] * 4,
        ["0-60", "20-80", "40-100", "0-100"],
        ["0-40", "40-80", "80-120", "0-120"],
        ["0-50", "25-75", "50-100", "10-20", "0-100", "60-61", "30-90", "0-100"],
    ],
    ids=["all the same", "a chain", "one wants what three ask", "eight"],
)
def test_processes_that_share_texts_ask_each_once(asking: Asking, tmp_path: Path, ranges: list[str]) -> None:
    journal = tmp_path / "journal.sqlite"
    asking.start(journal, *ranges)
    assert asking.ended() == [0] * len(ranges)
    wanted = {at for asked in ranges for at in range(*map(int, asked.split("-")))}
    assert asking.asked(journal) == {f"{journal} {at}": 1 for at in wanted}


def test_what_a_killed_process_was_asking_is_asked_by_those_that_wait_for_it(asking: Asking, tmp_path: Path) -> None:
    journal, before = tmp_path / "journal.sqlite", len(asking.server.calls)
    first, *_ = asking.start(journal, "0-300", "0-300", "100-300")
    while len(asking.server.calls) < before + 40:
        time.sleep(0.001)
    os.kill(first, signal.SIGKILL)
    codes = asking.ended()
    assert codes[1:] == [0, 0]
    assert codes[0] == -signal.SIGKILL
    asked = asking.asked(journal)
    assert len(asked) == 300
    assert asked.total() <= 300 + 4, "beyond what was under way, nothing is asked again"


def test_four_workers_of_a_sweep_ask_each_text_once(
    command: Callable[..., Ended], workspace: Path, server: Faulty
) -> None:
    before = len(server.calls)
    ended = command(
        "run.py", "-m", "model=gpt", "weights=study", f"weights.gpt.endpoint.url={server.url}",
        "weights.gpt.endpoint.key_variable=", "perturb=none,typo,redact", "level=low,mid,high", "data.split.test=20",
        "cache=cache", "hydra/launcher=joblib", "hydra.launcher.n_jobs=4",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "7 done" in ended.stdout
    with closing(sqlite3.connect(workspace / "cache" / "journal.sqlite")) as db:
        requests = [json.loads(request) for (request,) in db.execute("select request from replies")]
    asked = Counter(text for _, text, _ in server.calls[before:])
    assert asked == Counter(request["messages"][-1]["content"] for request in requests)
    assert set(asked.values()) == {1}
    assert len(asked) > 100
