"""Agents: whoever works on the request without knowing the reference."""

from collections.abc import Sequence

from sweetrl.prompts import Prompt
from sweetrl.protocols import ChatModel
from sweetrl.types import Message, Role, Sampling


class ModelAgent:
    """An agent played by a chat model: a system prompt, then the dialogue as a chat."""

    def __init__(self, model: ChatModel, prompt: Prompt, sampling: Sampling | None = None) -> None:
        """Without `sampling`, the paper's: temperature 1 and at most 1024 new tokens."""
        prompt.check(offered=())
        self._model = model
        self._system = Message(Role.SYSTEM, prompt.render())
        self._sampling = sampling or Sampling()

    @property
    def name(self) -> str:
        """The model's specification."""
        return self._model.name

    def prompt(self, history: Sequence[Message]) -> list[Message]:
        """Exactly what the model is given: the same for dialogues, candidates and training."""
        return [self._system, *history]

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """`n` raw outputs for the next turn."""
        completions = await self._model.complete(
            self.prompt(history), n=n, sampling=self._sampling, seed=seed
        )
        return [completion.text for completion in completions]
