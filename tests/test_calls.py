"""What is asked of a paid model: never more than the budget has room for, and its true cost is what is spent."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from noisyhealth import calls, plan
from noisyhealth.errors import BudgetError, CallError
from noisyhealth.models.model import Price, reply_key
from noisyhealth.records import Query, Reply
from noisyhealth.tracking.budget import Budget
from noisyhealth.tracking.journal import Journal

PRICE = Price(prompt=1e4, reply=1e5)  # a cent for a token of a prompt, ten for one of a reply
QUERIES = [Query(f"id-{n}", f"text {n}", "", ()) for n in range(8)]
KEYS = [f"key {query.text}" for query in QUERIES]
TRUE = 0.01 * 2 + 0.10 * 3


@dataclass
class Paid:
    """A model of the test's own: takes 2 tokens of a prompt, writes 3 of at most 5, and writes its calls down."""

    uncounted: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    log: Path | None = None
    asked: list[str] = field(default_factory=list)
    label: str = "test(paid)"
    batch: bool = False

    def request(self, query: Query) -> dict[str, object]:
        return {"messages": [{"role": "user", "content": query.text}]}

    def signature(self) -> dict[str, object]:
        return {"model": self.label, "max_tokens": 5}

    def price(self) -> Price:
        return PRICE

    def predict(self, queries: Sequence[Query]) -> Iterator[Reply]:
        for query in queries:
            self.asked.append(query.text)
            if self.log:
                with self.log.open("a") as log:
                    log.write(f"{query.text}\n")
            if query.text in self.lost:
                yield Reply(query.id, "", "error", 0, 0, 0.1, {"error": "cut off"})
                continue
            unknown = query.text in self.uncounted
            tokens, detail = ((0, 0), {"usage": "unknown"}) if unknown else ((2, 3), {})
            yield Reply(query.id, f"Answer: {query.text}", "stop", *tokens, 0.1, detail)


MOST = plan.cost(Paid(), QUERIES[0]).most(PRICE)  # type: ignore[arg-type]


def ask(model: Any, folder: Path, usd: float, queries: Sequence[Query] = QUERIES) -> list[Reply]:
    keys = [f"key {query.text}" for query in queries]
    return calls.ask(model, queries, keys, Journal(folder / "journal.sqlite"), budget(folder, usd))


def budget(folder: Path, usd: float) -> Budget:
    return Budget(folder / "budget.sqlite", usd=usd)


def test_what_is_spent_is_what_the_tokens_cost(tmp_path: Path) -> None:
    ask(Paid(), tmp_path, 8 * MOST)
    assert budget(tmp_path, 8 * MOST).spent() == (8, pytest.approx(8 * TRUE))


def test_no_call_is_made_that_could_cost_more_than_is_left_and_a_larger_budget_goes_on(tmp_path: Path) -> None:
    first, again, larger = Paid(), Paid(), Paid()
    with pytest.raises(BudgetError, match="5 of 8 texts are not asked yet"):
        ask(first, tmp_path, 3.5 * MOST)
    assert len(first.asked) == 3
    assert budget(tmp_path, 9).spent() == (3, pytest.approx(3 * TRUE))
    # Replies cost less than was reserved for them, so there is room again.
    room = int((3.5 * MOST - 3 * TRUE) / MOST)
    with pytest.raises(BudgetError, match=f"{5 - room} of 5 texts are not asked yet"):
        ask(again, tmp_path, 3.5 * MOST)
    assert len(again.asked) == room > 0
    assert len(ask(larger, tmp_path, 99.0)) == 8
    assert Counter(first.asked + again.asked + larger.asked) == Counter(query.text for query in QUERIES)
    assert budget(tmp_path, 99.0).spent() == (8, pytest.approx(8 * TRUE))


def test_a_reply_whose_tokens_were_not_counted_keeps_what_was_reserved_for_it(tmp_path: Path) -> None:
    longer = Query("id-long", "a text that is much longer than the others", "", ())
    dear = plan.cost(Paid(), longer).most(PRICE)  # type: ignore[arg-type]
    ask(Paid(uncounted=frozenset({longer.text})), tmp_path, 99.0, [*QUERIES, longer])
    assert dear > MOST
    assert budget(tmp_path, 99.0).spent() == (9, pytest.approx(8 * TRUE + dear))


def test_a_budget_binds_where_no_tokens_are_counted(tmp_path: Path) -> None:
    models = [Paid(uncounted=frozenset(query.text for query in QUERIES)) for _ in range(3)]
    for model in models:
        with pytest.raises(BudgetError):
            ask(model, tmp_path, 3.5 * MOST)
    assert [len(model.asked) for model in models] == [3, 0, 0]


def _ask(folder: Path, first: int) -> None:
    """Ask all texts, from another one on than the other processes, until the budget has no room."""
    for _ in range(20):
        with suppress(BudgetError):
            ask(Paid(log=folder / "log"), folder, 3 * MOST, [*QUERIES[first:], *QUERIES[:first]])


def test_processes_that_share_budget_and_journal_never_spend_more_than_there_is(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        list(pool.map(_ask, [tmp_path] * 4, range(0, 8, 2)))
    made = (tmp_path / "log").read_text().splitlines()
    count, usd = budget(tmp_path, 0).spent()
    assert count == len(made)
    assert usd == pytest.approx(len(made) * TRUE)
    assert usd <= 3 * MOST < usd + MOST, "nor is there room left for one more"
    assert set(Journal(tmp_path / "journal.sqlite").get(KEYS)) == {f"key {text}" for text in made}


def test_lost_texts_are_counted_over_all_texts_of_the_cell_whoever_asked_for_them(tmp_path: Path) -> None:
    ask(Paid(), tmp_path, 99.0, QUERIES[:5])
    with pytest.raises(CallError, match=r"1 of 8 texts put to test\(paid\) were lost \(cut off\)"):
        ask(Paid(lost=frozenset({"text 6"})), tmp_path, 99.0)
    given = {KEYS[6]: Reply(KEYS[6], "", "error", 0, 0, 0.1, {"error": "in a batch"})}
    with pytest.raises(CallError, match=r"1 of 8 texts put to test\(paid\) were lost \(in a batch\)"):
        calls.ask(Paid(), QUERIES, KEYS, Journal(tmp_path / "journal.sqlite"), given=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("repeat", [0, 1])
def test_a_row_of_the_journal_has_all_that_its_key_is_made_of(tmp_path: Path, repeat: int) -> None:
    model: Any = Paid()
    journal = Journal(tmp_path / "journal.sqlite")
    calls.ask(model, QUERIES, [reply_key(model, query, repeat) for query in QUERIES], journal)
    with closing(sqlite3.connect(journal.path)) as db:
        kept = {key: json.loads(request) for key, request in db.execute("select key, request from replies")}
    for key, request in kept.items():
        assert request["messages"][0]["content"].startswith("text ")
        whole: dict[str, object] = {"signature": request.pop("signature"), "request": request}
        whole |= {"repeat": repeat} if repeat else {}
        assert sha256(json.dumps(whole, sort_keys=True, ensure_ascii=False).encode()).hexdigest() == key
    assert len(kept) == 8
