"""Texts handed over as a batch: nothing is lost, nothing is paid for twice, whatever dies in between."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from threading import Thread
from typing import IO

import pytest
from batching import (
    CONTENT,
    CREATE,
    DELETE,
    LIST,
    LOOK,
    PASSING,
    ROUTES,
    TORN,
    UPLOAD,
    Batching,
    completion,
    error,
    running,
)
from conftest import KEY, Ended
from hydra.utils import instantiate
from omegaconf import DictConfig

from noisyhealth import experiment, plan
from noisyhealth.errors import CallError, ConfigError, RefusedError
from noisyhealth.models.chat import handover
from noisyhealth.models.chat.chat import Chat
from noisyhealth.models.chat.endpoint import Remote
from noisyhealth.models.model import FREE, Price, reply_key
from noisyhealth.records import Query, Reply, Training
from noisyhealth.text.prompt import Prompt, Wording
from noisyhealth.tracking.journal import Journal

BARE = Prompt("bare", shots=0, shot_seed=0, system="", user="{block}", answer="Answer: {answer}")
QUERIES = [Query(f"id-{n}", f"text {n}", "", ("positive", "negative")) for n in range(40)]


@pytest.fixture
def serve() -> Iterator[Callable[..., Batching]]:
    """Start a server that does as told; it ends with the test."""
    with ExitStack() as servers:
        yield lambda **how: servers.enter_context(running(Batching(**how)))


@pytest.fixture(scope="module")
def made(configured: Callable[..., DictConfig]) -> Chat:
    settings = ("model.batch=true", "model.poll_seconds=0.005", "model.retries=2")
    found: Chat = instantiate(configured("model=gpt", "weights=study", *settings).model, _convert_="all")
    return found


@pytest.fixture(autouse=True)
def prompt_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "UNSEEN_SECONDS", 0.0)


@pytest.fixture
def model(made: Chat, workspace: Path) -> Chat:
    """The configured client of the study, which asks in batches."""
    return replace(made, prompt=BARE, cache=str(workspace / "own"))


def at(model: Chat, server: Batching, **settings: object) -> Chat:
    """The model of the test at a server that wants the test's key."""
    os.environ["OPENAI_API_KEY"] = KEY  # the workspace puts the environment back
    made = replace(model, endpoint=Remote("gpt-4o", server.url, "gpt-4o", "OPENAI_API_KEY"), **settings)
    made.fit(Wording(role="", instruction="", block="{text}"), Training((), (), ()))
    return made


def ask(model: Chat, count: int = 3) -> dict[str, Reply]:
    replies = list(model.predict(QUERIES[:count]))
    assert sorted(r.id for r in replies) == sorted(q.id for q in QUERIES[:count])
    return {r.id: r for r in replies}


def study(model: Chat, folder: Path, queries: list[Query] = QUERIES) -> list[str]:
    """Ask as a cell does, and return the texts of the replies."""
    keys = [reply_key(model, query) for query in queries]
    return [reply.text for reply in experiment.ask(model, queries, keys, Journal(folder / "journal.sqlite"))]


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "own" / "batches").glob("*.json"))


def answers(queries: list[Query] = QUERIES) -> list[str]:
    return [f"Answer: {query.text}" for query in queries]


def test_every_reply_answers_its_own_question_and_is_found_by_who_asks_directly(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path
) -> None:
    server = serve(looks=2)
    batched = at(model, server)
    assert study(batched, tmp_path) == answers()
    assert server.paid == Counter(query.text for query in QUERIES)
    directly = replace(batched, batch=False)
    directly.fit(Wording(role="", instruction="", block="{text}"), Training((), (), ()))
    assert [reply_key(directly, query) for query in QUERIES] == [reply_key(batched, query) for query in QUERIES]
    assert study(directly, tmp_path) == answers()
    assert (server.paid.total(), len(server.batches)) == (40, 1)


def test_a_reply_of_a_batch_is_read_as_any_other_and_names_its_batch(
    model: Chat, serve: Callable[..., Batching]
) -> None:
    [reply] = ask(at(model, serve()), 1).values()
    assert (reply.text, reply.finish, reply.prompt_tokens, reply.reply_tokens) == ("Answer: text 0", "stop", 7, 3)
    assert reply.detail["server_model"] == "server-model"
    assert reply.detail["batch"] == "batch_1"


