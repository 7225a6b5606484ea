import logging
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread, main_thread
from threading import enumerate as threads

import pytest
from conftest import KEY, Answering, completion, error, hangs_up, sends, takes
from faulty import FINAL, PASSING, REPLIES, Faulty, running
from hydra.utils import instantiate
from omegaconf import DictConfig

from noisyhealth import experiment
from noisyhealth.errors import CallError, ConfigError, RefusedError, WeightsError
from noisyhealth.models.chat.chat import Chat
from noisyhealth.models.chat.endpoint import Remote
from noisyhealth.models.chat.fault import masked
from noisyhealth.models.model import reply_key
from noisyhealth.records import Outcome, Query, Reply, Training
from noisyhealth.text.prompt import Prompt, Wording
from noisyhealth.text.reply import read_label
from noisyhealth.tracking.journal import Journal

BARE = Prompt("bare", shots=0, shot_seed=0, system="", user="{block}", answer="Answer: {answer}")
QUERIES = [Query(f"id-{n}", f"text {n}", "", ("positive", "negative")) for n in range(40)]


@pytest.fixture
def model(server: Answering, workspace: Path, configured: Callable[..., DictConfig]) -> Chat:
    """The configured client of the study, with the server of this test at its other end."""
    made: Chat = instantiate(configured("model=gpt", "weights=study", "model.retries=2").model, _convert_="all")
    return fitted(replace(made, prompt=BARE, endpoint=Remote("gpt-4o", server.url, "gpt-4o", key_variable="")))


def fitted(model: Chat) -> Chat:
    model.fit(Wording(role="", instruction="", block="{text}"), Training((), (), ()))
    return model


def with_key(model: Chat, monkeypatch: pytest.MonkeyPatch) -> Chat:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return fitted(replace(model, endpoint=replace(model.endpoint, key_variable="OPENAI_API_KEY")))


def ask(model: Chat, count: int = 1) -> dict[str, Reply]:
    replies = list(model.predict(QUERIES[:count]))
    assert sorted(r.id for r in replies) == sorted(q.id for q in QUERIES[:count])
    return {r.id: r for r in replies}


