"""A sweep killed at any moment, 200 times: nothing answered is asked again, and little else."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import IO

import pytest
from faulty import Faulty, running

pytestmark = pytest.mark.slow

KILLS, TEXTS, CONCURRENCY = 200, 200, 8

# Imports once; then each line it reads is a process of its own that asks all texts, as a cell does.
PROCESSES = """
import os, sys
from pathlib import Path
import openai
from hydra.utils import instantiate
from noisyhealth import experiment, settings
from noisyhealth.models.chat.endpoint import Remote
from noisyhealth.models.model import reply_key
from noisyhealth.records import Query, Training
from noisyhealth.text.prompt import Prompt, Wording
from noisyhealth.tracking.journal import Journal
conf, url, texts, concurrency = sys.argv[1:]
[cfg] = settings.compose(Path(conf), ["model=gpt", "weights=study", f"model.concurrency={concurrency}"])
model = instantiate(cfg.model, _convert_="all")
model.prompt = Prompt("bare", shots=0, shot_seed=0, system="", user="{block}", answer="{answer}")
model.endpoint = Remote("m", url, "m", "")
model.fit(Wording("", "", "{text}"), Training((), (), ()))
for line in sys.stdin:
    name, journal = line.split()
    queries = [Query(str(at), f"{name} {at}", "", ()) for at in range(int(texts))]
    child = os.fork()
    if not child:
        try:
            experiment.ask(model, queries, [reply_key(model, query) for query in queries], Journal(Path(journal)))
            os._exit(0)
        finally:
            os._exit(1)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Faulty]:
    with running(Faulty(seed=1, latency=0.02, shares={"429": 0.02, "500": 0.02, "cut": 0.02}, most=1)) as faulty:
        yield faulty


@pytest.fixture(scope="module")
def processes(server: Faulty) -> Iterator[subprocess.Popen[str]]:
    conf = str(Path(__file__).parents[3] / "conf")
    command = [sys.executable, "-c", PROCESSES, conf, server.url, str(TEXTS), str(CONCURRENCY)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        yield started
        assert started.stdin is not None
        started.stdin.close()


def wait_for_calls(server: Faulty, count: int, child: int) -> None:
    """Wait for so many calls in all; raises ProcessLookupError when the process is gone before."""
    while len(server.calls) < count:
        os.kill(child, 0)
        time.sleep(0.001)


def kept(journal: Path) -> dict[str, str]:
    """Return the replies of a journal by the texts they answer."""
    if not journal.exists():
        return {}
    with sqlite3.connect(journal) as db:
        try:
            rows = db.execute("select request, reply from replies").fetchall()
        except sqlite3.OperationalError:  # killed before there was a table
            return {}
    return {json.loads(request)["messages"][-1]["content"]: json.loads(reply)["text"] for request, reply in rows}


def lines(pipe: IO[str] | None) -> str:
    assert pipe is not None
    return pipe.readline().strip()


def test_200_kills_lose_nothing_and_double_nothing_beyond_what_was_under_way(
    server: Faulty, processes: subprocess.Popen[str], tmp_path: Path
) -> None:
    random, kills, sweeps = Random(7), 0, 0
    assert processes.stdin is not None
    while kills < KILLS:
        sweeps += 1
        journal, here, calls = tmp_path / f"{sweeps}.sqlite", 0, len(server.calls)
        while True:
            known, before = kept(journal), len(server.calls)
            processes.stdin.write(f"sweep{sweeps} {journal}\n")
            processes.stdin.flush()
            child = int(lines(processes.stdout))
            if kills < KILLS:
                with suppress(ProcessLookupError):  # it was faster
                    wait_for_calls(server, before + random.randrange(60), child)
                    time.sleep(random.uniform(0, 0.02))
                    os.kill(child, signal.SIGKILL)
            status = int(lines(processes.stdout))
            asked_now = [text for _, text, _ in server.calls[before:]]
            assert not set(asked_now) & known.keys()
            if status == 0:
                break
            assert status == -signal.SIGKILL
            kills, here = kills + 1, here + 1
        texts = [f"sweep{sweeps} {at}" for at in range(TEXTS)]
        assert kept(journal) == {text: f"Answer: {text}" for text in texts}
        faults = sum(len(server.faults.get(text, ())) for text in texts)
        assert len(server.calls) - calls <= TEXTS + faults + here * CONCURRENCY
    assert sweeps > 3