def test_a_request_of_a_batch_is_the_one_that_is_sent_directly(model: Chat, serve: Callable[..., Batching]) -> None:
    server = serve(faults={DELETE: ["500"] * 3})
    ask(at(model, server), 1)
    [line] = server.files["file-1"].splitlines()
    assert json.loads(line) == {
        "custom_id": "id-0",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {
            "model": "gpt-4o",
            "messages": [{"role": "system", "content": ""}, {"role": "user", "content": "text 0"}],
            "max_tokens": 200,
            "temperature": 0.0,
            "frequency_penalty": 0.0,
            "seed": 0,
        },
    }


LINES = {
    "too long": (error(400, "too long", "context_length_exceeded"), "length", "context_length_exceeded"),
    "filter": (error(400, "the prompt triggered the policy", "content_filter"), "content_filter", "content_filter"),
    "500": (error(500, "oops"), "error", "Error code: 500"),
    "429": (error(429, "slow down", "rate_limit_exceeded"), "error", "Error code: 429"),
    "no choices": ((200, {**completion(""), "choices": []}), "error", "the server sent no message but"),
    "no object": ((200, "oops"), "error", "the server sent no message but 'oops'"),
    "no line": (None, "error", "batch_1 is completed and has no line for it"),
    "usage is no object": ((200, {**completion(""), "usage": "x"}), "error", "the server sent no message but"),
    "tokens are no numbers": (
        (200, {**completion(""), "usage": {"prompt_tokens": "x", "completion_tokens": 3}}),
        "error",
        "the server sent no message but",
    ),
    "the end is no word": (
        (200, {**completion(""), "choices": [{"message": {"content": "a"}, "finish_reason": ["stop"]}]}),
        "error",
        "the server sent no message but",
    ),
    "no response": ('{"custom_id": "{key}", "response": null, "error": null}', "error", "a line without a reply"),
}


@pytest.mark.parametrize(("line", "finish", "said"), LINES.values(), ids=LINES)
def test_a_text_without_a_reply_says_why_and_keeps_no_other_from_its_own(
    model: Chat, serve: Callable[..., Batching], line: object, finish: str, said: str
) -> None:
    replies = ask(at(model, serve(lines={"text 1": line})))
    assert [replies[q.id].finish for q in QUERIES[:3]] == ["stop", finish, "stop"]
    assert replies["id-1"].text == ""
    assert said in str(replies["id-1"].detail["error"])
    assert KEY[:8] not in repr(replies)


@pytest.mark.parametrize("counting", [True, False])
@pytest.mark.parametrize("fault", TORN)
def test_a_file_that_stays_incomplete_gives_nothing_up_and_the_next_command_collects_the_rest(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path, fault: str, counting: bool
) -> None:
    server = serve(counting=counting, faults={CONTENT: [fault] * 4})
    asked = at(model, server)
    with pytest.raises(RefusedError, match=r"file of batch_1 is incomplete.* nothing was given up: run the same"):
        study(asked, tmp_path)
    assert server.served == [(CONTENT, fault)] * 4
    assert (len(kept(tmp_path)), server.requests[DELETE]) == (1, 0)
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as db:
        assert db.execute("select count(*) from replies").fetchone() == (0 if fault == "empty" else 20,)
    assert study(asked, tmp_path) == answers()
    assert server.paid == Counter(query.text for query in QUERIES)
    assert (len(server.batches), kept(tmp_path)) == (1, [])


@pytest.mark.parametrize("line", ['{"custom_id": "{key}", "respon', "[1, 2]"])
def test_a_line_that_cannot_be_read_is_not_given_up_before_its_record_is_deleted(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path, line: str
) -> None:
    server = serve(lines={"text 1": line})
    asked = at(model, server)
    with pytest.raises(RefusedError, match="is incomplete, only 39 of its lines") as refused:
        study(asked, tmp_path)
    [record] = kept(tmp_path)
    assert f"delete {record} to ask the other texts anew" in str(refused.value)
    record.unlink()
    server.lines.clear()
    assert study(asked, tmp_path) == answers()
    assert server.paid - Counter(query.text for query in QUERIES) == Counter({"text 1": 1})


