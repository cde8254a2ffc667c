"""Rank candidates by a critic, which sees the task's secret; the agent that drew them did not."""

import math
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from sweetrl.candidates.work import as_finished, failure
from sweetrl.errors import DataError, StageError
from sweetrl.protocols import BatchCritic, Choice, TurnCritic
from sweetrl.types import CandidateSet, Episode, Message, Task

TEXT_AT_ONCE = 1 << 15
"""Characters of the turns that a critic judges together, if it can: some thirty turns of a tiny model."""


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

    `episodes` and `tasks` are by id; `skip` is true for the ids of turns that are done. Turns at which the
    agent broke down have no candidates and are left out. A critic that judges turns together is given one
    group after the other; any other critic is asked about `concurrency` turns at a time.
    """
    drawn = ((each, _choice(each, episodes, tasks)) for each in candidates if each.failure is None)
    if isinstance(critic, BatchCritic):
        ranking = _in_groups(drawn, critic, skip)
    else:
        ranking = _one_by_one(drawn, critic, skip, concurrency)
    async with aclosing(ranking):
        async for ranked in ranking:
            yield ranked


_Drawn = tuple[CandidateSet, Choice]


async def _one_by_one(
    drawn: Iterable[_Drawn], critic: TurnCritic, skip: Callable[[str], bool], concurrency: int
) -> AsyncGenerator[CandidateSet]:
    async def rank(one: _Drawn) -> CandidateSet:
        candidates, choice = one
        try:
            return _ranked(candidates, critic, await judged(critic, *choice))
        except StageError as error:
            return _ranked(candidates, critic, error)

    missing = (one for one in drawn if not skip(one[0].id))
    async for ranked in as_finished(missing, rank, concurrency=concurrency):
        yield ranked


async def _in_groups(
    drawn: Iterable[_Drawn], critic: BatchCritic, skip: Callable[[str], bool]
) -> AsyncGenerator[CandidateSet]:
    """In the order of the candidates.

    The composition of a group affects the last bits of its advantages. So groups depend on the candidates alone,
    and a group that is partly done is judged again as a whole.
    """
    for group in _groups(drawn):
        missing = [not skip(candidates.id) for candidates, _ in group]
        if not any(missing):
            continue
        found = await critic.judge_together([choice for _, choice in group])
        for (candidates, choice), advantages, wanted in zip(group, found, missing, strict=True):
            if wanted:
                yield _ranked(candidates, critic, _usable(critic, advantages, choice.outputs))


def _groups(drawn: Iterable[_Drawn]) -> Iterator[list[_Drawn]]:
    """As many at a time, in their order, as `TEXT_AT_ONCE` allows."""
    group: list[_Drawn] = []
    length = 0
    for candidates, choice in drawn:
        own = sum(len(each.text) for each in choice.history) + sum(map(len, choice.outputs))
        if group and length + own > TEXT_AT_ONCE:
            yield group
            group, length = [], 0
        group.append((candidates, choice))
        length += own
    if group:
        yield group


def _ranked(drawn: CandidateSet, critic: TurnCritic, found: list[float] | StageError) -> CandidateSet:
    if isinstance(found, StageError):
        return replace(drawn, critic=critic.name, failure=failure("critic", found))
    return replace(drawn, critic=critic.name, advantages=tuple(found))


def _choice(drawn: CandidateSet, episodes: Mapping[str, Episode], tasks: Mapping[str, Task]) -> Choice:
    episode, task = _context(drawn, episodes, tasks)
    return Choice(task, episode.history(drawn.turn), drawn.given)


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
    """The critic's advantages, checked: one finite number per output."""
    advantages = _usable(critic, await critic.advantages(task, history, outputs), outputs)
    if isinstance(advantages, StageError):
        raise advantages
    return advantages


def _usable(
    critic: TurnCritic, advantages: list[float] | StageError, outputs: Sequence[str]
) -> list[float] | StageError:
    """The critic's advantages, or an error that explains why they are unusable."""
    if isinstance(advantages, StageError):
        return advantages
    if len(advantages) != len(outputs):
        return StageError(f"{critic.name} gave {len(advantages)} advantages for {len(outputs)} outputs")
    if not all(math.isfinite(each) for each in advantages):
        return StageError(f"{critic.name} gave an advantage that is not a finite number")
    return advantages


async def best_candidate(
    critic: TurnCritic, task: Task, history: Sequence[Message], outputs: Sequence[str]
) -> int:
    """Which output the critic likes best; of equals, the first."""
    advantages = await judged(critic, task, history, outputs)
    return max(range(len(outputs)), key=lambda index: advantages[index])