def test_every_answer_names_its_own_question_whatever_the_server_does_in_between(
    model: Chat, server: Answering
) -> None:
    again = (error(429, "slow down", retry_after="0.01"), error(500, "oops"), hangs_up, error(503, "busy"))
    for number in range(0, 40, 4):
        server.faults[f"text {number}"] = [again[number // 4 % len(again)]]
    replies = ask(model, 40)
    assert {r.id: r.text for r in replies.values()} == {q.id: f"Answer: {q.text}" for q in QUERIES}
    assert {r.finish for r in replies.values()} == {"stop"}
    assert server.calls.total() == 50


def test_a_wait_the_server_asks_for_is_kept(model: Chat, server: Answering) -> None:
    server.faults[""] = [error(429, "slow down", retry_after="1.2")]
    start = time.perf_counter()
    assert ask(model)["id-0"].text == "Answer: text 0"
    assert time.perf_counter() - start > 1.1


LOST = {
    "429 again and again": error(429, "slow down", retry_after="0.01"),
    "500 again and again": error(500, "oops", retry_after="0.01"),
    "no choices": sends({**completion("x"), "choices": []}),
    "no message": sends({**completion("x"), "choices": [{"index": 0, "message": None, "finish_reason": "stop"}]}),
    "an error with status 200": sends({"error": {"message": "overloaded"}}),
    "null": sends("null"),
    "a page of a proxy": sends("<html>Bad gateway</html>"),
    "tokens in words": sends({**completion("x"), "usage": "x"}),
    "tokens in parts": sends({**completion("x"), "usage": {"prompt_tokens": 7, "completion_tokens": [3]}}),
    "an end that is a number": sends(completion("x", 3)),  # type: ignore[arg-type]
    "a refusal that is a number": sends({**completion("x"), "choices": [{"message": {"refusal": 3}}]}),
    "JSON that stops half way": sends('{"id": "chatcmpl-1", "choi'),
}


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST)
def test_a_lost_call_is_an_error_with_its_reason_and_never_an_answer(
    model: Chat, server: Answering, fault: Callable[..., None]
) -> None:
    server.faults["text 1"] = [fault] * 3
    replies = ask(model, 3)
    assert [replies[q.id].finish for q in QUERIES[:3]] == ["stop", "error", "stop"]
    lost = replies["id-1"]
    assert lost.text == ""
    assert len(str(lost.detail["error"])) > 10
    assert read_label(lost, ["positive", "negative"]).outcome is Outcome.FAILED


def test_a_connection_that_always_breaks_is_a_lost_call(model: Chat, server: Answering) -> None:
    server.faults["text 0"] = [hangs_up] * 3
    assert ask(replace_retries(model, 1), 2)["id-0"].detail["error"] == "APIConnectionError: Connection error."


@pytest.mark.parametrize("count", [1, 7, 8, 40])
def test_a_server_that_is_not_there_ends_everything_in_a_sentence(model: Chat, count: int) -> None:
    gone = replace_retries(model, 1)
    gone.endpoint = replace(gone.endpoint, url="http://127.0.0.1:9/v1")
    start = time.perf_counter()
    with pytest.raises(RefusedError) as refused:
        list(gone.predict(QUERIES[:count]))
    assert time.perf_counter() - start < 3
    assert str(refused.value) == (
        "gpt(gpt-4o): no server answers at http://127.0.0.1:9/v1 (APIConnectionError: Connection error); start it or "
        "correct weights.gpt.endpoint.url, then run the same command again: what was answered is kept"
    )


def test_a_server_that_dies_in_the_middle_ends_everything_and_what_it_said_is_kept(model: Chat, tmp_path: Path) -> None:
    with ExitStack() as alive:
        server = alive.enter_context(running(Faulty(latency=0.01)))
        asked = at(model, server, retries=1, concurrency=4)
        journal, keys = Journal(tmp_path / "journal.sqlite"), [reply_key(model, query) for query in MANY[:200]]
        Thread(target=lambda: (wait_for_calls(server, 60), alive.close()), daemon=True).start()
        with pytest.raises(RefusedError, match="no server answers at"):
            experiment.ask(asked, MANY[:200], keys, journal)
    kept = journal.get(keys)
    assert 50 <= len(kept) <= len(server.calls) < 200
    assert {reply.text for reply in kept.values()} <= {f"Answer: {query.text}" for query in MANY}


def wait_for_calls(server: Faulty, count: int) -> None:
    while len(server.calls) < count:
        time.sleep(0.005)


@pytest.mark.parametrize("fault", ["500", "503", "429", "no JSON", "a page", "no choices"])
def test_a_server_that_says_anything_at_all_is_there(model: Chat, faulty: Callable[..., Faulty], fault: str) -> None:
    server = faulty(shares={fault: 1.0}, most=9)
    replies = list(at(model, server, retries=0, concurrency=1).predict(MANY[:20]))
    assert {reply.finish for reply in replies} == {"error"}
    assert len(server.calls) == 20


def test_one_answer_among_lost_connections_shows_that_a_server_is_there(model: Chat, server: Answering) -> None:
    for number in range(40):
        server.faults[f"text {number}"] = [hangs_up] * 2 if number % 8 else []
    replies = ask(fitted(replace(model, retries=0, concurrency=1)), 40)
    assert Counter(reply.finish for reply in replies.values()) == {"error": 35, "stop": 5}


def test_a_server_that_dies_before_the_last_texts_ends_everything(model: Chat, tmp_path: Path) -> None:
    with ExitStack() as alive:
        server = alive.enter_context(running(Faulty()))
        replies = at(model, server, retries=1, concurrency=1).predict(MANY[:5])
        next(replies)
        alive.close()
        with pytest.raises(RefusedError, match="no server answers at"):
            list(replies)


@pytest.mark.parametrize("fault", [hangs_up, takes(1)])
def test_a_few_texts_that_a_server_has_no_answer_to_are_lost_alone(
    model: Chat, server: Answering, fault: Callable[..., None]
) -> None:
    server.faults[""] = [fault] * 99
    replies = ask(fitted(replace(model, retries=0, timeout=0.2)), 7)
    assert {reply.finish for reply in replies.values()} == {"error"}


def replace_retries(model: Chat, retries: int) -> Chat:
    return fitted(replace(model, retries=retries))


def test_a_call_that_takes_too_long_is_given_up(model: Chat, server: Answering) -> None:
    server.faults["text 0"] = [takes(1)]
    hasty = fitted(replace(model, retries=0, timeout=0.2))
    assert "APITimeoutError" in str(ask(hasty, 2)["id-0"].detail["error"])


@pytest.mark.parametrize(
    ("body", "text", "finish", "outcome"),
    [
        (completion(""), "", "stop", Outcome.EMPTY),
        (completion(None), "", "stop", Outcome.EMPTY),
        (completion("The writer seems", "length"), "The writer seems", "length", Outcome.CUT),
        (completion("Answer: positive"), "Answer: positive", "stop", Outcome.SCORED),
        (completion("", "content_filter"), "", "content_filter", Outcome.REFUSED),
    ],
)
def test_what_the_server_wrote_is_kept_word_for_word(
    model: Chat, server: Answering, body: dict[str, object], text: str, finish: str, outcome: Outcome
) -> None:
    server.faults[""] = [sends(body)]
    reply = ask(model)["id-0"]
    assert (reply.text, reply.finish, reply.prompt_tokens, reply.reply_tokens) == (text, finish, 7, 3)
    assert reply.detail["server_model"] == "server-model"
    assert read_label(reply, ["positive", "negative"]).outcome is outcome


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 7}, {"prompt_tokens": 7, "completion_tokens": None}])
def test_a_reply_whose_tokens_were_not_counted_says_so(
    model: Chat, server: Answering, usage: dict[str, object] | None
) -> None:
    server.faults[""] = [sends({**completion("Answer: positive"), "usage": usage})]
    unknown, counted = ask(model, 2).values()
    assert sorted(str(one.detail.get("usage")) for one in (unknown, counted)) == ["None", "unknown"]


