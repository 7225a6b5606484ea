"""How a server is asked: as many requests at once as it bears, and no more a minute than it allows.

Requests, retries and what a `Retry-After` asks for are the OpenAI client's. This stands between it and the
network, where every single request passes, a repeated one too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from aiolimiter import AsyncLimiter
from anyio import CapacityLimiter

from noisyhealth.models.chat.answer import is_answer

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

# Of a 429 that no waiting helps: https://platform.openai.com/docs/guides/error-codes
_USED_UP = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached"}
CONNECT_SECONDS = 15.0
_CLOSE_SECONDS = 5.0


@dataclass
class Bound:
    """How many requests may be under way: rises by one a round while things go well, halves on a 429.

    Additive increase, multiplicative decrease (RFC 5681, section 3.1). A round is as many successes as the bound is.
    One with fewer under way says nothing about more (RFC 7661). Refusals of requests that were sent before the last
    fall were part of its cause and count no second time.

    >>> bound = Bound(8)
    >>> for sent in (0, 0, 0):
    ...     bound.refused(sent)
    >>> bound.now, bound.falls
    (4.0, 1)
    """

    most: int
    now: float = field(init=False)
    falls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.now = float(self.most)

    def went_well(self, under_way: int) -> None:
        """Rise, if as many were under way as might be."""
        if under_way >= int(self.now):
            self.now = min(float(self.most), self.now + 1 / self.now)

    def refused(self, sent: int) -> None:
        """Fall, unless the request was sent after fewer falls than there are now."""
        if sent == self.falls:
            self.now, self.falls = max(1.0, self.now / 2), self.falls + 1


class Budget:
    """An amount a minute, spent evenly: a second's share may go at once."""

    def __init__(self, per_minute: float) -> None:
        self._share = max(1.0, per_minute / 60)
        self._limiter = AsyncLimiter(self._share, 60 * self._share / per_minute)
        self._turn = asyncio.Lock()  # the limiter would let small amounts overtake large ones

    async def spend(self, amount: float) -> None:
        """Wait until the amount may be spent."""
        async with self._turn:
            while amount > 0:
                await self._limiter.acquire(min(amount, self._share))
                amount -= self._share


class Pace:
    """Lets requests go when it is their turn; to be made in the event loop they run in.

    `most`: requests at once. `requests`, `tokens`: how many a minute, None for no limit.
    """

    def __init__(self, most: int, requests: float | None, tokens: float | None) -> None:
        self.bound = Bound(most)
        self._slots = CapacityLimiter(most)
        self._requests, self._tokens = requests and Budget(requests), tokens and Budget(tokens)

    @asynccontextmanager
    async def turn(self, tokens: float) -> AsyncIterator[int]:
        """Hold a place for one request of so many tokens; gives the falls before it, which `observe` wants."""
        async with self._slots:
            if self._requests:
                await self._requests.spend(1)
            if self._tokens:
                await self._tokens.spend(tokens)
            yield self.bound.falls

    def observe(self, status: int, sent: int) -> None:
        """Learn from a response's status."""
        if status == 429:
            self.bound.refused(sent)
        elif status < 400:
            self.bound.went_well(self._slots.borrowed_tokens + 1)
        self._slots.total_tokens = int(self.bound.now)


def client(pace: Pace, seconds: float, tokens: int) -> httpx2.AsyncClient:
    """Return the HTTP client of an AsyncOpenAI that keeps a pace and turns away what is no answer.

    `seconds`: until a request is given up, however it trickles. `tokens`: what an answer may have; a request is
    taken to have one for four characters.
    """
    import httpx2
    from openai import DefaultAsyncHttpxClient

    class Paced(DefaultAsyncHttpxClient):
        # An event hook would not see the requests that never get a response.
        async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            async with pace.turn(len(request.content) / 4 + tokens) as sent:
                try:
                    async with asyncio.timeout(seconds):
                        response = await super().send(request, **options)
                except TimeoutError:
                    raise httpx2.ReadTimeout(f"no whole answer in {seconds} s", request=request) from None
            pace.observe(response.status_code, sent)
            if response.is_success and not is_answer(content(response)):
                # Retried by the OpenAI client as a broken connection is.
                raise httpx2.DecodingError(f"the server sent no message but {response.text[:100]!r}", request=request)
            if used_up(response):
                response.headers["x-should-retry"] = "false"  # the OpenAI client obeys
            return response

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=pace.bound.most)
    return Paced(timeout=httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)), limits=limits)


def content(response: httpx2.Response) -> dict[str, Any]:
    """Return the object in a response, an empty one where there is none."""
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def used_up(response: httpx2.Response) -> bool:
    """Return whether the account behind the key has nothing left."""
    error = content(response).get("error") if response.status_code in (400, 429) else None
    codes = {str(error.get("code")), str(error.get("type"))} if isinstance(error, dict) else set()
    return response.status_code == 402 or bool(codes & _USED_UP)


@dataclass(frozen=True)
class _Ended:
    """The last thing in the queue, with what ended the task."""

    error: BaseException | None


def in_background(work: Callable[[Callable[[T], Awaitable[None]]], Coroutine[Any, Any, None]]) -> Iterator[T]:
    """Yield what a task gives, when it gives it; the task has a thread and event loop of its own.

    Giving waits until the next thing is asked for: until then what was given may not be kept, and whoever gave it must
    not ask for more. What the task raises is raised here. It is cancelled when nobody wants more.
    """
    given = SimpleQueue[tuple[T, asyncio.Future[None]] | _Ended]()
    loop = asyncio.new_event_loop()

    async def give(thing: T) -> None:
        taken = loop.create_future()
        given.put((thing, taken))
        await taken

    task = loop.create_task(work(give))

    async def whole() -> None:
        await task

    def run() -> None:
        error: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(whole())
        except BaseException as raised:
            error = raised
        given.put(_Ended(error))

    # A daemon: interrupted, the process does not stay for calls that nobody wants any more.
    thread = Thread(target=run, name="chat call", daemon=True)
    thread.start()
    try:
        while not isinstance(got := given.get(), _Ended):
            thing, taken = got
            yield thing
            with suppress(RuntimeError):  # the task has ended, and its loop is closed
                loop.call_soon_threadsafe(_take, taken)
        if got.error:
            raise got.error
    finally:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)
        thread.join(_CLOSE_SECONDS)


def _take(taken: asyncio.Future[None]) -> None:
    if not taken.done():  # cancelled with its task
        taken.set_result(None)
