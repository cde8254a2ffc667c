import asyncio
import threading
from collections.abc import Sequence

import pytest

from sweetrl.learning.gathering import Gathering


def squares(numbers: Sequence[int]) -> list[int | Exception]:
    return [ValueError(f"{number} is negative") if number < 0 else number**2 for number in numbers]


def asked(gathering: Gathering[int, int], *numbers: int) -> list[int | BaseException]:
    async def ask() -> list[int | BaseException]:
        return await asyncio.gather(*map(gathering.ask, numbers), return_exceptions=True)

    return asyncio.run(ask())


def test_questions_of_one_moment_are_answered_together_and_in_order() -> None:
    groups = []

    def answer(numbers: Sequence[int]) -> list[int | Exception]:
        groups.append(list(numbers))
        return squares(numbers)

    gathering = Gathering[int, int](answer)
    assert asked(gathering, *range(20)) == [number**2 for number in range(20)]
    assert groups == [list(range(20))]
    assert asked(gathering, 3) == [9]


def test_questions_that_come_while_others_are_answered_are_gathered() -> None:
    groups = []
    begun, go_on = threading.Event(), threading.Event()

    def answer(numbers: Sequence[int]) -> list[int | Exception]:
        groups.append(list(numbers))
        begun.set()
        go_on.wait(10)
        return squares(numbers)

    gathering = Gathering[int, int](answer)

    async def ask() -> list[int]:
        first = asyncio.create_task(gathering.ask(1))
        await asyncio.to_thread(begun.wait, 10)
        others = []
        for number in (2, 3, 4):
            others.append(asyncio.create_task(gathering.ask(number)))
            await asyncio.sleep(0)
        go_on.set()
        return await asyncio.gather(first, *others)

    assert asyncio.run(ask()) == [1, 4, 9, 16]
    assert groups == [[1], [2, 3, 4]]


def test_an_exception_in_place_of_an_answer_is_raised_for_its_asker_alone() -> None:
    one, two, three = asked(Gathering[int, int](squares), 1, -2, 3)
    assert (one, three) == (1, 9)
    assert isinstance(two, ValueError)
    assert str(two) == "-2 is negative"


def test_a_breakdown_is_raised_for_all_that_were_asked_together() -> None:
    def broken(_: Sequence[int]) -> list[int | Exception]:
        raise ZeroDivisionError

    gathering = Gathering[int, int](broken)
    assert [type(each) for each in asked(gathering, 1, 2, 3)] == [ZeroDivisionError] * 3


def test_whoever_no_longer_waits_takes_nothing_from_the_others() -> None:
    gathering = Gathering[int, int](squares)

    async def ask() -> int:
        gone = asyncio.create_task(gathering.ask(5))
        stays = asyncio.create_task(gathering.ask(6))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await stays

    assert asyncio.run(ask()) == 36