def test_a_reply_has_the_ids_of_the_completion_and_of_the_request(model: Chat, server: Answering) -> None:
    server.faults[""] = [sends(completion("x"), x_request_id="req_1"), sends(completion("x"))]
    found = [ask(model)["id-0"].detail for _ in range(2)]
    assert [(one["completion_id"], one["request_id"]) for one in found] == [
        ("chatcmpl-1", "req_1"),
        ("chatcmpl-1", None),
    ]


REFUSED = {
    "key": (error(401, "not like this"), "set weights.gpt.endpoint.key_variable and that variable to a key"),
    "permission": (
        error(403, "not like this"),
        "set weights.gpt.endpoint.key_variable and that variable to a key that may use",
    ),
    "setting": (error(400, "not like this", "unsupported_parameter"), "change the setting that it names"),
    "form": (error(422, "not like this"), "change the setting that it names"),
    "model": (error(404, "not like this", "model_not_found"), "check weights.gpt.endpoint.model"),
    "quota": (error(429, "not like this", "insufficient_quota", retry_after="0.01"), "top up the account"),
    "billing": (error(400, "not like this", "billing_hard_limit_reached"), "top up the account"),
    "balance": (error(402, "not like this"), "top up the account"),
    "a long wait": (error(429, "not like this", retry_after="3600"), "wait the 3600 s"),
    "a late date": (error(429, "not like this", retry_after="Fri, 31 Dec 2100 23:59:59 GMT"), "wait the "),
}


@pytest.mark.parametrize(("fault", "advice"), REFUSED.values(), ids=REFUSED)
def test_a_server_that_would_refuse_every_call_ends_everything_at_once(
    model: Chat, server: Answering, fault: Callable[..., None], advice: str
) -> None:
    server.faults[""] = [fault] * 99
    start = time.perf_counter()
    with pytest.raises(RefusedError) as refused:
        list(fitted(replace(model, concurrency=4)).predict(QUERIES))
    assert time.perf_counter() - start < 2
    assert server.calls.total() <= 4
    said = str(refused.value)
    assert said.startswith(f"gpt(gpt-4o) at {server.url} refuses to answer: ")
    assert f" - not like this; {advice}" in said
    assert said.endswith(", then run the same command again: what was answered is kept")
    assert "\n" not in said


