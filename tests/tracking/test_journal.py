import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import instantiate
from omegaconf import DictConfig

from noisyhealth import experiment
from noisyhealth.errors import CallError, StoreError
from noisyhealth.models.majority import Majority
from noisyhealth.models.model import FREE, Price, reply_key
from noisyhealth.records import Example, Query, Reply, Training
from noisyhealth.text.prompt import Wording
from noisyhealth.tracking.journal import Journal, for_query

QUERIES = [Query(f"id-{n}", f"text {n}", "", ("positive", "negative")) for n in range(6)]
KEYS = [f"key {query.text}" for query in QUERIES]
WORDING = Wording(role="r", instruction="i", block="{text}")
POOL = Training(tuple(Example(f"p{n}", f"shot {n}", "positive") for n in range(9)), (), ())

WRITER = """
import sys
from pathlib import Path
from noisyhealth.records import Reply
from noisyhealth.tracking.journal import Journal
name, count, journal = sys.argv[1], int(sys.argv[2]), Journal(Path(sys.argv[3]))
for n in range(count):
    with journal.writing() as writer:
        for key in (f"{name}-{n}", f"shared-{n}"):
            writer.put(key, "m", {"text": key}, Reply(key, f"from {name}", "stop", 1, 1, 0.1, {"a": [1, None]}))
    print(f"{name}-{n}", flush=True)
"""


@dataclass
class Answering:
    """A model of the test's own: answers what it is asked, loses the texts it is told to, counts its calls."""

    lost: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)
    label: str = "test(model)"

    def request(self, query: Query) -> dict[str, object]:
        return {"text": query.text}

    def signature(self) -> dict[str, object]:
        return {"model": self.label}

    def price(self) -> Price:
        return FREE

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        for query in reversed(queries):
            self.asked.append(query.text)
            lost = query.text in self.lost
            text = "" if lost or query.text in self.empty else f"Answer: {query.text}"
            yield Reply(query.id, text, "error" if lost else "stop", 1, 2, 0.5, {"error": "cut off"} if lost else {})


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "new" / "journal.sqlite")


def ask(model: Any, journal: Journal, queries: Sequence[Query] = QUERIES, keys: Sequence[str] = KEYS) -> list[Reply]:
    return experiment.ask(model, queries, keys, journal)


def rows(journal: Journal) -> int:
    with sqlite3.connect(journal.path) as db:
        count: int = db.execute("select count(*) from replies").fetchone()[0]
    db.close()
    return count


def test_what_is_kept_is_never_asked_again(journal: Journal) -> None:
    first, second = Answering(), Answering()
    replies = ask(first, journal)
    assert [(r.id, r.text) for r in replies] == [(q.id, f"Answer: {q.text}") for q in QUERIES]
    assert ask(second, journal) == replies
    assert sorted(first.asked) == sorted(q.text for q in QUERIES)
    assert second.asked == []


def test_the_same_question_twice_is_asked_once(journal: Journal) -> None:
    model = Answering()
    twice = [*QUERIES, *(replace(query, id=f"again-{query.id}") for query in QUERIES)]
    replies = ask(model, journal, twice, KEYS + KEYS)
    assert [r.id for r in replies] == [q.id for q in twice]
    assert [r.text for r in replies[:6]] == [r.text for r in replies[6:]]
    assert len(model.asked) == 6


def test_lost_calls_are_counted_and_asked_again_alone(journal: Journal) -> None:
    broken = Answering(lost=frozenset({"text 1", "text 4"}))
    with pytest.raises(CallError, match=r"2 of 6 texts put to test\(model\) were lost \(cut off\).*same command again"):
        ask(broken, journal)
    assert rows(journal) == 4
    mended = Answering()
    assert [r.text for r in ask(mended, journal)] == [f"Answer: {q.text}" for q in QUERIES]
    assert sorted(mended.asked) == ["text 1", "text 4"]


def test_an_empty_reply_counts_for_its_cell_but_is_not_kept(journal: Journal) -> None:
    replies = ask(Answering(empty=frozenset({"text 2"})), journal)
    assert [r.text for r in replies][2] == ""
    assert rows(journal) == 5
    again = Answering()
    assert ask(again, journal)[2].text == "Answer: text 2"
    assert again.asked == ["text 2"]


@pytest.mark.parametrize("text", ["", "  \n"])
@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "error"])
def test_nothing_is_no_answer(journal: Journal, text: str, finish: str) -> None:
    with journal.writing() as writer:
        writer.put("k", "m", {}, Reply("k", text, finish, 0, 0, 0.0))
    assert journal.get(["k"]) == {}


def test_a_reply_comes_back_whole(journal: Journal) -> None:
    given = Reply("id", "Answer: naïve “ok” 🙂\n\tJustification: none", "length", 7, 3, 0.25, {"scores": {"a": -1.5}})
    with journal.writing() as writer:
        writer.put("k", "m", {"messages": [{"role": "user", "content": "é"}]}, given)
    assert journal.get(["k", "other"]) == {"k": given}
    assert for_query(given, "another") == replace(given, id="another")


