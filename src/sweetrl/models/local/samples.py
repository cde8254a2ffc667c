"""Requests to a local model, and the replies it is drawing."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Literal

import numpy as np

from sweetrl.seeds import derive_seed
from sweetrl.types import Completion, Sampling


class Request:
    """Some samples wanted of the reply to one prompt."""

    def __init__(self, prompt: list[int], *, n: int, sampling: Sampling, seed: int) -> None:
        self.prompt = prompt
        self.sampling = sampling
        self.seed = seed
        self.hear: Callable[[str], None] | None = None
        """Called with the text of the first sample as it grows, in the thread that draws it."""
        self.future: Future[list[Completion]] = Future()
        self.samples = [Sample(self, index, seed) for index in range(n)]
        self.waiting = deque(self.samples)
        """Samples that have not begun."""

    @property
    def over(self) -> bool:
        """Whether it was answered, has failed or was cancelled."""
        return self.future.done()

    def answer(self, completions: list[Completion]) -> None:
        """Hand over the samples, unless the caller is gone."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(completions)

    def fail(self, error: Exception) -> None:
        """Hand over an error, unless the caller is gone or was answered."""
        if not self.over and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class Sample:
    """One reply, token by token."""

    def __init__(self, request: Request, index: int, seed: int) -> None:
        self.request = request
        self.index = index
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.finish: Literal["stop", "length"] | None = None
        # A generator of its own: what it draws depends neither on the batch nor on the number of samples.
        self._random = np.random.default_rng(derive_seed(seed, index))

    def uniform(self) -> float:
        """The next random number in [0, 1)."""
        return float(self._random.random())
