"""Verdicts come in order, from at most a window of episodes at a time."""

import asyncio
from contextlib import aclosing

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.evaluation.batches import score_in_order
from sweetrl.types import Ending, Episode, Task, Verdict

TASK = Task(id="t", domain="backend", request="r", secret=BackendSecret("def f(): ...", {"t1": "f()"}))


def episode(attempt: int) -> Episode:
    return Episode(
        task_id="t",
        attempt=attempt,
        seed=0,
        agent="",
        collaborator="",
        request="r",
        turns=(),
        ending=Ending.ANSWERED,
        answer="",
    )


class SlowFirst:
    """A scorer that takes longest over the first episode."""

    name = "slow-first/1"

    def __init__(self) -> None:
        self.open = self.most_open = 0
        self.cancelled = 0

    async def score(self, task: Task, episode: Episode) -> Verdict:
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            await asyncio.sleep(0.05 if episode.attempt == 0 else 0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.open -= 1
        return Verdict(
            task_id="t", episode_id=episode.id, scorer=self.name, answer_digest="-", reward=1.0, success=True
        )


def test_verdicts_keep_the_order_of_the_episodes_though_the_first_is_slow():
    async def ids() -> list[str]:
        stream = score_in_order(((TASK, episode(i)) for i in range(200)), SlowFirst(), concurrency=1)
        return [verdict.episode_id async for verdict in stream]

    assert asyncio.run(ids()) == [f"t#{i}" for i in range(200)]


def test_no_more_than_a_window_is_read_ahead():
    read = []

    async def take_one() -> None:
        items = ((TASK, episode(i)) for i in range(10_000) if not read.append(i))
        async with aclosing(score_in_order(items, SlowFirst(), concurrency=2)) as stream:
            await anext(stream)

    asyncio.run(take_one())
    assert len(read) == 64


def test_leaving_early_cancels_what_is_under_way():
    scorer = SlowFirst()

    class Stuck(SlowFirst):
        async def score(self, task, episode):
            if episode.attempt > 0:
                scorer.open += 1
                try:
                    await asyncio.sleep(60)
                finally:
                    scorer.open -= 1
            return await super().score(task, episode)

    async def take_one() -> None:
        items = ((TASK, episode(i)) for i in range(100))
        async with aclosing(score_in_order(items, Stuck(), concurrency=1)) as stream:
            await anext(stream)
            assert scorer.open > 0

    asyncio.run(take_one())
    assert scorer.open == 0