def test_the_first_reply_under_a_key_stays(journal: Journal) -> None:
    with journal.writing() as writer:
        for text in ("first", "second"):
            writer.put("k", "m", {}, Reply("id", text, "stop", 0, 0, 0.0))
    assert journal.get(["k"])["k"].text == "first"


def test_more_keys_than_a_query_may_hold_are_all_found(journal: Journal) -> None:
    keys = [f"key {n}" for n in range(1201)]
    with journal.writing() as writer:
        writer.db.execute("begin")
        for key in keys:
            writer.put(key, "m", {}, Reply(key, "x", "stop", 0, 0, 0.0))
        writer.db.execute("commit")
    assert set(journal.get(keys)) == set(keys)


def test_a_file_that_is_no_journal_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_text("this is no database, whatever its name says, and it is long enough to be looked at " * 20)
    with pytest.raises(StoreError, match=r"journal .*journal.sqlite cannot be used: file is not a database"):
        Journal(path).get(["k"])


CHANGES: dict[str, tuple[str, dict[str, object]]] = {
    "temperature": ("both", {"temperature": 0.7}),
    "seed": ("both", {"seed": 1}),
    "limit": ("both", {"max_tokens": 7}),
    "stop": ("both", {"stop": ["###"]}),
    "penalty": ("both", {"frequency_penalty": 0.1}),
    "prompt": ("both", {"prompt.system": "Think."}),
    "shots": ("both", {"prompt.shots": 3}),
    "other shots": ("both", {"prompt.shot_seed": 1}),
    "weights": ("llama", {"source.sha256": "0" * 64}),
    "number format": ("llama", {"dtype": "float16"}),
    "calibration": ("llama", {"calibration": "none"}),
    "template": ("llama", {"template": "plain"}),
    "model behind the server": ("gpt", {"endpoint.model": "gpt-5"}),
    "server": ("gpt", {"endpoint.url": "http://127.0.0.1:1/v1"}),
}


@pytest.mark.parametrize("name", ["llama", "gpt"])
def test_another_model_decoding_or_prompt_never_meets_a_kept_reply(
    configured: Callable[..., DictConfig], name: str, tmp_path: Path
) -> None:
    weights = {"llama": "embedded", "gpt": "study"}

    def compose(model: str) -> DictConfig:
        return configured(f"model={model}", f"weights={weights[model]}", f"cache={tmp_path}")

    keys = {
        "nothing": _key(compose(name), {}),
        "the other model": _key(compose({"llama": "gpt", "gpt": "llama"}[name]), {}),
    }
    for what, (model, change) in CHANGES.items():
        if model in ("both", name):
            keys[what] = _key(compose(name), change)
    assert len(set(keys.values())) == len(keys), keys


def _key(config: DictConfig, change: dict[str, object]) -> str:
    for path, value in change.items():
        at, _, last = path.rpartition(".")
        node = config.model[at] if at else config.model
        node[last] = value
    model = instantiate(config.model, _convert_="all")
    model.fit(WORDING, POOL)
    return reply_key(model, QUERIES[0])


def test_another_text_question_or_set_of_options_is_another_key() -> None:
    model = Majority()
    model.fit(WORDING, Training((), POOL.prompt, ()))
    query = QUERIES[0]
    others = [replace(query, text="x"), replace(query, question="why?")]
    assert len({reply_key(model, q) for q in [query, *others]}) == 3
    assert reply_key(model, replace(query, id="another id")) == reply_key(model, query)


def test_four_processes_at_once_lose_nothing(journal: Journal) -> None:
    command = [sys.executable, "-c", WRITER]
    processes = [
        subprocess.Popen([*command, name, "40", str(journal.path)], stdout=subprocess.DEVNULL) for name in "abcd"
    ]
    assert [process.wait(60) for process in processes] == [0] * 4
    keys = [f"{name}-{n}" for name in [*"abcd", "shared"] for n in range(40)]
    assert set(journal.get(keys)) == set(keys)
    assert rows(journal) == 200


def test_killed_in_the_middle_it_loses_nothing_that_was_kept(journal: Journal) -> None:
    command = [sys.executable, "-c", WRITER, "a", "100000", str(journal.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        told = [process.stdout.readline().strip() for _ in range(50)]
        os.kill(process.pid, signal.SIGKILL)
        told += process.stdout.read().split()[:-1]
    assert set(journal.get(told)) == set(told)
    ask(Answering(), journal)
    assert set(journal.get(KEYS)) == set(KEYS)
    with sqlite3.connect(journal.path) as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        assert all(json.loads(row[0]) for row in db.execute("select reply from replies"))
    db.close()