REFUSED = {
    "key": (error(401, "not like this"), "set the environment variable OPENAI_API_KEY to a key that it accepts"),
    "permission": (error(403, "not like this"), "set the environment variable OPENAI_API_KEY to a key that may"),
    "model": (error(404, "not like this"), "check weights.gpt.endpoint.model"),
    "setting": (error(400, "not like this", "unsupported_parameter"), "change the setting that it names"),
    "quota": (error(429, "not like this", "insufficient_quota"), "top up the account"),
}


@pytest.mark.parametrize(("line", "advice"), REFUSED.values(), ids=REFUSED)
def test_a_line_that_would_be_refused_again_ends_everything_after_the_others_are_kept(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path, line: object, advice: str
) -> None:
    server = serve(lines={"text 1": line})
    asked = at(model, server)
    with pytest.raises(RefusedError) as refused:
        study(asked, tmp_path)
    assert f"refuses to answer: APIStatusError: Error code: {line[0]}" in str(refused.value)  # type: ignore[index]
    assert f"; {advice}" in str(refused.value)
    server.lines.clear()
    assert study(asked, tmp_path) == answers()
    assert server.paid - Counter(query.text for query in QUERIES) == Counter({"text 1": 1})


NOT_BEGUN = {
    "billing_hard_limit_reached": "top up the account",
    "token_limit_exceeded": "wait until the account's other batches are done",
    "model_not_found": "check weights.gpt.endpoint.model",
    "invalid_json_line": "change the setting that it names",
}


@pytest.mark.parametrize(("code", "advice"), NOT_BEGUN.items())
def test_a_batch_that_was_not_begun_ends_everything_in_the_provider_s_words(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path, code: str, advice: str
) -> None:
    server = serve(endings=["failed"], errors=[{"code": code, "message": f"No more for {KEY}", "line": 1}])
    asked = at(model, server)
    with pytest.raises(RefusedError) as refused:
        study(asked, tmp_path)
    assert f"batch_1 failed: {code}: No more for [key]; {advice}" in str(refused.value)
    assert (server.paid.total(), kept(tmp_path), server.files) == (0, [], {})
    assert study(asked, tmp_path) == answers()


@pytest.mark.parametrize("ending", ["expired", "cancelled"])
def test_of_a_batch_that_was_ended_what_was_answered_is_kept_and_the_rest_asked_by_the_next_command(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path, ending: str
) -> None:
    server = serve(endings=[ending], done=25)
    asked = at(model, server)
    with pytest.raises(CallError, match=f"15 of 40 texts .* were lost .*{ending}.*run the same command again"):
        study(asked, tmp_path)
    server.done = 99
    assert study(asked, tmp_path) == answers()
    assert server.paid == Counter(query.text for query in QUERIES)
    assert len(server.batches) == 2


@pytest.mark.parametrize(
    ("route", "fault"), [*product([UPLOAD, CREATE, LOOK, CONTENT, DELETE], PASSING), *product([CONTENT], TORN)]
)
def test_a_fault_that_passes_costs_nothing_and_loses_nothing(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path, route: str, fault: str
) -> None:
    server = serve(faults={route: [fault]})
    assert study(at(model, server), tmp_path) == answers()
    assert server.paid == Counter(query.text for query in QUERIES)
    assert (len(server.batches), kept(tmp_path)) == (1, [])
    assert server.requests[LIST] == (route == CREATE)
    assert server.served == [(route, fault)]


def test_any_mix_of_faults_ends_with_every_reply_paid_for_once(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "MOST_REQUESTS", 15)
    server = serve(seed=3, share=0.3)
    assert study(at(model, server, retries=10), tmp_path) == answers()
    assert server.paid == Counter(query.text for query in QUERIES)


