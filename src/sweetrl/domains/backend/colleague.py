"""The scripted side of `mini-backend`: a colleague who answers, and two programmers to measure others by."""

import random
from collections.abc import Iterable, Sequence

from sweetrl.domains.backend import mini_backend
from sweetrl.errors import CollaboratorError, StageError, UsageError
from sweetrl.outputs import ANSWER_MARKER
from sweetrl.prompts import TURN_LIMIT
from sweetrl.seeds import derive_seed
from sweetrl.types import Message, Reply, Role, Task


class ScriptedColleague:
    """A collaborator that tells the truth about the reference, in varying words, and answers only what is asked."""

    name = "colleague"

    def check(self, tasks: Iterable[Task]) -> None:
        """Refuse tasks whose reference it cannot read: `UsageError`."""
        for task in tasks:
            try:
                mini_backend.hidden_facts(task)
            except UsageError as error:
                raise UsageError(
                    f"the colleague knows {mini_backend.NAME} tasks only, and {task.id} is none; "
                    "give a model as collaborator, for example openai:MODEL@URL or hf:PATH_OR_ID"
                ) from error

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        """The reference's answer to the question, or that the reference does not settle it."""
        try:
            return Reply(mini_backend.reply_to(task, history[-1].text, seed))
        except UsageError as error:
            raise CollaboratorError(f"the colleague knows {mini_backend.NAME} tasks only: {error}") from error


def open_colleague(_: object) -> ScriptedColleague:
    """The colleague, who needs no browsers."""
    return ScriptedColleague()


class OracleProgrammer:
    """Knows which facts matter, asks for each once, and writes the function: what can be reached."""

    name = "mini-oracle"

    def __init__(self, tasks: Iterable[Task], _turn_limit: int = TURN_LIMIT) -> None:
        """The tasks it will work on. It looks up what to ask, and nothing else."""
        self._facts = {task.request: sorted(mini_backend.hidden_facts(task)) for task in tasks}

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """The next question, or the answer."""
        request = history[0].text
        if request not in self._facts:
            raise StageError("the oracle was not told of this task")
        turn = sum(message.role is Role.ASSISTANT for message in history)
        facts = self._facts[request]
        if turn < len(facts):
            return [mini_backend.question_about(facts[turn], seed)] * n
        return [f"{ANSWER_MARKER}\n{mini_backend.written_from(history)}"] * n


class RandomProgrammer:
    """Asks about one thing after the other at random and answers at the turn limit: what chance reaches."""

    name = "mini-random"

    def __init__(self, _tasks: Iterable[Task], turn_limit: int) -> None:
        self._turn_limit = turn_limit

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """A question that was not asked before; at last the answer."""
        turn = sum(message.role is Role.ASSISTANT for message in history)
        if turn >= self._turn_limit - 1:
            return [f"{ANSWER_MARKER}\n{mini_backend.written_from(history)}"] * n
        drawn = (random.Random(derive_seed(seed, sample)) for sample in range(n))  # noqa: S311  not a secret
        return [mini_backend.random_question(rng, history) for rng in drawn]
