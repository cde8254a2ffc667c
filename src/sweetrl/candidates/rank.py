"""Candidates as a critic ranks them. The critic sees the task's secret; whoever drew them did not."""

import math
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from sweetrl.candidates.work import as_finished, failure
from sweetrl.errors import DataError, StageError
from sweetrl.protocols import TurnCritic
from sweetrl.types import CandidateSet, Episode, Message, Task


async def rank_candidates(
    candidates: Iterable[CandidateSet],
    episodes: Mapping[str, Episode],
    tasks: Mapping[str, Task],
    critic: TurnCritic,
    *,
    concurrency: int = 8,
    skip: Callable[[str], bool] = lambda _: False,
) -> AsyncGenerator[CandidateSet]:
    """The candidates with their advantages, as they come; where the critic broke down, with a failure.

    `episodes` and `tasks` are by id; `skip` tells by id which turns are done already. Turns at which the
    agent broke down have no candidates and are left out.
    """

    async def rank(drawn: CandidateSet) -> CandidateSet:
        episode, task = _context(drawn, episodes, tasks)
        try:
            found = await judged(critic, task, episode.history(drawn.turn), drawn.given)
        except StageError as error:
            return replace(drawn, critic=critic.name, failure=failure("critic", error))
        return replace(drawn, critic=critic.name, advantages=tuple(found))

    missing = (each for each in candidates if each.failure is None and not skip(each.id))
    async for ranked in as_finished(missing, rank, concurrency=concurrency):
        yield ranked


def _context(
    drawn: CandidateSet, episodes: Mapping[str, Episode], tasks: Mapping[str, Task]
) -> tuple[Episode, Task]:
    """The dialogue and the task that candidates belong to."""
    episode, task = episodes.get(drawn.episode_id), tasks.get(drawn.task_id)
    if episode is None or drawn.turn >= len(episode.turns):
        raise DataError(f"the candidates of {drawn.id} have no such turn among the episodes")
    if task is None:
        raise DataError(f"the candidates of {drawn.id} are on the task {drawn.task_id}, which is not there")
    return episode, task


async def judged(
    critic: TurnCritic, task: Task, history: Sequence[Message], outputs: Sequence[str]
) -> list[float]:
    """What the critic says, once it is known to be usable: one finite number for each output."""
    advantages = await critic.advantages(task, history, outputs)
    if len(advantages) != len(outputs):
        raise StageError(f"{critic.name} gave {len(advantages)} advantages for {len(outputs)} outputs")
    if not all(math.isfinite(each) for each in advantages):
        raise StageError(f"{critic.name} gave an advantage that is not a finite number")
    return advantages


async def best_candidate(
    critic: TurnCritic, task: Task, history: Sequence[Message], outputs: Sequence[str]
) -> int:
    """Which output the critic likes best; of equals, the first."""
    advantages = await judged(critic, task, history, outputs)
    return max(range(len(outputs)), key=lambda index: advantages[index])
