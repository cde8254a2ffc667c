"""Usage of models: tokens, requests and money, for progress displays and budgets."""

from collections.abc import Sequence
from dataclasses import dataclass

from sweetrl.protocols import ChatModel
from sweetrl.types import Completion, Message, Sampling, Usage


@dataclass(frozen=True)
class Price:
    """The price of tokens, in any one currency per million."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, usage: Usage) -> float:
        """The cost of one request."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


FREE = Price()


SILENT_SECONDS = 4.0
"""Without a first reply for this long, a run says which endpoint it waits for."""


@dataclass
class Meter:
    """The usage so far in this process; several models may share one."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    requests: int = 0
    """Answered usably."""
    retries: int = 0
    """Asked again, because the endpoint failed or its answer was unusable."""
    asked: str = ""
    """The address of the last request, if models are behind endpoints."""
    trouble: str = ""
    """Why a request to an endpoint is being retried; empty once it answers."""

    @property
    def tokens(self) -> int:
        """Read and written together."""
        return self.prompt_tokens + self.completion_tokens

    def waits_for(self, seconds: float) -> str:
        """Which endpoint the run waits for and why, `seconds` after its start; empty if it waits for none."""
        if not self.trouble and self.asked and not self.requests and seconds >= SILENT_SECONDS:
            return f"no reply from {self.asked} yet"
        return self.trouble

    def add(self, usage: Usage, price: Price = FREE) -> None:
        """Count the tokens of one answer."""
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.cost += price.of(usage)


class MeteredModel:
    """A chat model that counts what it uses, for models that do not count themselves."""

    def __init__(self, model: ChatModel, meter: Meter, price: Price = FREE) -> None:
        self._model = model
        self.name = model.name
        self._meter = meter
        self._price = price

    async def complete(
        self, messages: Sequence[Message], *, n: int, sampling: Sampling, seed: int
    ) -> list[Completion]:
        """The completions of the wrapped model."""
        completions = await self._model.complete(messages, n=n, sampling=sampling, seed=seed)
        self._meter.requests += 1
        for completion in completions:
            self._meter.add(completion.usage, self._price)
        return completions

    async def close(self) -> None:
        """Close the model inside."""
        await self._model.close()
