"""Candidates for every turn of stored dialogues, drawn from an agent that sees what it saw then, and no more.

No collaborator is needed: each turn is asked about on its own, and nothing that is drawn is said.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import NamedTuple

from sweetrl.candidates.work import as_finished, failure
from sweetrl.errors import StageError
from sweetrl.protocols import Agent
from sweetrl.seeds import derive_seed
from sweetrl.types import CandidateSet, Ending, Episode, Unfinished, turn_id

SAMPLES_PER_TURN = 16
"""Paper, section 4.2."""


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

    `skip` tells by id which turns are done already. What is drawn depends on the seed and the turn alone.
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