OF_THIS_TEXT = {
    "OpenAI, too long": (error(400, "too long", "context_length_exceeded"), "length"),
    "llama.cpp, too long": (error(400, "the request exceeds the size", "exceed_context_size_error"), "length"),
    "vLLM, too long": (error(400, "This model's maximum context length is 2048 tokens.", "BadRequestError"), "length"),
    "a proxy, too long": (error(413, "too large"), "length"),
    "Azure, filter": (error(400, "the prompt triggered the policy", "content_filter"), "content_filter"),
    "OpenAI, policy": (error(400, "your prompt was flagged", "invalid_prompt"), "content_filter"),
}


@pytest.mark.parametrize(("fault", "finish"), OF_THIS_TEXT.values(), ids=OF_THIS_TEXT)
def test_a_text_that_is_refused_for_itself_keeps_no_other_from_being_asked(
    model: Chat, server: Answering, fault: Callable[..., None], finish: str
) -> None:
    server.faults["text 1"] = [fault]
    replies = ask(model, 3)
    assert [replies[q.id].finish for q in QUERIES[:3]] == ["stop", finish, "stop"]
    assert replies["id-1"].text == ""
    assert len(str(replies["id-1"].detail["error"])) > 10
    assert server.calls["text 1"] == 1


def test_a_refusal_of_the_model_is_its_reply(model: Chat, server: Answering) -> None:
    body = completion(None)
    body["choices"][0]["message"]["refusal"] = "I can't help with that."
    server.faults[""] = [sends(body)]
    reply = ask(model)["id-0"]
    assert (reply.text, reply.finish) == ("I can't help with that.", "refusal")


def test_a_refusal_does_not_wait_for_slow_calls(model: Chat, server: Answering) -> None:
    server.faults["text 0"] = [takes(3)]
    server.faults["text 1"] = [error(401, "no")]
    start = time.perf_counter()
    with pytest.raises(CallError):
        list(model.predict(QUERIES[:2]))
    assert time.perf_counter() - start < 2.5


def test_calls_stop_when_nobody_wants_more(model: Chat, server: Answering) -> None:
    replies = fitted(replace(model, concurrency=2)).predict(QUERIES)
    next(replies)
    replies.close()  # type: ignore[attr-defined]
    time.sleep(0.2)
    assert server.calls.total() < 10


def test_the_key_travels_in_a_header_and_nowhere_else(
    model: Chat, server: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = with_key(model, monkeypatch)
    reply = ask(keyed)["id-0"]
    assert server.authorisations == {f"Bearer {KEY}"}
    assert KEY not in repr([reply, keyed, keyed.signature(), keyed.request(QUERIES[0]), keyed.label])


@pytest.mark.parametrize("status", [400, 401, 500])
def test_a_server_that_repeats_the_key_does_not_get_it_into_a_message(
    model: Chat, server: Answering, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    padding = "x" * 250  # so that the key would be cut, not met, were the message shortened first
    server.faults[""] = [error(status, padding + " Incorrect API key: {authorization}", retry_after="0.01")] * 3
    try:
        told = repr(ask(with_key(model, monkeypatch)))
    except CallError:
        told = traceback.format_exc()
    assert "[key]" in told
    assert KEY[:12] not in told


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no key here", "no key here"),
        (f"key {KEY}.", "key [key]."),
        (f"Bearer {KEY[:9]}", "Bearer [key]"),
        (f"key={KEY[-8:]}", "key=[key]"),
        (f"sent '{KEY[:3]}********{KEY[-4:]}'", "sent '[key]'"),
        (f"sent {KEY[:4]}...{KEY[-4:]}, no", "sent [key], no"),
        ("a **bold** word... and more", "a **bold** word... and more"),
    ],
)
def test_no_part_of_a_key_is_shown(said: str, shown: str) -> None:
    assert masked(said, KEY) == shown


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}", f"{KEY}é"])
def test_a_key_that_no_header_can_carry_is_said_without_it(
    model: Chat, server: Answering, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    keyed = with_key(model, monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(RefusedError, match="the key in the environment variable OPENAI_API_KEY has a blank") as refused:
        list(keyed.predict(QUERIES))
    assert KEY[:6] not in str(refused.value)
    assert server.calls.total() == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("concurrency", value) for value in (0, 1.5, "many", None, True)],
        *[("requests_per_minute", value) for value in (0, "many", float("nan"))],
        *[("tokens_per_minute", -1), ("timeout", 0), ("timeout", None)],
        *[("retries", value) for value in (-1, "many", None)],
        *[("batch", value) for value in ("no", "off", 1, None)],
        *[("poll_seconds", None), ("poll_seconds", float("inf")), ("batch_share", "half")],
    ],
)
def test_a_setting_that_cannot_be_used_is_said_before_any_call(model: Chat, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"model.{name}={value}: give "):
        replace(model, **{name: value}).check()


