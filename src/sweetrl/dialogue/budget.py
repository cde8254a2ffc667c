"""Budgets: what a run has spent, and whether it may spend more."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sweetrl.protocols import ChatModel
from sweetrl.types import Completion, Message, Sampling, Usage


@dataclass(frozen=True)
class Price:
    """What tokens cost, in any one currency per million."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, usage: Usage) -> float:
        """The cost of one request."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


FREE = Price()


@dataclass
class Meter:
    """Tokens and money spent so far in this process."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        """Read and written together."""
        return self.prompt_tokens + self.completion_tokens

    def add(self, usage: Usage, price: Price) -> None:
        """Count one request."""
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.cost += price.of(usage)


class MeteredModel:
    """A chat model that counts what it uses."""

    def __init__(self, model: ChatModel, meter: Meter, price: Price = FREE) -> None:
        self._model = model
        self._meter = meter
        self._price = price

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self._model.name

    async def complete(
        self, messages: Sequence[Message], *, n: int, sampling: Sampling, seed: int
    ) -> list[Completion]:
        """What the model inside completes."""
        completions = await self._model.complete(messages, n=n, sampling=sampling, seed=seed)
        for completion in completions:
            self._meter.add(completion.usage, self._price)
        return completions

    async def close(self) -> None:
        """Close the model inside."""
        await self._model.close()


class Budget:
    """Limits on what one run may spend; the clock runs from the moment it is made."""

    def __init__(
        self,
        meter: Meter,
        *,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        time_limit: float | None = None,
    ) -> None:
        """`time_limit` is in seconds; a limit of None is none."""
        self._meter = meter
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._deadline = None if time_limit is None else time.monotonic() + time_limit

    def exhausted(self) -> str | None:
        """Which limit has been reached, in words; None while there is some left."""
        if self._max_tokens is not None and self._meter.tokens >= self._max_tokens:
            return f"the budget of {self._max_tokens} tokens is spent"
        if self._max_cost is not None and self._meter.cost >= self._max_cost:
            return f"the budget of {self._max_cost:g} is spent"
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return "the time limit is reached"
        return None

    def seconds_left(self) -> float | None:
        """Until the time limit; None where there is none."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def affords_another(self, *, running: int, finished: int) -> bool:
        """Whether one more dialogue is likely to fit, if those that are running are to finish too.

        Running ones are taken to be half done. The estimate errs both ways, so `exhausted` stays the limit.
        """
        done = finished + running / 2
        needed = 0.0 if done == 0 else (running / 2 + 1) / done
        return all(spent * (1 + needed) <= limit for spent, limit in self._limits())

    def _limits(self) -> list[tuple[float, float]]:
        pairs = [(self._meter.tokens, self._max_tokens), (self._meter.cost, self._max_cost)]
        return [(spent, limit) for spent, limit in pairs if limit is not None]
