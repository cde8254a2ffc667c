"""`ReplyGame`: a person plays the collaborator. The agent speaks when it is its turn; the person replies."""

from collections.abc import Sequence
from typing import Any

from sweetrl.dialogue.blame import sample_or_blame
from sweetrl.dialogue.game import HUMAN, Debrief, Played
from sweetrl.errors import UsageError, WordsError
from sweetrl.outputs import spoken
from sweetrl.protocols import Agent
from sweetrl.types import Message, Reply, Task, Turn, Verdict


class _NoReplyYetError(UsageError):
    """The person has not replied yet. Not a failure of the dialogue, which can be continued."""


class _Person:
    """A collaborator whose next reply is put into its hands."""

    name = HUMAN

    def __init__(self) -> None:
        self.text: str | None = None

    async def reply(self, _task: Task, _history: Sequence[Message], *, seed: int) -> Reply:  # noqa: ARG002
        if self.text is None:
            raise _NoReplyYetError("write a reply first")
        return Reply(self.text)


class ReplyGame(Played):
    """One dialogue with a person as the collaborator; used like `Game`."""

    def __init__(self, task: Task, agent: Agent, *, output: str | None = None, **about: Any) -> None:
        """`output`: what the agent has said that waits for a reply. `about`: what `Played` takes."""
        self.output = output
        self._agent = agent
        self._person = _Person()
        super().__init__(task, self._person, agent.name, **about)

    @property
    def awaiting(self) -> Turn | None:
        """What the agent said that has no reply yet."""
        return None if self.output is None or self.is_over else Turn(self.output, spoken(self.output))

    async def listen(self) -> None:
        """Let the agent speak, if it is its turn; a `StageError` is the agent's, and it can be asked again."""
        history, seed = self._dialogue.history, self._dialogue.seed_of("agent")
        try:
            if self.output is None:
                [self.output] = await sample_or_blame(self._agent, history, n=1, seed=seed)
            await self._dialogue.say(self.output)
        except WordsError as error:
            self._dialogue.break_off(error)
        except _NoReplyYetError:
            return

    async def say(self, text: str, *, answer: bool = False) -> None:  # noqa: ARG002  only agents answer
        """Reply to the agent. What it says to that, `listen` finds out."""
        if self.output is None:
            raise UsageError("the agent has not spoken yet; reload the page")
        self._person.text = text
        try:
            await self._dialogue.say(self.output)
        finally:
            self._person.text = None
        self.output = None

    def debrief(self, verdict: Verdict | None) -> Debrief:
        """How it ended. The person knew the secret all along."""
        return Debrief(self.episode, verdict, self.parts, (), None)
