"""What every chat model must do. Subclass `ChatModelContract`, name it `Test...`, and say how to open one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from sweetrl.protocols import ChatModel
from sweetrl.types import Completion, Message, Role, Sampling

CHAT = (
    Message(Role.SYSTEM, "You help."),
    Message(Role.USER, "Write a function."),
    Message(Role.ASSISTANT, "Which one?"),
    Message(Role.USER, "The one that adds two numbers."),
)
OTHER_CHAT = (Message(Role.USER, "What is the capital of France?"),)
SAMPLING = Sampling(max_tokens=12)


@asynccontextmanager
async def closing(model: ChatModel) -> AsyncIterator[ChatModel]:
    """`model`, closed in the end."""
    try:
        yield model
    finally:
        await model.close()


class ChatModelContract:
    """One test for each promise of the protocol."""

    def open(self) -> AbstractAsyncContextManager[ChatModel]:
        """A model, closed in the end. Called once for each test."""
        raise NotImplementedError

    def ask(self, *, n: int = 1, seed: int = 1, times: int = 1) -> list[list[Completion]]:
        """The answers to the same request, asked `times` times, one after the other."""

        async def run() -> list[list[Completion]]:
            async with self.open() as model:
                return [await model.complete(CHAT, n=n, sampling=SAMPLING, seed=seed) for _ in range(times)]

        return asyncio.run(run())

    @pytest.mark.parametrize("n", [1, 3, 16])
    def test_it_gives_as_many_samples_as_asked_for(self, n: int) -> None:
        [completions] = self.ask(n=n)
        assert len(completions) == n
        assert all(isinstance(completion.text, str) for completion in completions)
        assert {completion.finish for completion in completions} <= {"stop", "length"}

    def test_the_same_seed_gives_the_same_samples(self) -> None:
        first, again = self.ask(n=3, seed=7, times=2)
        assert [each.text for each in first] == [each.text for each in again]

    def test_the_prompt_is_counted_and_so_is_what_was_written(self) -> None:
        [completions] = self.ask(n=2)
        assert completions[0].usage.prompt_tokens > 0
        assert sum(completion.usage.completion_tokens for completion in completions) > 0

    def test_answers_do_not_depend_on_what_else_is_under_way(self) -> None:
        async def run() -> tuple[list[str], list[str]]:
            async with self.open() as model:

                async def text(number: int) -> str:
                    chat = CHAT if number % 2 else OTHER_CHAT
                    [completion] = await model.complete(chat, n=1, sampling=SAMPLING, seed=number)
                    return completion.text

                together = await asyncio.gather(*(text(number) for number in range(6)))
                return together, [await text(number) for number in range(6)]

        together, alone = asyncio.run(run())
        assert together == alone

    def test_a_cancelled_request_leaves_the_model_usable(self) -> None:
        async def run() -> list[Completion]:
            async with self.open() as model:
                doomed = asyncio.create_task(model.complete(CHAT, n=1, sampling=SAMPLING, seed=1))
                await asyncio.sleep(0)
                doomed.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await doomed
                return await model.complete(CHAT, n=1, sampling=SAMPLING, seed=1)

        [completion] = asyncio.run(run())
        assert completion.text == self.ask()[0][0].text

    def test_it_can_be_closed_twice(self) -> None:
        async def run() -> None:
            async with self.open() as model:
                await model.complete(CHAT, n=1, sampling=SAMPLING, seed=1)
                await model.close()
                await model.close()

        asyncio.run(run())

    def test_it_has_a_name_of_one_line(self) -> None:
        async def run() -> str:
            async with self.open() as model:
                return model.name

        name = asyncio.run(run())
        assert name
        assert len(name.splitlines()) == 1
