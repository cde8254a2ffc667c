"""The values of candidates, estimated by replays: the truth that critics are measured by.

From each candidate of a stored turn, the dialogue is played to its end several times with the same agent and
collaborator, and scored. The mean reward estimates the value of the candidate. A replay depends on the seed, the
turn and the text of the candidate alone, so equal candidates have equal values.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import NamedTuple

from sweetrl.dialogue import rules as game
from sweetrl.dialogue.rollout import Opening, hold_dialogues
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.registry import domain_of
from sweetrl.errors import ConfigError, DataError
from sweetrl.protocols import Agent, Collaborator, Scorer
from sweetrl.seeds import derive_seed
from sweetrl.types import CandidateSet, Episode, Failure, OutputValue, Task, TurnValues, Verdict, digest

REPLAYS = 16
"""Dialogues from each candidate."""


class BranchPoint(NamedTuple):
    """A turn of a stored dialogue, and what the agent might have said there."""

    task: Task
    episode: Episode
    candidates: CandidateSet


async def value_turns(
    turns: Iterable[BranchPoint],
    agent: Agent,
    collaborator: Collaborator,
    scorer: Scorer,
    *,
    replays: int = REPLAYS,
    seed: int = 0,
    concurrency: int = 64,
    rules: Rules | None = None,
    skip: Callable[[str], bool] = lambda _: False,
) -> AsyncGenerator[TurnValues]:
    """Yield the values of the candidates of each turn, in any order; with a failure where a replay broke down.

    `skip` is true for the ids of turns that are done. Turns without candidates are left out.
    """
    if replays < 2:
        raise ConfigError(f"replays ({replays}) must be at least 2: one does not show how much they vary")
    rules = rules or Rules()
    valued: dict[Opening, _Valuation] = {}

    def openings() -> Iterator[Opening]:
        for turn in turns:
            if turn.candidates.failure is None and not skip(turn.candidates.id):
                valuation = _Valuation(turn, scorer, rules, replays, seed)
                for opening in valuation.openings:
                    valued[opening] = valuation
                    yield opening

    held = hold_dialogues(openings(), agent, collaborator, concurrency=concurrency, rules=rules)
    try:
        async with aclosing(held):
            async for opening, episode in held:
                valuation = valued.pop(opening)
                valuation.add(opening, episode)
                if valuation.complete:
                    yield await valuation.values(agent.name, collaborator.name)
    finally:
        for valuation in valued.values():
            valuation.cancel()


class _Valuation:
    """The replays of one turn. Each is judged when it ends, an answer that came before by its first verdict."""

    def __init__(self, turn: BranchPoint, scorer: Scorer, rules: Rules, replays: int, seed: int) -> None:
        self._turn = turn
        self._scorer = scorer
        self._verdicts: dict[str | None, asyncio.Task[Verdict]] = {}
        self._answers: dict[str, dict[int, str | None]] = {}
        self._failure: Failure | None = None
        self.openings = list(_openings(turn, rules, replays, seed))
        self._left = len(self.openings)

    @property
    def complete(self) -> bool:
        """Whether all replays have ended."""
        return self._left == 0

    def add(self, opening: Opening, episode: Episode) -> None:
        """One replay has ended."""
        self._left -= 1
        if episode.failure is not None:
            self._failure = self._failure or episode.failure
            return
        if episode.answer not in self._verdicts:
            judged = self._scorer.score(self._turn.task, episode)
            self._verdicts[episode.answer] = asyncio.ensure_future(judged)
        assert opening.output is not None
        self._answers.setdefault(opening.output, {})[opening.attempt] = episode.answer

    async def values(self, agent: str, collaborator: str) -> TurnValues:
        """The record of this turn, once all replays have ended."""
        verdicts = dict(zip(self._verdicts, await asyncio.gather(*self._verdicts.values()), strict=True))
        failures = [verdict.failure for verdict in verdicts.values() if verdict.failure is not None]
        failure = self._failure or next(iter(failures), None)
        candidates = self._turn.candidates
        return TurnValues(
            episode_id=candidates.episode_id,
            task_id=candidates.task_id,
            turn=candidates.turn,
            outputs=candidates.outputs,
            values=None if failure else tuple(self._value(each, verdicts) for each in candidates.outputs),
            agent=agent,
            collaborator=collaborator,
            scorer=self._scorer.name,
            failure=failure,
        )

    def _value(self, output: str, verdicts: dict[str | None, Verdict]) -> OutputValue:
        # By number, because replays end in any order.
        judged = [verdicts[answer] for _, answer in sorted(self._answers[output].items())]
        rewards = tuple(verdict.reward for verdict in judged if verdict.reward is not None)
        return OutputValue(rewards, tuple(verdict.success for verdict in judged))

    def cancel(self) -> None:
        """Stop judging."""
        for judged in self._verdicts.values():
            judged.cancel()


def _openings(turn: BranchPoint, rules: Rules, replays: int, seed: int) -> Iterator[Opening]:
    """One opening for each replay of each distinct candidate; a candidate that ends the dialogue is replayed once."""
    task, episode, candidates = turn
    if candidates.turn >= len(episode.turns):
        raise DataError(f"the candidates of {candidates.id} have no such turn among the episodes")
    past = episode.turns[: candidates.turn]
    for output in dict.fromkeys(candidates.outputs):
        said = [*(each.said for each in past), game.spoken(output)]
        ends = game.conclude(domain_of(task), said, rules) is not None
        own_seed = derive_seed(seed, candidates.id, digest(output), "replay")
        for replay in range(1 if ends else replays):
            yield Opening(task, replay, own_seed, past, output)
