import asyncio
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.models.concurrency import DECREASE, TOLERANCE, AdaptiveLimiter


async def fill(limiter: AdaptiveLimiter, stack: AsyncExitStack) -> None:
    while limiter.in_flight < limiter.limit:
        await stack.enter_async_context(limiter.slot())


async def refuse_all(limiter: AdaptiveLimiter) -> None:
    """One round of which every request is pushed back."""
    async with AsyncExitStack() as stack:
        slots = [await stack.enter_async_context(limiter.slot()) for _ in range(limiter.limit)]
        for slot in slots:
            limiter.pushed_back(slot)


def test_no_more_requests_than_the_limit_are_under_way() -> None:
    async def run() -> int:
        limiter = AdaptiveLimiter(start=3, ceiling=3)
        peak = 0

        async def request() -> None:
            nonlocal peak
            async with limiter.slot():
                peak = max(peak, limiter.in_flight)
                await asyncio.sleep(0)
                limiter.succeeded()

        await asyncio.gather(*(request() for _ in range(20)))
        assert limiter.in_flight == 0
        return peak

    assert asyncio.run(run()) == 3


def test_places_are_given_in_the_order_of_asking() -> None:
    async def run() -> list[int]:
        limiter = AdaptiveLimiter(start=1, ceiling=1)
        order = []

        async def request(number: int) -> None:
            async with limiter.slot():
                await asyncio.sleep(0)
                order.append(number)

        await asyncio.gather(*(request(number) for number in range(6)))
        return order

    assert asyncio.run(run()) == [0, 1, 2, 3, 4, 5]


def test_before_the_first_push_back_a_round_of_replies_doubles_the_limit() -> None:
    async def run() -> int:
        limiter = AdaptiveLimiter(start=4, ceiling=100)
        async with AsyncExitStack() as stack:
            await fill(limiter, stack)
            for _ in range(4):
                limiter.succeeded()
                await fill(limiter, stack)
        return limiter.limit

    assert asyncio.run(run()) == 8


def test_after_a_push_back_a_round_of_replies_adds_about_one() -> None:
    async def run() -> tuple[int, int]:
        limiter = AdaptiveLimiter(start=100, ceiling=200)
        await refuse_all(limiter)
        cut = limiter.limit
        async with AsyncExitStack() as stack:
            await fill(limiter, stack)
            for _ in range(cut + 1):
                limiter.succeeded()
                await fill(limiter, stack)
        return cut, limiter.limit

    cut, later = asyncio.run(run())
    assert cut == int(100 * DECREASE)
    assert later == cut + 1


def test_the_refusals_of_one_round_cut_the_limit_once() -> None:
    async def run() -> int:
        limiter = AdaptiveLimiter(start=100, ceiling=200)
        await refuse_all(limiter)
        return limiter.limit

    assert asyncio.run(run()) == int(100 * DECREASE)


def test_a_server_that_refuses_everything_gets_one_request_at_a_time_in_the_end() -> None:
    async def run() -> int:
        limiter = AdaptiveLimiter(start=100, ceiling=200)
        for _ in range(50):
            await refuse_all(limiter)
        return limiter.limit

    assert asyncio.run(run()) == 1


def test_refusals_that_are_the_exception_do_not_slow_us_down() -> None:
    async def run() -> int:
        limiter = AdaptiveLimiter(start=50, ceiling=50)
        every = int(2 / TOLERANCE)
        for number in range(1000):
            async with limiter.slot() as slot:
                if number % every == every - 1:
                    limiter.pushed_back(slot)
                else:
                    limiter.succeeded()
        return limiter.limit

    assert asyncio.run(run()) == 50


def test_the_limit_does_not_grow_while_it_holds_nothing_back() -> None:
    async def run() -> int:
        limiter = AdaptiveLimiter(start=10, ceiling=100)
        for _ in range(50):
            async with limiter.slot():
                limiter.succeeded()
        return limiter.limit

    assert asyncio.run(run()) == 10


@given(st.integers(1, 20), st.integers(0, 30), st.lists(st.booleans(), max_size=60))
def test_the_limit_stays_between_one_and_the_ceiling(start: int, more: int, events: list[bool]) -> None:
    async def run() -> None:
        limiter = AdaptiveLimiter(start=start, ceiling=start + more)
        for good in events:
            async with AsyncExitStack() as stack:
                await fill(limiter, stack)
                if good:
                    limiter.succeeded()
            if not good:
                await refuse_all(limiter)
            assert 1 <= limiter.limit <= start + more

    asyncio.run(run())


@given(st.lists(st.integers(0, 9), max_size=10), st.integers(0, 3))
def test_cancelled_requests_leak_no_places(cancelled: list[int], steps: int) -> None:
    async def run() -> None:
        limiter = AdaptiveLimiter(start=2, ceiling=2)

        async def request() -> None:
            async with limiter.slot():
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(request()) for _ in range(10)]
        for _ in range(steps):
            await asyncio.sleep(0)
        for number in cancelled:
            tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limiter.in_flight == 0
        async with asyncio.timeout(5):
            await request()

    asyncio.run(run())


def test_a_start_above_the_ceiling_is_refused() -> None:
    with pytest.raises(ValueError, match="ceiling"):
        AdaptiveLimiter(start=5, ceiling=4)