@pytest.mark.parametrize("route", [UPLOAD, CREATE, LOOK, CONTENT])
@pytest.mark.parametrize(
    ("fault", "advice"), [("401", "set the environment variable OPENAI_API_KEY"), ("quota", "top up"), ("404", "")]
)
def test_a_refusal_ends_everything_at_once_in_a_sentence_and_the_next_command_goes_on(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path, route: str, fault: str, advice: str
) -> None:
    server = serve(faults={route: [fault]})
    asked = at(model, server)
    with pytest.raises(RefusedError) as refused:
        study(asked, tmp_path)
    assert server.requests[route] == 1
    said = str(refused.value)
    assert said.startswith(f"gpt(gpt-4o) at {server.url} refuses to answer: ")
    assert f"; {advice}" in said
    assert KEY[:8] not in said
    assert "\n" not in said
    if route == CREATE:
        assert (server.files, kept(tmp_path)) == ({}, [])
    if fault == "404" and route in (UPLOAD, CREATE):
        assert "give model.batch=false where the server has no batch API" in said
    if fault == "404" and route in (LOOK, CONTENT):
        assert f"or delete {kept(tmp_path)[0]} to ask its texts anew" in said
    assert study(asked, tmp_path) == answers()
    assert server.paid == Counter(query.text for query in QUERIES)


def test_a_server_that_is_not_there_ends_everything_in_a_sentence(model: Chat, serve: Callable[..., Batching]) -> None:
    gone = at(model, Batching(url="http://127.0.0.1:9/v1"), retries=0)
    with pytest.raises(RefusedError, match=r"no server answers at http://127.0.0.1:9/v1 .*; start it or correct"):
        list(gone.predict(QUERIES))


def test_a_server_that_is_gone_for_a_few_looks_is_waited_for(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path
) -> None:
    server = serve(faults={LOOK: ["500"] * 7})
    assert study(at(model, server, retries=0), tmp_path) == answers()
    server.faults[LOOK] = ["500"] * 8
    with pytest.raises(RefusedError, match="wait until it is well"):
        list(at(model, server, retries=0).predict(QUERIES))


@pytest.mark.parametrize(("limit", "value"), [("MOST_REQUESTS", 15), ("MOST_BYTES", 4000)])
def test_more_than_a_batch_may_hold_becomes_several(
    model: Chat,
    serve: Callable[..., Batching],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
) -> None:
    monkeypatch.setattr(handover, limit, value)
    server = serve(faults={DELETE: ["500"] * 99})
    assert study(at(model, server), tmp_path) == answers()
    sizes = [len(asked) for asked in server.texts_asked.values()]
    assert len(sizes) > 2
    assert sum(sizes) == 40
    bounded = sizes if limit == "MOST_REQUESTS" else [len(server.files[f"file-{at + 1}"]) for at in range(len(sizes))]
    assert max(bounded) <= value
    last_created = len(server.log) - 1 - server.log[::-1].index(CREATE)
    assert last_created < server.log.index(LOOK), "all are handed over before one is waited for"


def test_replies_that_nobody_wanted_yet_are_collected_when_somebody_does(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path
) -> None:
    server = serve()
    asked = at(model, server)
    handed = [replace(query, id=reply_key(asked, query)) for query in QUERIES]
    asked.predict(handed)  # and nothing is asked of it
    assert study(asked, tmp_path, QUERIES[:10]) == answers(QUERIES[:10])
    assert len(kept(tmp_path)) == 1
    assert "file-1" in server.files
    assert study(asked, tmp_path) == answers()
    assert kept(tmp_path) == []
    assert "file-1" not in server.files, "what was uploaded is deleted"
    assert (server.paid.total(), len(server.batches)) == (40, 1)


def test_another_model_s_batches_are_left_alone(model: Chat, serve: Callable[..., Batching], tmp_path: Path) -> None:
    server = serve()
    at(model, server).predict(QUERIES)
    other = at(model, server)
    other.endpoint = replace(other.endpoint, model="gpt-5")
    assert study(other, tmp_path) == answers()
    assert len(kept(tmp_path)) == 1