def test_a_missing_key_is_said_before_any_call(model: Chat, server: Answering) -> None:
    keyed = replace(model, endpoint=replace(model.endpoint, key_variable="OPENAI_API_KEY"))
    with pytest.raises(WeightsError, match=r"OPENAI_API_KEY, which is not set.*weights=embedded"):
        keyed.check()
    assert server.calls.total() == 0


JSON = replace(BARE, format="json_schema")


def test_a_reply_is_held_to_a_schema_where_the_prompt_asks_for_one(model: Chat, faulty: Callable[..., Faulty]) -> None:
    server = faulty()
    held = at(replace(model, prompt=JSON), server)
    [reply] = held.predict([Query("id", "positive", "", ("positive", "negative"))])
    [body] = server.bodies
    assert body["response_format"]["type"] == "json_schema"
    named = body["response_format"]["json_schema"]
    assert (named["name"], named["strict"]) == ("answer", True)
    assert named["schema"] == {
        "type": "object",
        "properties": {
            "answer": {"type": "string", "enum": ["positive", "negative"]},
            "justification": {"type": "string"},
        },
        "required": ["answer", "justification"],
        "additionalProperties": False,
    }
    assert reply.text == '{"answer": "positive", "justification": "none"}'
    assert reply_key(held, QUERIES[0]) != reply_key(at(model, server), QUERIES[0])


def test_a_request_without_a_schema_is_what_it_was(model: Chat) -> None:
    assert model.request(QUERIES[0]) == {
        "messages": [{"role": "system", "content": ""}, {"role": "user", "content": "text 0"}]
    }


OBJECTS = {
    '{"answer": "positive", "justification": "She likes it, not negative."}': ("stop", "positive", Outcome.SCORED),
    '{"answer": "positive", "justification": "She li': ("length", "positive", Outcome.SCORED),
    '{"answer": "posi': ("length", "", Outcome.CUT),
    '{"answer": ': ("length", "", Outcome.CUT),
    '{"answer": "neither", "justification": "positive or negative"}': ("stop", "", Outcome.UNPARSED),
}


@pytest.mark.parametrize("said", OBJECTS)
@pytest.mark.parametrize("reading", ["lenient", "strict"])
def test_an_object_is_read_by_its_answer_alone_and_one_cut_in_it_has_no_credit(
    model: Chat, server: Answering, configured: Callable[..., DictConfig], said: str, reading: str
) -> None:
    task = instantiate(configured("prompt=json", f"task.reading={reading}").task, _convert_="all")
    finish, value, outcome = OBJECTS[said]
    server.faults[""] = [sends(completion(said, finish))]
    answer = task.read(ask(fitted(replace(model, prompt=JSON)))["id-0"])
    assert (answer.value, answer.outcome) == (value, outcome)


