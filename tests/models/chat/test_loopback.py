import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import openai
import pytest
from conftest import environment, listening
from hydra.utils import instantiate
from omegaconf import DictConfig

from noisyhealth.errors import WeightsError
from noisyhealth.models.chat import loopback, server
from noisyhealth.models.chat.server import Served
from noisyhealth.models.local.causal import CausalLM
from noisyhealth.models.local.decoding import Decoding, Generated

OWNER = """
import sys, time
from pathlib import Path
from noisyhealth.models.chat import loopback
from noisyhealth.models.chat.server import Served
served = Served(Path(sys.argv[1]), "SmolLM2-135M", "float32", 512, 4)
urls = [loopback.ensure(served, sys.argv[2]) for _ in range(2)]
print(*urls, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def owner(shared_cache: Path, configured: Callable[..., DictConfig]) -> Iterator[subprocess.Popen[str]]:
    """A process that owns a server, as a sweep does; the last test of this file kills it."""
    folder = instantiate(configured(f"cache={shared_cache}").weights.llama.source).folder()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder), str(shared_cache)],
        env=environment(shared_cache),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def urls(owner: subprocess.Popen[str]) -> list[str]:
    assert owner.stdout
    return owner.stdout.readline().split()


def post(url: str, body: object, **headers: str) -> tuple[int, Any]:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    request = Request(f"{url}/chat/completions", raw, {"content-type": "application/json", **headers})
    try:
        with urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def question(text: str, **more: object) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"model": "SmolLM2-135M", "messages": [message], "max_tokens": 4, "temperature": 0, **more}


def state_file(cache: Path, owner: subprocess.Popen[str]) -> Path:
    [found] = (cache / "servers").glob(f"{owner.pid}-*.json")
    return found


def test_asked_for_twice_it_is_one_server(urls: list[str], owner: subprocess.Popen[str], shared_cache: Path) -> None:
    assert len(urls) == 2
    assert urls[0] == urls[1]
    assert urls[0].startswith("http://127.0.0.1:")
    assert state_file(shared_cache, owner).is_file()


def test_it_answers_the_clients_of_the_real_api(urls: list[str]) -> None:
    with openai.OpenAI(base_url=urls[0], api_key="EMPTY", max_retries=0) as client:
        assert [model.id for model in client.models.list().data] == ["SmolLM2-135M"]
        texts = ["Say yes.", "What is the capital of France?", "hi"]
        with ThreadPoolExecutor(3) as pool:
            made = list(pool.map(lambda text: client.chat.completions.create(**question(text)), texts))
        alone = [client.chat.completions.create(**question(text)) for text in texts]
    for together, single in zip(made, alone, strict=True):
        assert together.choices[0].message.content == single.choices[0].message.content
        assert together.choices[0].finish_reason in ("stop", "length")
        assert together.usage
        assert together.usage.total_tokens > together.usage.completion_tokens > 0
    assert len({one.choices[0].message.content for one in made}) > 1


def test_requests_that_wait_together_are_one_batch_with_one_beginning(
    shared_cache: Path, configured: Callable[..., DictConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = instantiate(configured(f"cache={shared_cache}").weights.llama.source).folder()
    batcher, asked = server._Batcher(Served(folder, "SmolLM2-135M", "float32", 512, 4)), list[int]()
    generate, lead = CausalLM.generate, "Say how the writer of the message at the end feels, in one word. " * 4

    def counted(lm: CausalLM, prompts: list[list[int]], decoding: Decoding) -> Iterator[Generated]:
        asked.append(len(prompts))
        return generate(lm, prompts, decoding)

    monkeypatch.setattr(CausalLM, "generate", counted)

    async def ask() -> list[dict[str, Any]]:
        running = asyncio.create_task(batcher.run())
        bodies = [question(f"{lead}{text}") for text in ("so tired", "all clear!", "ok", "no sleep", "at last", "ouch")]
        replies = await asyncio.gather(*(batcher.ask(body, Decoding(2)) for body in bodies))
        running.cancel()
        return replies

    assert len(asyncio.run(ask())) == 6
    assert asked == [6]
    assert lead.strip() in batcher.lm.tokenizer.decode(batcher.lm._prefix)


def test_a_stop_string_ends_the_text_and_is_no_part_of_it(urls: list[str]) -> None:
    _, whole = post(urls[0], question("Count from one to nine.", max_tokens=8))
    text = whole["choices"][0]["message"]["content"]
    first = text.split()[0]
    _, cut = post(urls[0], question("Count from one to nine.", max_tokens=8, stop=first))
    assert cut["choices"][0] | {"logprobs": None} == {
        "index": 0,
        "message": {"role": "assistant", "content": text.partition(first)[0]},
        "finish_reason": "stop",
        "logprobs": None,
    }


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.example.org", "10.0.0.1"])
def test_another_host_name_is_refused(urls: list[str], host: str) -> None:
    status, said = post(urls[0], question("hi"), Host=host)
    assert status == 400
    assert "host" in said.lower()


def test_it_listens_on_loopback_alone(urls: list[str]) -> None:
    assert listening(urlsplit(urls[0]).port or 0) == {"127.0.0.1"}


def test_an_unknown_model_is_refused_by_name(urls: list[str]) -> None:
    status, said = post(urls[0], question("hi") | {"model": "gpt-9"})
    assert status == 404
    assert "'gpt-9' does not exist" in said
    assert "model_not_found" in said


def test_a_form_of_the_reply_is_refused_by_name_and_not_ignored(urls: list[str]) -> None:
    status, said = post(urls[0], question("hi", response_format={"type": "json_schema", "json_schema": {}}))
    assert status == 400
    assert "does not support response_format: give prompt.format=text" in said
    assert post(urls[0], question("hi", response_format={"type": "text"}))[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        question("hi", temperature="hot"),
        question("hi", max_tokens="many"),
        question("hi", stop=7),
        {"model": "SmolLM2-135M"},
        {"model": "SmolLM2-135M", "messages": "hi"},
        "no JSON",
        [1],
    ],
)
def test_a_request_that_makes_no_sense_is_refused_and_harms_no_other(urls: list[str], body: object) -> None:
    assert post(urls[0], body)[0] in (400, 500)
    assert post(urls[0], question("hi"))[0] == 200


MALFORMED = {
    "no content": [{"role": "user"}],
    "a number as content": [{"role": "user", "content": 5}],
    "no object": ["hi"],
    "no list": 7,
}


@pytest.mark.parametrize("messages", MALFORMED.values(), ids=MALFORMED)
def test_messages_that_make_no_prompt_fail_alone_among_those_that_wait_with_them(
    urls: list[str], messages: object
) -> None:
    bodies = [question(f"Count to {n}.") for n in range(6)]
    bodies.insert(3, {**question(""), "messages": messages})
    with ThreadPoolExecutor(8) as pool:
        busy = pool.submit(post, urls[0], question("Tell me a story.", max_tokens=40))
        time.sleep(0.1)  # the others wait for it together
        met = list(pool.map(lambda body: post(urls[0], body), bodies))
        assert busy.result()[0] == 200
    assert [status for status, _ in met] == [200, 200, 200, 400, 200, 200, 200]
    assert "messages: " in met[3][1]


def test_weights_that_are_not_there_are_said_with_the_servers_own_words(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(loopback.OWNER, str(os.getpid()))
    with pytest.raises(WeightsError, match=r"loopback server of X did not start; its log .*servers/"):
        loopback.ensure(Served(workspace / "nowhere", "X", "float32", 64, 1), str(workspace / "cache"))


def test_a_server_that_died_is_started_again(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(loopback, "_start", lambda served, state: started.append(state) or "http://again")
    monkeypatch.setenv(loopback.OWNER, str(os.getpid()))
    served = Served(workspace, "X", "float32", 64, 1)
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked how
        state = loopback._state_file(served, workspace)
        state.parent.mkdir(parents=True)
        state.write_text(json.dumps({"url": "http://dead", "pid": dead.pid}))
        assert loopback.ensure(served, str(workspace)) == "http://again"
    assert started == [state]


def test_it_ends_when_its_owner_is_killed(urls: list[str], owner: subprocess.Popen[str], shared_cache: Path) -> None:
    pid = json.loads(state_file(shared_cache, owner).read_text())["pid"]
    assert post(urls[0], question("hi"))[0] == 200
    os.kill(owner.pid, signal.SIGKILL)
    # Not waited for: the owner stays a zombie, as under a parent that never asks.
    deadline = time.monotonic() + 20
    while server.alive(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not server.alive(pid)
    with pytest.raises(OSError, match=r"refused|reset"):
        urlopen(f"{urls[0]}/models", timeout=5)
