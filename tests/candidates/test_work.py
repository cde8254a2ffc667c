import asyncio
import gc
from collections.abc import Iterator

import pytest

from sweetrl.candidates.work import as_finished, failure
from sweetrl.errors import ModelError, StageError


async def collect(items, work, concurrency):
    return [each async for each in as_finished(items, work, concurrency=concurrency)]


def test_all_work_is_done_and_no_more_than_allowed_is_under_way():
    under_way, most = 0, 0

    async def work(item: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return item * 2

    assert sorted(asyncio.run(collect(range(20), work, 3))) == [item * 2 for item in range(20)]
    assert most == 3


def test_results_come_as_they_finish():
    gate = asyncio.Event()

    async def work(item: int) -> int:
        if item == 0:
            await gate.wait()
        elif item == 3:
            gate.set()
        return item

    assert asyncio.run(collect(range(4), work, 2))[:2] == [1, 2]


def test_items_are_taken_only_when_there_is_room():
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(100):
            taken.append(item)
            yield item

    async def work(item: int) -> int:
        return item

    async def first() -> None:
        results = as_finished(items(), work, concurrency=2)
        await anext(results)
        await results.aclose()

    asyncio.run(first())
    assert len(taken) <= 4


def test_an_error_ends_the_work_that_is_under_way():
    cancelled: list[int] = []

    async def work(item: int) -> int:
        if item == 1:
            await asyncio.sleep(0)
            raise ValueError("broken")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        return item

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(collect(range(3), work, 3))
    assert sorted(cancelled) == [0, 2]


def test_a_failure_names_its_stage_and_kind_on_one_line():
    found = failure("critic", ModelError("too\nlong", kind="context_length"))
    assert (found.stage, found.kind, found.message) == ("critic", "context_length", "too long")
    assert failure("agent", StageError("x" * 9000)).kind == "StageError"
    assert len(failure("agent", StageError("x" * 9000)).message) == 500


def test_of_several_that_break_down_together_one_is_raised_and_no_other_is_printed():
    async def work(item):
        raise ConnectionError(item)

    async def run():
        printed = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: printed.append(context))
        with pytest.raises(ConnectionError):
            await collect(["a", "b", "c"], work, 3)
        gc.collect()
        await asyncio.sleep(0)
        return printed

    assert asyncio.run(run()) == []
