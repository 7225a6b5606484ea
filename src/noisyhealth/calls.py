"""What is asked of models: what the journal lacks, within the budget; every reply is kept as it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from noisyhealth import plan
from noisyhealth.cell import Cell
from noisyhealth.errors import BudgetError, CallError
from noisyhealth.models.model import FREE, Model
from noisyhealth.progress import steps
from noisyhealth.records import Query, Reply
from noisyhealth.study import Asked
from noisyhealth.tracking.budget import UNLIMITED, Budget
from noisyhealth.tracking.claims import claims
from noisyhealth.tracking.journal import Journal, for_query, is_answer

EMPTY: Mapping[str, Reply] = MappingProxyType({})


def journal(cell: Cell) -> Journal:
    """Return where the replies of a cell are kept."""
    return Journal(Path(cell.cache) / "journal.sqlite")


def ask(
    model: Model,
    queries: Sequence[Query],
    keys: Sequence[str],
    journal: Journal,
    budget: Budget = UNLIMITED,
    given: Mapping[str, Reply] = EMPTY,
) -> list[Reply]:
    """Return a reply for each query, in order; only what the journal does not hold is asked, and once.

    `given`: replies by key that no journal keeps and that are not asked for again. Raises CallError when calls were
    lost, BudgetError when there is no room for all. What was answered stays in the journal.
    """
    wanted = dict(zip(keys, queries, strict=True))
    replies = {key: given[key] for key in wanted if key in given} | journal.get(wanted)
    missing = {key: query for key, query in wanted.items() if key not in replies}
    put = _put_once([(model, missing)], journal, budget)
    replies |= put.replies
    if silent := len(missing) - put.unasked - len(put.replies):
        raise CallError(
            f"{model.label} gave no reply at all to {silent} of {len(missing)} queries: a fault of the model"
        )
    if lost := [reply for reply in replies.values() if reply.finish == "error"]:
        raise CallError(
            f"{len(lost)} of {len(wanted)} texts put to {model.label} were lost "
            f"({lost[0].detail.get('error')}); the others are kept: run the same command again to ask for these alone"
        )
    put.check()
    return [for_query(replies[key], query.id) for key, query in zip(keys, queries, strict=True)]


def ask_ahead(cells: Sequence[Cell], asked: Sequence[Asked], budget: Budget) -> dict[str, Reply]:
    """Ask what the cells of models that answer in batches lack, all at once, and return what no journal keeps.

    These are empty replies and lost calls, by key. Raises BudgetError when there is no room for all.
    """
    parts: list[tuple[Model, dict[str, Query]]] = []
    seen: set[str] = set()  # models that differ in speed alone ask the same
    for cell, what in zip(cells, asked, strict=True):
        if cell.model.batch:
            part = next((part for model, part in parts if model == cell.model), None)
            if part is None:
                parts.append((cell.model, part := {}))
            texts = zip((*what.clean_keys, *what.disturbed_keys), (*what.clean, *what.disturbed), strict=True)
            part |= {key: query for key, query in texts if key not in seen}
            seen |= part.keys()
    if not parts:
        return {}
    kept = journal(cells[0])
    known = kept.get(seen)
    left = [(model, {key: query for key, query in part.items() if key not in known}) for model, part in parts]
    put = _put_once(left, kept, budget)
    put.check()
    return {key: reply for key, reply in put.replies.items() if not is_answer(reply)}


@dataclass(frozen=True)
class _Put:
    """What became of queries: replies by key, and how many there was no budget for."""

    replies: dict[str, Reply]
    queries: int
    unasked: int

    def check(self) -> None:
        """Raise BudgetError where the budget had no room for all."""
        if self.unasked:
            raise BudgetError(
                f"the budget is used up: {self.unasked:,} of {self.queries:,} texts are not asked yet. What was "
                "answered is kept: run the same command again to go on, or with a larger budget.calls or budget.usd"
            )


_Parts = Sequence[tuple[Model, Mapping[str, Query]]]


def _put_once(parts: _Parts, journal: Journal, budget: Budget) -> _Put:
    """Put queries to their models, and none while another process asks the same; return what became of all.

    What others are asking comes last: their replies are in the journal then. A query that has none there, since theirs
    was lost or empty, is put here again.
    """
    left = [key for _, missing in parts for key in missing]
    put = _Put({}, len(left), 0)
    with claims(journal.path) as claimed:
        while left:
            mine = set(claimed.take(left))
            known = journal.get(mine)
            todo = [(m, {k: q for k, q in missing.items() if k in mine and k not in known}) for m, missing in parts]
            new = _put(todo, journal, budget)
            claimed.drop()
            put = _Put(put.replies | known | new.replies, put.queries, put.unasked + new.unasked)
            left = [key for key in left if key not in mine]
    return put


def _put(parts: _Parts, journal: Journal, budget: Budget) -> _Put:
    """Put queries to their models, all before the first reply is waited for, and keep every reply as it arrives."""
    replies: dict[str, Reply] = {}
    asked = 0
    with journal.writing() as writer, ExitStack() as reserved:
        under_way = []
        for model, missing in parts:
            granted, replied = reserved.enter_context(_within(budget, model, missing))
            asked += len(granted)
            # A query goes out under its key, since the clean and the disturbed text of an example share an id.
            arriving = model.predict([replace(query, id=key) for key, query in granted.items()])
            under_way.append((model, granted, replied, arriving))
        for model, granted, replied, arriving in under_way:
            signature = model.signature()
            for reply in steps(arriving, f"asking {model.label}", len(granted)):
                replied(reply)
                request = {"signature": signature, **model.request(granted[reply.id])}
                writer.put(reply.id, model.label, request, reply)
                replies[reply.id] = reply
    whole = sum(len(missing) for _, missing in parts)
    return _Put(replies, whole, whole - asked)


@contextmanager
def _within(
    budget: Budget, model: Model, missing: Mapping[str, Query]
) -> Iterator[tuple[dict[str, Query], Callable[[Reply], None]]]:
    """Yield the queries that the budget has room for, and what is to be told of each reply."""
    price = model.price() or FREE
    most = {key: plan.cost(model, query).most(price) for key, query in missing.items()}
    granted = list(islice(most, budget.reserve(list(most.values()))))
    used: dict[str, float] = {}

    def replied(reply: Reply) -> None:
        # Nobody knows what it cost, so it counts as the most that it can have cost.
        unknown = reply.detail.get("usage") == "unknown"
        used[reply.id] = most[reply.id] if unknown else price.usd(reply.prompt_tokens, reply.reply_tokens)

    try:
        yield {key: missing[key] for key in granted}, replied
    finally:
        budget.settle(len(used) - len(granted), sum(used.values()) - sum(most[key] for key in granted))
