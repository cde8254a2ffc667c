"""Agents: the side that works on the request without knowing the reference."""

from collections.abc import Callable, Sequence

from sweetrl.errors import StageError
from sweetrl.prompts import TURN_LIMIT, Prompt, agent_instructions
from sweetrl.protocols import ChatModel
from sweetrl.seeds import derive_seed
from sweetrl.types import Completion, Message, Role, Sampling, Unfinished


class ModelAgent:
    """An agent played by a chat model: a system prompt, then the dialogue as a chat."""

    def __init__(
        self,
        model: ChatModel,
        prompt: Prompt,
        sampling: Sampling | None = None,
        *,
        turn_limit: int = TURN_LIMIT,
    ) -> None:
        """Without `sampling`, the paper's: temperature 1 and at most 1024 new tokens."""
        self._model = model
        self.name = model.name
        self._system = Message(Role.SYSTEM, agent_instructions(prompt, turn_limit=turn_limit))
        self._sampling = sampling or Sampling()

    def prompt(self, history: Sequence[Message]) -> list[Message]:
        """Exactly what the model is given: the same for dialogues, candidates and training."""
        return [self._system, *history]

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """`n` raw outputs for the next turn."""
        completions = await self._model.complete(
            self.prompt(history), n=n, sampling=self._sampling, seed=seed
        )
        return [_output(completion) for completion in completions]


def _output(completion: Completion) -> str:
    return Unfinished(completion.text) if completion.finish == "length" else completion.text


Script = Callable[[Sequence[Message], int], str]
"""(history, seed) -> what the agent puts out."""


class ScriptedAgent:
    """An agent with fixed lines, one for each turn, or with a function that makes them up."""

    def __init__(self, script: Sequence[str] | Script, *, name: str = "scripted") -> None:
        self._script = script
        self.name = name

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """The line for this turn, `n` times; a function is called with `n` different seeds."""
        if callable(self._script):
            return [self._script(history, derive_seed(seed, sample)) for sample in range(n)]
        turn = sum(message.role is Role.ASSISTANT for message in history)
        if turn >= len(self._script):
            raise StageError(f"the script has {len(self._script)} lines, turn {turn + 1} needs one more")
        return [self._script[turn]] * n
