"""A guard in front of a collaborator: asks again when a reply gives code away."""

from collections.abc import Callable, Sequence

from sweetrl.dialogue import rules
from sweetrl.domains.registry import domain_of
from sweetrl.protocols import Collaborator
from sweetrl.seeds import derive_seed
from sweetrl.types import Message, Reply, Task

LeakTest = Callable[[Task, Sequence[Message], str], bool]
"""(task, history, reply) -> whether the reply carries code of the task's reference."""

REMINDER = "(Please answer in plain words, without any code.)"
REFUSAL = "I can describe what I need in words, but I won't write code."


class GuardedCollaborator:
    """Passes on the first reply of another collaborator that does not leak.

    It is asked again with a reminder after the agent's message, because at temperature 0 another seed alone
    changes nothing. When the last reply leaks too, the person refuses. That is no failure: failed dialogues
    are left out of the metrics, so an agent could escape its score by provoking leaks.
    """

    def __init__(self, inner: Collaborator, leaks: LeakTest, *, max_retries: int = 2) -> None:
        self._inner = inner
        self._leaks = leaks
        self._max_retries = max_retries
        self.leaks_stopped = 0
        """How many replies were held back."""
        self.refusals = 0
        """How often no reply was left to pass on."""

    @property
    def name(self) -> str:
        """The other collaborator's name with a mark: a guarded run is a different experiment."""
        return f"{self._inner.name}+guard"

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        """A reply without code of the reference."""
        for retry in range(self._max_retries + 1):
            asked = history if retry == 0 else _reminded(history)
            reply = await self._inner.reply(
                task, asked, seed=seed if retry == 0 else derive_seed(seed, retry)
            )
            # What is cut off cannot leak.
            if not self._leaks(task, history, rules.cut_reply(reply.text, domain_of(task))):
                return reply
            self.leaks_stopped += 1
        self.refusals += 1
        return Reply(REFUSAL, reply.screenshot)


def _reminded(history: Sequence[Message]) -> list[Message]:
    *before, last = history
    return [*before, Message(last.role, f"{last.text}\n\n{REMINDER}", last.images)]
