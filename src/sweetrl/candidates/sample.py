"""Candidates for every turn of stored dialogues, drawn from an agent that sees only what it had seen then.

No collaborator is needed: each turn is sampled on its own, and no candidate becomes part of a dialogue.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator
from typing import NamedTuple

from sweetrl.candidates.work import as_finished, failure
from sweetrl.errors import StageError, UsageError
from sweetrl.protocols import Agent
from sweetrl.seeds import derive_seed
from sweetrl.types import CandidateSet, Ending, Episode, Unfinished, turn_id

SAMPLES_PER_TURN = 16
"""Paper, section 4.2."""
SUSPICIOUS = 8
"""If the candidates of each of the first turns, this many, are copies of one text, the server does not sample."""


class StoredTurn(NamedTuple):
    """A turn of a dialogue that was held."""

    episode: Episode
    turn: int

    @property
    def id(self) -> str:
        """The id of every record about it."""
        return turn_id(self.episode.id, self.turn)


def stored_turns(episodes: Iterable[Episode]) -> Iterator[StoredTurn]:
    """All turns of the dialogues that did not fail."""
    for episode in episodes:
        if episode.ending is not Ending.FAILED:
            yield from (StoredTurn(episode, turn) for turn in range(len(episode.turns)))


async def sample_candidates(
    episodes: Iterable[Episode],
    agent: Agent,
    *,
    n: int = SAMPLES_PER_TURN,
    seed: int = 0,
    concurrency: int = 64,
    skip: Callable[[str], bool] = lambda _: False,
) -> AsyncGenerator[CandidateSet]:
    """`n` raw outputs for each turn, as they come; a turn at which the agent broke down has a failure.

    `skip` is true for the ids of turns that are done. The outputs depend on the seed and the turn alone.
    """

    async def draw(stored: StoredTurn) -> CandidateSet:
        episode, turn = stored
        outputs: list[str] = []
        failed = None
        try:
            own_seed = derive_seed(seed, episode.id, turn, "candidates")
            outputs = await agent.sample(episode.history(turn), n=n, seed=own_seed)
        except StageError as error:
            failed = failure("agent", error)
        return CandidateSet(
            episode_id=episode.id,
            task_id=episode.task_id,
            turn=turn,
            outputs=tuple(map(str, outputs)),
            unfinished=tuple(at for at, output in enumerate(outputs) if isinstance(output, Unfinished)),
            failure=failed,
        )

    missing = (stored for stored in stored_turns(episodes) if not skip(stored.id))
    async for drawn in as_finished(missing, draw, concurrency=concurrency):
        yield drawn


async def refuse_copies(drawn: AsyncIterable[CandidateSet], agent: str) -> AsyncGenerator[CandidateSet]:
    """The candidates as they come; an error if those of the first turns are copies of one text each.

    Some servers ignore temperature, seed and number of samples. Copies would teach nothing, after hours of sampling.
    """
    copies = 0
    differ = False
    async for each in drawn:
        yield each
        differ = differ or len(set(each.outputs)) > 1
        copies += len(each.outputs) > 1
        if copies == SUSPICIOUS and not differ:
            raise UsageError(
                f"{agent}: all candidates of the first {SUSPICIOUS} turns are copies of one text each, so the server "
                f"does not sample; `sweetrl doctor --model {agent}` tells what it ignores"
            )