def test_ctrl_c_says_that_a_batch_goes_on_and_the_same_command_collects_it(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve(looks=10**9)
    asked = at(model, server)

    def interrupt() -> None:
        while not server.requests[LOOK]:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        study(asked, tmp_path)
    told = capsys.readouterr()
    assert "40 texts of gpt(gpt-4o) are handed over as batch_1; it may take 24h" in told.out
    assert "(batch_1) goes on at the provider; the same command collects it" in told.err
    server.batches["batch_1"]["looks"] = 0
    assert study(asked, tmp_path) == answers()
    assert "batch_1, handed over before, has 40 texts of gpt(gpt-4o)." in capsys.readouterr().out
    assert server.paid.total() == 40


@pytest.mark.parametrize("retries", [0, 2], ids=["by the next command", "by the same one"])
def test_a_batch_that_the_list_shows_late_is_not_paid_for_twice(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retries: int
) -> None:
    monkeypatch.setattr(handover, "UNSEEN_SECONDS", 30.0)
    server = serve(faults={CREATE: ["cut after"]}, unseen=3)
    asked = at(model, server, retries=retries)
    if not retries:
        with pytest.raises(RefusedError):
            study(asked, tmp_path)
    assert study(asked, tmp_path) == answers()
    assert (server.paid.total(), len(server.batches), server.requests[LIST]) == (40, 1, 4)


def test_a_list_is_read_no_further_back_than_a_batch_can_be(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path
) -> None:
    server = serve(faults={CREATE: ["429"]})
    old = {"object": "batch", "created_at": 1, "metadata": None}
    server.batches = {f"old_{n}": {**old, "id": f"old_{n}"} for n in range(9)}
    assert study(at(model, server), tmp_path) == answers()
    assert server.requests[LIST] == 1


def test_what_was_uploaded_for_a_batch_that_never_was_is_deleted_by_the_next_command(
    model: Chat, serve: Callable[..., Batching], tmp_path: Path
) -> None:
    server = serve(faults={CREATE: ["500"]})
    asked = at(model, server, retries=0)
    with pytest.raises(RefusedError):
        study(asked, tmp_path)
    assert list(server.files) == ["file-1"]
    server.looks = 10**9
    asked.predict(QUERIES)
    assert [file for batch in server.batches.values() for file in [batch["input_file_id"]]] == list(server.files)
    assert server.requests[DELETE] == 1


@pytest.mark.parametrize("route", [UPLOAD, CREATE, LOOK])
def test_ctrl_c_at_any_moment_names_all_batches_that_are_out(
    model: Chat,
    serve: Callable[..., Batching],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    route: str,
) -> None:
    monkeypatch.setattr(handover, "MOST_REQUESTS", 15)
    server = serve(looks=10**9)
    asked = at(model, server)
    asked.predict(QUERIES[:30])  # two batches, which the next call does not wait for

    def interrupt(where: str) -> str:
        if where == route:
            server.meet = lambda _: ""  # type: ignore[method-assign]
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return ""

    server.meet = interrupt  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        list(asked.predict(QUERIES[30:]))
    told = capsys.readouterr().err
    out = {name for name in ("batch_1", "batch_2", "batch_3") if name in told}
    assert out == {"batch_1", "batch_2", *(["batch_3"] if route == LOOK else [])}
    assert "goes on at the provider; the same command collects it" in told
    assert ("may have arrived; the same command looks for it" in told) == (route != LOOK)


def test_a_batch_costs_its_share_of_the_price(model: Chat) -> None:
    assert replace(model, batch=False).price() == Price(0.15, 0.60)
    assert model.price() == Price(0.075, 0.30)
    assert replace(model, batch_share=1.0).price() == Price(0.15, 0.60)
    assert replace(model, prices={}).price() is None
    model.fit(Wording(role="", instruction="", block="{text}"), Training((), (), ()))
    cost, full = plan.cost(model, QUERIES[0]), Price(0.15, 0.60)
    assert cost.in_money(model.price() or FREE).high == pytest.approx(cost.in_money(full).high / 2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"poll_seconds": 0.0}, "model.poll_seconds=0.0: give seconds above 0"),
        ({"batch_share": 0.0}, "model.batch_share=0.0: give a fraction"),
        ({"batch_share": 1.5}, "model.batch_share=1.5: give a fraction"),
    ],
)
def test_a_setting_that_makes_no_sense_is_said_before_any_work(
    model: Chat, settings: dict[str, float], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        replace(model, endpoint=Remote("m", "http://127.0.0.1:9/v1", "m", ""), **settings).check()


def test_the_embedded_server_has_no_batches_and_that_is_said_before_any_work(
    configured: Callable[..., DictConfig],
) -> None:
    made: Chat = instantiate(configured("model=gpt", "model.batch=true").model, _convert_="all")
    with pytest.raises(ConfigError, match=r"model.batch=true .* give model.batch=false, or weights=study"):
        made.check()


# Imports once; then each line it reads is a process of its own that asks all texts, as a cell does.
PROCESSES = """
import os, sys
from pathlib import Path
import openai
from hydra.utils import instantiate
from noisyhealth import experiment, settings
from noisyhealth.models.chat import handover
from noisyhealth.models.chat.endpoint import Remote
from noisyhealth.models.model import reply_key
from noisyhealth.records import Query, Training
from noisyhealth.text.prompt import Prompt, Wording
from noisyhealth.tracking.journal import Journal
handover.UNSEEN_SECONDS = 0.0
conf, url, texts = sys.argv[1:]
chosen = ["model=gpt", "weights=study", "model.batch=true", "model.poll_seconds=0.01", "model.cache=."]
[cfg] = settings.compose(Path(conf), chosen)
model = instantiate(cfg.model, _convert_="all")
model.prompt = Prompt("bare", shots=0, shot_seed=0, system="", user="{block}", answer="{answer}")
model.endpoint = Remote("m", url, "m", "OPENAI_API_KEY")
model.fit(Wording("", "", "{text}"), Training((), (), ()))
for line in sys.stdin:
    folder, children = Path(line.split()[0]), int(line.split()[1])
    model.cache = str(folder)
    queries = [Query(str(at), f"{folder.name} {at}", "", ()) for at in range(int(texts))]
    keys = [reply_key(model, query) for query in queries]
    born = []
    for _ in range(children):
        child = os.fork()
        if not child:
            os.dup2(2, 1)
            try:
                experiment.ask(model, queries, keys, Journal(folder / "journal.sqlite"))
                os._exit(0)
            finally:
                os._exit(1)
        born.append(child)
    print(*born, flush=True)
    print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in born), flush=True)
"""
TEXTS = 60


@pytest.fixture(scope="module")
def shared() -> Iterator[Batching]:
    with running(Batching()) as server:
        yield server


@pytest.fixture(scope="module")
def processes(shared: Batching) -> Iterator[subprocess.Popen[str]]:
    conf = str(Path(__file__).parents[3] / "conf")
    command = [sys.executable, "-c", PROCESSES, conf, shared.url, str(TEXTS)]
    environment = {**os.environ, "OPENAI_API_KEY": KEY}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as started:
        yield started
        assert started.stdin is not None
        started.stdin.close()


def born(processes: subprocess.Popen[str], folder: Path, children: int = 1) -> list[int]:
    assert processes.stdin is not None
    processes.stdin.write(f"{folder} {children}\n")
    processes.stdin.flush()
    return numbers(processes.stdout)


def numbers(pipe: IO[str] | None) -> list[int]:
    assert pipe is not None
    return [int(number) for number in pipe.readline().split()]


def check(server: Batching, folder: Path) -> None:
    """Every text of a folder has its reply, was paid for once, and no file holds the key."""
    texts = [f"{folder.name} {at}" for at in range(TEXTS)]
    assert [server.paid[text] for text in texts] == [1] * TEXTS
    assert not [path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    with closing(sqlite3.connect(folder / "journal.sqlite")) as db:
        rows = db.execute("select request, reply from replies").fetchall()
    replies = {json.loads(request)["messages"][-1]["content"]: json.loads(reply)["text"] for request, reply in rows}
    assert replies == {text: f"Answer: {text}" for text in texts}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("route", ROUTES)
def test_a_kill_around_any_request_loses_nothing_and_pays_for_nothing_twice(
    shared: Batching, processes: subprocess.Popen[str], tmp_path: Path, route: str, moment: str
) -> None:
    folder = tmp_path / f"{route}-{moment}".replace(" ", "-")
    folder.mkdir()
    if route == LIST:  # asked for where a kill left an intent without a batch
        shared.faults = {CREATE: ["kill after"], LIST: [f"kill {moment}"]}
    else:
        shared.faults = {route: [f"kill {moment}"]}
    statuses = []
    while not statuses or statuses[-1]:
        [shared.victim] = born(processes, folder)
        statuses += numbers(processes.stdout)
    assert statuses == [-signal.SIGKILL] * (2 if route == LIST else 1) + [0]
    check(shared, folder)


def test_20_kills_at_any_moment_lose_nothing_and_pay_for_nothing_twice(
    shared: Batching, processes: subprocess.Popen[str], tmp_path: Path
) -> None:
    random, kills, studies = Random(7), 0, 0
    shared.faults, shared.latency = {}, 0.01
    while kills < 20:
        studies += 1
        folder = tmp_path / f"study-{studies}"
        folder.mkdir()
        while True:
            [child] = born(processes, folder)
            if kills < 20:
                time.sleep(random.uniform(0, 0.3))
                with suppress(ProcessLookupError):  # it was faster
                    os.kill(child, signal.SIGKILL)
            [status] = numbers(processes.stdout)
            if status == 0:
                break
            assert status == -signal.SIGKILL
            kills += 1
        check(shared, folder)
    shared.latency = 0.0


def test_processes_that_ask_the_same_share_a_batch(
    shared: Batching, processes: subprocess.Popen[str], tmp_path: Path
) -> None:
    folder = tmp_path / "together"
    folder.mkdir()
    shared.faults, before = {}, len(shared.batches)
    shared.looks = 40
    assert len(born(processes, folder, 4)) == 4
    assert numbers(processes.stdout) == [0] * 4
    shared.looks = 1
    assert len(shared.batches) == before + 1
    check(shared, folder)


def files_with(secret: str, folder: Path) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file() and "weights" not in path.parts)
    return [path for path in files if secret.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_sweep_hands_all_its_texts_over_at_once_and_a_lost_one_fails_its_own_cell(
    serve: Callable[..., Batching], command: Callable[..., Ended], workspace: Path
) -> None:
    # The first text of a batch is a clean one, which all cells ask; the last one belongs to the last cell alone.
    server = serve(looks=3, lines={-1: error(500, "oops"), -12: (200, completion(""))})
    grid = ("-m", "task=sentiment,condition", "model=gpt", "weights=study", "perturb=none,typo", "level=low")
    own = ("data.split.test=6", "cache=own", f"weights.gpt.endpoint.url={server.url}", "budget.calls=24")
    batched = (*grid, *own, "model.batch=true", "model.poll_seconds=0.01")
    first = command("run.py", *batched, OPENAI_API_KEY=KEY)
    assert first.returncode == 1, first.stdout + first.stderr
    assert first.stdout.count("are handed over as batch_") == 2
    assert [len(server.texts_asked[name]) for name in server.batches] == [12, 12]
    assert server.log.index(LOOK) > max(at for at, route in enumerate(server.log) if route == CREATE)
    assert "2 done" in first.stdout
    assert first.stdout.count(": FAILED CallError: 1 of 12 texts put to gpt(gpt-4o-mini) were lost") == 2
    assert KEY not in first.stdout + first.stderr
    assert files_with(KEY, workspace) == []
    assert files_with("gpt-4o-mini", workspace) != [], "the search finds what is there"

    server.lines.clear()
    again = command("run.py", *batched, OPENAI_API_KEY=KEY)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "2 reused" in again.stdout
    # An empty reply is not kept, so it is asked for again, as without batches; but once, not in each cell.
    assert [len(asked) for asked in server.texts_asked.values()] == [12, 12, 2, 2]

    server.faults[UPLOAD] = ["401"]
    refused = command("run.py", *batched, "repeat=1", OPENAI_API_KEY=KEY)
    assert refused.returncode == 1
    assert "Stopped: gpt(gpt-4o-mini) at" in refused.stderr
    assert "set the environment variable OPENAI_API_KEY to a key that it accepts" in refused.stderr
    assert "4 not run" in refused.stdout
    assert KEY not in refused.stdout + refused.stderr
    assert files_with(KEY, workspace) == []
