"""Credit for the turns of stored dialogues: which of them earned the outcome, in a critic's eyes."""

import math
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

from msgspec.structs import replace

from sweetrl.candidates.rank import judged
from sweetrl.candidates.sample import StoredTurn, stored_turns
from sweetrl.candidates.work import as_finished, failure
from sweetrl.errors import StageError
from sweetrl.protocols import TokenCritic, TurnCritic
from sweetrl.types import Episode, Failure, Task, TokenCredit, TurnCredit


async def credit_turns(
    dialogues: Iterable[tuple[Task, Episode]],
    critic: TurnCritic,
    *,
    concurrency: int = 8,
    skip: Callable[[str], bool] = lambda _: False,
    labels: Mapping[str, str] | None = None,
) -> AsyncGenerator[TurnCredit]:
    """An advantage for each turn, as they come, and one for each token if the critic can tell them apart.

    `labels`: how people call the dialogues, by episode id; records name dialogue and turn that way, too.
    """

    async def credit(judging: tuple[Task, StoredTurn]) -> TurnCredit:
        task, stored = judging
        try:
            advantage, tokens = await _judge(critic, task, stored)
        except StageError as error:
            return _credit(stored, critic, None, None, failure("critic", error))
        return _credit(stored, critic, advantage, tokens, None)

    missing = (
        (task, stored)
        for task, episode in dialogues
        for stored in stored_turns([episode])
        if not skip(stored.id)
    )
    async for credited in as_finished(missing, credit, concurrency=concurrency):
        label = None if labels is None else labels.get(credited.episode_id)
        yield credited if label is None else replace(credited, dialogue=label, number=credited.turn + 1)


async def _judge(
    critic: TurnCritic, task: Task, stored: StoredTurn
) -> tuple[float, tuple[TokenCredit, ...] | None]:
    history, output = stored.episode.history(stored.turn), stored.episode.turns[stored.turn].given
    if isinstance(critic, TokenCritic):
        tokens = await critic.token_advantages(task, history, output)
        advantage = math.fsum(token.advantage for token in tokens)
        if not math.isfinite(advantage):
            raise StageError(f"{critic.name} gave an advantage that is not a finite number")
        return advantage, tuple(tokens)
    [advantage] = await judged(critic, task, history, [output])
    return advantage, None


def _credit(
    stored: StoredTurn,
    critic: TurnCritic,
    advantage: float | None,
    tokens: tuple[TokenCredit, ...] | None,
    failed: Failure | None,
) -> TurnCredit:
    return TurnCredit(
        episode_id=stored.episode.id,
        task_id=stored.episode.task_id,
        turn=stored.turn,
        critic=critic.name,
        advantage=advantage,
        tokens=tokens,
        failure=failed,
    )
