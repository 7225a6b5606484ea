import asyncio
import time
from collections.abc import Awaitable, Callable
from threading import enumerate as threads

import pytest

from noisyhealth.models.chat.pace import Bound, Budget, Pace, in_background


def after(most: int, events: str) -> Bound:
    """A bound after successes with all under way (+) or few (.), and refusals of requests sent after the last fall (-)
    or before it (=)."""
    bound = Bound(most)
    for event in events:
        if event == "+":
            bound.went_well(bound.most)
        elif event == ".":
            bound.went_well(1)
        else:
            bound.refused(bound.falls if event == "-" else bound.falls - 1)
    return bound


@pytest.mark.parametrize(
    ("most", "events", "now"),
    [
        (8, "", 8),
        (8, "+++", 8),  # never above what was asked for
        (8, "-", 4),
        (8, "--", 2),
        (8, "----------", 1),  # one call is always under way
        (8, "-======", 4),  # those sent before the fall were its cause
        (8, "-+", 4.25),
        (4, "--+", 2),
        (8, "-......", 4),  # few under way: that says nothing about more
        (1, "-+-+", 1),
    ],
)
def test_the_bound_halves_on_a_refusal_and_rises_by_one_over_itself(most: int, events: str, now: float) -> None:
    assert after(most, events).now == now


def test_a_round_of_successes_adds_about_one() -> None:
    assert after(64, "---" + "+" * 8).now == pytest.approx(9, abs=0.1)


def test_the_bound_comes_back_to_where_it_was() -> None:
    assert after(16, "-" + "+" * 200).now == 16


async def called(pace: Pace, status: Callable[[int], int], count: int) -> list[int]:
    """Make calls through a pace; `status` answers by how many are under way. Returns that number for each."""
    under_way, seen = 0, []

    async def call() -> None:
        nonlocal under_way
        while True:
            async with pace.turn(1) as sent:
                under_way += 1
                seen.append(under_way)
                answered = status(under_way)
                await asyncio.sleep(0.001)
                under_way -= 1
            pace.observe(answered, sent)
            if answered == 200:
                return

    await asyncio.gather(*(call() for _ in range(count)))
    assert under_way == 0
    return seen


def run(work: Callable[[], Awaitable[object]]) -> float:
    """Run to the end and return the seconds."""

    async def timed() -> float:
        start = time.perf_counter()
        await work()
        return time.perf_counter() - start

    return asyncio.run(timed())


def test_as_many_go_at_once_as_allowed_and_no_more() -> None:
    assert max(asyncio.run(called_with(8, lambda _: 200, 100))) == 8


async def called_with(most: int, status: Callable[[int], int], count: int) -> list[int]:
    return await called(Pace(most, None, None), status, count)


@pytest.mark.parametrize(("bears", "refused"), [(1, 0.5), (3, 0.3), (10, 0.1)])
def test_a_server_is_asked_at_about_the_rate_it_bears(bears: int, refused: float) -> None:
    seen = asyncio.run(called_with(32, lambda under_way: 429 if under_way > bears else 200, 600))
    later = seen[len(seen) // 3 :]
    assert max(later) <= bears + 2  # calls that end while a refusal is on its way raise the bound once more
    assert sum(later) / len(later) > bears / 3
    assert sum(n > bears for n in later) <= refused * len(later)


@pytest.mark.parametrize("status", [500, 503, 404])
def test_only_a_429_lowers_the_bound(status: int) -> None:
    async def one() -> float:
        pace = Pace(8, None, None)
        async with pace.turn(1) as sent:
            pass
        pace.observe(status, sent)
        return pace.bound.now

    assert asyncio.run(one()) == 8


def test_a_place_is_given_back_when_a_call_breaks() -> None:
    async def broken_and_whole() -> None:
        pace = Pace(1, None, None)
        for _ in range(3):
            with pytest.raises(ConnectionError):
                async with pace.turn(1):
                    raise ConnectionError
        async with asyncio.timeout(1), pace.turn(1):
            pass

    asyncio.run(broken_and_whole())


@pytest.mark.parametrize(
    ("per_minute", "amounts", "seconds"),
    [
        (600, [1] * 10, 0.0),  # a second's share goes at once
        (600, [1] * 15, 0.5),
        (6000, [150], 0.5),  # more than a second's share: when its time has passed
        (6000, [60, 60, 60], 0.8),
        (120, [1, 1, 1], 0.5),  # twice a second: two at once, half a second for the third
        (240000, [1] * 100, 0.0),
    ],
)
def test_a_budget_is_spent_evenly(per_minute: float, amounts: list[float], seconds: float) -> None:
    async def spend() -> None:
        budget = Budget(per_minute)
        await asyncio.gather(*map(budget.spend, amounts))

    assert run(spend) == pytest.approx(seconds, abs=0.12)


def test_a_large_amount_is_not_overtaken_for_ever() -> None:
    async def spend() -> None:
        budget, order = Budget(6000), list[int]()

        async def one(amount: int) -> None:
            await budget.spend(amount)
            order.append(amount)

        await asyncio.gather(*map(one, [90, 20, 5, 5]))
        assert order == [90, 20, 5, 5]

    run(spend)


def test_requests_and_tokens_have_limits_of_their_own() -> None:
    async def calls(pace: Callable[[], Pace]) -> None:
        made = pace()

        async def one() -> None:
            async with made.turn(50):
                pass

        await asyncio.gather(*(one() for _ in range(10)))

    assert run(lambda: calls(lambda: Pace(10, None, None))) < 0.1
    assert run(lambda: calls(lambda: Pace(10, 300, None))) == pytest.approx(1.0, abs=0.15)
    assert run(lambda: calls(lambda: Pace(10, None, 18000))) == pytest.approx(0.67, abs=0.15)


def test_what_a_background_task_gives_arrives_before_it_ends() -> None:
    async def slowly(give: Callable[[int], Awaitable[None]]) -> None:
        await give(1)
        await asyncio.sleep(0.3)
        await give(2)

    start = time.perf_counter()
    given = in_background(slowly)
    assert next(given) == 1
    assert time.perf_counter() - start < 0.2
    assert list(given) == [2]


def test_a_background_task_does_not_go_on_before_what_it_gave_is_taken() -> None:
    steps = list[str]()

    async def careful(give: Callable[[int], Awaitable[None]]) -> None:
        for number in range(2):
            await give(number)
            steps.append(f"gave {number}")

    given = in_background(careful)
    assert next(given) == 0
    time.sleep(0.1)
    assert steps == []
    assert next(given) == 1
    assert steps == ["gave 0"]
    assert list(given) == []


def test_what_a_background_task_raises_is_raised_after_what_it_gave() -> None:
    async def failing(give: Callable[[int], Awaitable[None]]) -> None:
        await give(1)
        raise ValueError("no more")

    given = in_background(failing)
    assert next(given) == 1
    with pytest.raises(ValueError, match="no more"):
        next(given)


def test_a_background_task_ends_when_nobody_wants_more() -> None:
    ended = list[str]()

    async def endless(give: Callable[[int], Awaitable[None]]) -> None:
        try:
            await give(1)
            await asyncio.sleep(60)
        finally:
            ended.append("closed")

    given = in_background(endless)
    next(given)
    start = time.perf_counter()
    given.close()  # type: ignore[attr-defined]
    assert time.perf_counter() - start < 1
    assert ended == ["closed"]
    assert "chat call" not in {thread.name for thread in threads()}
