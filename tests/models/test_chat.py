import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import KEY, Answering, completion, error, hangs_up, sends, takes
from hydra.utils import instantiate
from omegaconf import DictConfig

from noisyhealth.errors import CallError, WeightsError
from noisyhealth.models.chat import Chat
from noisyhealth.models.endpoint import Remote
from noisyhealth.records import Outcome, Query, Reply, Training
from noisyhealth.text.prompt import Prompt, Wording
from noisyhealth.text.reply import read_label

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
    "a used-up quota": error(429, "You exceeded your current quota", "insufficient_quota", retry_after="0.01"),
    "500 again and again": error(500, "oops", retry_after="0.01"),
    "an unknown model": error(404, "The model does not exist", "model_not_found"),
    "no choices": sends({**completion("x"), "choices": []}),
    "no message": sends({**completion("x"), "choices": [{"index": 0, "message": None, "finish_reason": "stop"}]}),
    "an error with status 200": sends({"error": {"message": "overloaded"}}),
    "null": sends("null"),
    "a page of a proxy": sends("<html>Bad gateway</html>"),
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
    assert ask(replace_retries(model, 1))["id-0"].detail["error"] == "APIConnectionError: Connection error."


def test_a_server_that_is_not_there_is_a_lost_call(model: Chat) -> None:
    gone = replace_retries(model, 0)
    gone.endpoint = replace(gone.endpoint, url="http://127.0.0.1:9/v1")
    assert {r.finish for r in ask(gone, 3).values()} == {"error"}


def replace_retries(model: Chat, retries: int) -> Chat:
    return fitted(replace(model, retries=retries))


def test_a_call_that_takes_too_long_is_given_up(model: Chat, server: Answering) -> None:
    server.faults["text 0"] = [takes(1)]
    hasty = fitted(replace(model, retries=0, timeout=0.2))
    assert "APITimeoutError" in str(ask(hasty)["id-0"].detail["error"])


@pytest.mark.parametrize(
    ("body", "text", "finish", "outcome"),
    [
        (completion(""), "", "stop", Outcome.EMPTY),
        (completion(None), "", "stop", Outcome.EMPTY),
        (completion("The writer seems", "length"), "The writer seems", "length", Outcome.CUT),
        (completion("Answer: positive"), "Answer: positive", "stop", Outcome.SCORED),
        (completion("", "content_filter"), "", "content_filter", Outcome.EMPTY),
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


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refused_key_or_request_ends_everything_at_once(model: Chat, server: Answering, status: int) -> None:
    server.faults[""] = [error(status, "not like this")] * 99
    start = time.perf_counter()
    with pytest.raises(CallError, match=rf"gpt\(gpt-4o\) at http://127.* {status} - not like this"):
        list(fitted(replace(model, concurrency=4)).predict(QUERIES))
    assert time.perf_counter() - start < 2
    assert server.calls.total() < 20


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


def test_a_missing_key_is_said_before_any_call(model: Chat, server: Answering) -> None:
    keyed = replace(model, endpoint=replace(model.endpoint, key_variable="OPENAI_API_KEY"))
    with pytest.raises(WeightsError, match=r"OPENAI_API_KEY, which is not set.*weights=embedded"):
        keyed.check()
    assert server.calls.total() == 0


def test_every_question_is_a_conversation_of_its_own(model: Chat) -> None:
    messages = model.request(QUERIES[3])["messages"]
    assert "text 3" in str(messages)
    assert not any(f"text {n}" in str(messages) for n in range(40) if n != 3)


def test_a_question_before_the_shots_are_chosen_is_our_own_error(model: Chat) -> None:
    with pytest.raises(RuntimeError, match="fit comes before"):
        replace(model).request(QUERIES[0])