@pytest.mark.parametrize(
    ("said", "finish", "value", "outcome"),
    [
        ('{"answer": "an \\"old\\" cough", "justification": "none"}', "stop", 'an "old" cough', Outcome.SCORED),
        ('{"answer": "twice a d', "length", "", Outcome.CUT),
    ],
)
def test_a_free_answer_in_an_object_is_read_whole_or_not_at_all(
    model: Chat,
    server: Answering,
    configured: Callable[..., DictConfig],
    said: str,
    finish: str,
    value: str,
    outcome: Outcome,
) -> None:
    task = instantiate(configured("prompt=json", "task=qa").task, _convert_="all")
    server.faults[""] = [sends(completion(said, finish))]
    answer = task.read(ask(fitted(replace(model, prompt=JSON)))["id-0"])
    assert (answer.value, answer.outcome) == (value, outcome)


def test_every_question_is_a_conversation_of_its_own(model: Chat) -> None:
    messages = model.request(QUERIES[3])["messages"]
    assert "text 3" in str(messages)
    assert not any(f"text {n}" in str(messages) for n in range(40) if n != 3)


def test_a_question_before_the_shots_are_chosen_is_our_own_error(model: Chat) -> None:
    with pytest.raises(RuntimeError, match="fit comes before"):
        replace(model).request(QUERIES[0])


def test_the_speed_is_no_part_of_what_decides_a_reply(model: Chat) -> None:
    fast = replace(model, concurrency=1, requests_per_minute=9, tokens_per_minute=9, timeout=9, retries=9)
    assert fast.signature() == model.signature()


# From here on the server fails by seed, and counts.

MANY = [Query(f"id-{n}", f"question {n}", "", ("positive", "negative")) for n in range(2000)]


@pytest.fixture
def faulty() -> Iterator[Callable[..., Faulty]]:
    """Start a server that fails as told; it ends with the test."""
    with ExitStack() as open_servers:
        yield lambda **how: open_servers.enter_context(running(Faulty(**how)))


def at(model: Chat, server: Faulty, **settings: object) -> Chat:
    """The model of the test at the other server."""
    return fitted(replace(model, endpoint=replace(model.endpoint, url=server.url), **{"retries": 10, **settings}))


def check_all_answered(model: Chat, server: Faulty, queries: list[Query]) -> list[Reply]:
    """Every query has one reply, the right one to itself, as far as the server gave one."""
    replies = list(model.predict(queries))
    assert sorted(reply.id for reply in replies) == sorted(query.id for query in queries)
    texts = {query.id: query.text for query in queries}
    for reply in replies:
        last = (server.faults.get(texts[reply.id]) or ["right"])[-1]
        _, content, finish = REPLIES.get(last, (None, "Answer: {text}", "stop"))
        assert (reply.text, reply.finish) == (content.replace("{text}", texts[reply.id]), finish)
    assert not server.early
    assert len(server.calls) == len(queries) + sum(server.met[name] for name in PASSING)
    return replies


@pytest.mark.slow
def test_two_thousand_questions_in_any_mix_of_faults_have_two_thousand_right_answers(
    model: Chat, faulty: Callable[..., Faulty]
) -> None:
    server = faulty(seed=3, shares={**dict.fromkeys(PASSING, 0.015), **dict.fromkeys(REPLIES, 0.02), "slow": 0.003})
    check_all_answered(at(model, server, timeout=3), server, MANY)
    assert set(server.met) == {*PASSING, *REPLIES}


MIXES = {
    "only 429": {"429": 0.2, "429 wait": 0.2},
    "only broken connections": {"cut": 0.2, "cut before a word": 0.2},
    "only broken answers": dict.fromkeys(["no JSON", "a page", "no choices", "no message"], 0.1),
    "only errors of the server": {"500": 0.3, "503": 0.3},
    "nothing works at first": dict.fromkeys(set(PASSING) - {"slow"}, 1 / (len(PASSING) - 1)),
}


@pytest.mark.parametrize(("mix", "seed"), [(mix, seed) for seed, mix in enumerate(MIXES)])
def test_a_mix_of_faults_costs_no_answer(model: Chat, faulty: Callable[..., Faulty], mix: str, seed: int) -> None:
    server = faulty(seed=seed, shares=MIXES[mix], most=2)
    check_all_answered(at(model, server), server, MANY[:100])
    assert max(under_way for _, _, under_way in server.calls) <= model.concurrency


