"""What a sweep would ask before it asks: calls, replies already kept, tokens, money, and what a prompt looks like."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from noisyhealth import study
from noisyhealth.cell import Cell
from noisyhealth.models.model import Model, Price
from noisyhealth.records import Query
from noisyhealth.study import Asked
from noisyhealth.tracking.journal import Journal

# Characters a token: English prose has 4 to 5, typing errors and numbers fewer (measured on the sample texts).
_FEWEST, _MOST = 3.0, 5.0


@dataclass(frozen=True)
class Range:
    """A number that is estimated to lie between two ends."""

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        """Return the range of the sum."""
        return Range(self.low + other.low, self.high + other.high)


@dataclass(frozen=True)
class Line:
    """What one model would be asked. `calls` are different questions; `known` of them the journal has.

    Tokens and money are those of the calls left to make, at least and at most; `usd` is None where the price
    is not known, and 0 where nothing is paid.
    """

    model: str
    cells: int
    calls: int
    known: int
    prompt_tokens: Range
    reply_tokens: Range
    usd: Range | None

    @property
    def left(self) -> int:
        """How many calls are left to make."""
        return self.calls - self.known


def lines(cells: Sequence[Cell], asked: Sequence[Asked], journal: Journal) -> list[Line]:
    """Return a line for each model, in the order of the cells."""
    found: dict[str, list[tuple[Cell, Asked]]] = {}
    for cell, what in zip(cells, asked, strict=True):
        found.setdefault(cell.model.label, []).append((cell, what))
    return [_line(label, parts, journal) for label, parts in found.items()]


def _line(label: str, parts: Sequence[tuple[Cell, Asked]], journal: Journal) -> Line:
    queries: dict[str, tuple[Model, Query]] = {}
    for cell, what in parts:
        keys, texts = (*what.clean_keys, *what.disturbed_keys), (*what.clean, *what.disturbed)
        queries |= {key: (cell.model, query) for key, query in zip(keys, texts, strict=True)}
    known = journal.get(queries)
    left = [asked for key, asked in queries.items() if key not in known]
    tokens = [cost(model, query) for model, query in left]
    whole = sum(tokens, Cost(Range(0, 0), Range(0, 0)))
    price = parts[0][0].model.price()
    usd = whole.in_money(price) if price else None
    cells = {study.key(cell, what) for cell, what in parts}  # a baseline that is named three times is one
    return Line(label, len(cells), len(queries), len(known), whole.prompt, whole.reply, usd)


@dataclass(frozen=True)
class Cost:
    """The tokens of one call, at least and at most."""

    prompt: Range
    reply: Range

    def in_money(self, price: Price) -> Range:
        """Return what it costs in US dollars."""
        return Range(price.usd(self.prompt.low, self.reply.low), price.usd(self.prompt.high, self.reply.high))

    def most(self, price: Price) -> float:
        """Return the most that it can cost in US dollars."""
        return self.in_money(price).high

    def __add__(self, other: Cost) -> Cost:
        """Return the tokens of several calls."""
        return Cost(self.prompt + other.prompt, self.reply + other.reply)


def cost(model: Model, query: Query) -> Cost:
    """Return what one call takes, by its length and the limit on the reply; a label that is chosen is not written."""
    request, limit = model.request(query), model.signature().get("max_tokens")
    size = characters(request)
    reply = Range(1, limit) if isinstance(limit, int) and not request.get("options") else Range(0, 0)
    return Cost(Range(size / _MOST, size / _FEWEST), reply)


def characters(request: Mapping[str, object]) -> int:
    """Return how many characters a request's messages and form have; of one without messages, the request itself."""
    messages, form = request.get("messages"), request.get("response_format")
    if isinstance(messages, list):
        return sum(len(str(message["content"])) for message in messages) + (len(json.dumps(form)) if form else 0)
    return len(json.dumps(request, ensure_ascii=False))