def test_never_more_are_under_way_than_asked_for(model: Chat, faulty: Callable[..., Faulty]) -> None:
    server = faulty(latency=0.02)
    check_all_answered(at(model, server, concurrency=7), server, MANY[:100])
    assert max(under_way for _, _, under_way in server.calls) == 7


def test_fewer_are_under_way_after_a_429_and_more_again_when_things_go_well(
    model: Chat, faulty: Callable[..., Faulty]
) -> None:
    server = faulty(latency=0.08, bears=4)
    answers = at(model, server, concurrency=10).predict(MANY[:500])
    seen = [next(answers) for _ in range(200)]
    assert max(under_way for _, _, under_way in server.calls[60:]) <= 6
    assert server.met["429"] < 60
    server.bears = 99
    seen += answers
    assert max(under_way for _, _, under_way in server.calls[-100:]) >= 9
    assert {reply.text for reply in seen} == {f"Answer: {query.text}" for query in MANY[:500]}


def test_requests_a_minute_are_kept_repeated_ones_too(model: Chat, faulty: Callable[..., Faulty]) -> None:
    server = faulty(shares={"no JSON": 1.0}, most=1)
    check_all_answered(at(model, server, requests_per_minute=600), server, MANY[:15])
    times = [when for when, _, _ in server.calls]
    assert len(times) == 30
    assert max(sum(start <= when < start + 1 for when in times) for start in times) <= 21  # 10 a second, 10 at first


def test_tokens_a_minute_are_kept(model: Chat, faulty: Callable[..., Faulty]) -> None:
    server = faulty()
    start = time.perf_counter()
    # About 60 tokens for the conversation and 200 for the answer.
    check_all_answered(at(model, server, max_tokens=200, tokens_per_minute=60 * 1000), server, MANY[:10])
    assert 1.0 < time.perf_counter() - start < 2.5


@pytest.mark.parametrize("fault", FINAL)
def test_what_is_final_ends_a_mix_of_faults_at_once(model: Chat, faulty: Callable[..., Faulty], fault: str) -> None:
    server = faulty(shares={fault: 0.05, "slow": 0.1, "429": 0.1})
    with pytest.raises(RefusedError):
        list(at(model, server).predict(MANY))
    assert server.met[fault] <= 3
    assert len(server.calls) < 400


def test_a_trickle_is_given_up_when_its_time_is_over(model: Chat, server: Answering) -> None:
    def trickles(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n")
        with suppress(OSError):
            for _ in range(100):
                request.wfile.write(b" ")
                time.sleep(0.1)

    server.faults["text 0"] = [trickles]
    start = time.perf_counter()
    assert "APITimeoutError" in str(ask(fitted(replace(model, retries=0, timeout=0.5)), 2)["id-0"].detail["error"])
    assert time.perf_counter() - start < 2


def test_an_interrupted_sweep_of_slow_calls_ends_at_once(model: Chat, faulty: Callable[..., Faulty]) -> None:
    server = faulty(shares={"slow": 1.0}, most=9)
    replies = at(model, server).predict([*MANY[:50]])

    def interrupt() -> None:
        time.sleep(0.5)
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

    Thread(target=interrupt, daemon=True).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        list(replies)
    assert time.perf_counter() - start < 2
    assert "chat call" not in {thread.name for thread in threads()}


@pytest.mark.parametrize("fault", [*sorted(PASSING.keys() - {"slow"}), *FINAL])
def test_the_key_is_in_no_reply_message_traceback_or_log(
    model: Chat,
    faulty: Callable[..., Faulty],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    fault: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    server = faulty(shares={fault: 1.0}, most=9)
    keyed = with_key(at(model, server, retries=1), monkeypatch)
    told = repr([keyed, keyed.signature()])
    try:
        told += repr(list(keyed.predict(MANY[:2])))
    except CallError:
        told += traceback.format_exc()
    told += caplog.text + repr(capfd.readouterr())
    assert server.keys == {f"Bearer {KEY}"}
    assert "DEBUG" in caplog.text
    assert not [KEY[at : at + 8] for at in range(len(KEY) - 7) if KEY[at : at + 8] in told]
