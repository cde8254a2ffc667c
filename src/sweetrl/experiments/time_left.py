"""How long the stages of a plan still take.

Stages differ a thousandfold, so the time left is not told from their number: each has a weight, in seconds of an
ordinary laptop, and the stages that are done say how fast this machine is.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sweetrl.experiments.estimates import cost
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.schedule import Schedule
from sweetrl.settings import Recipe

START = 4.0
"""Seconds until Python and PyTorch are there."""
DRAWN, READ, TRAINED = 4e-4, 1.3e-4, 6e-5
"""Seconds for a token that the tiny model writes, reads or learns from."""
WATCHED = 20.0
"""Seconds of work after which this machine's own speed counts for more than an ordinary one."""


def weight(recipe: Recipe, stage: Stage) -> float:
    """About how many seconds a stage takes."""
    command, estimated = stage.arguments[0], cost(recipe, stage)
    tokens, turns = estimated.tokens or 0, (estimated.requests or 0) / 2
    if command == "train":
        return START + TRAINED * tokens
    if command == "rank":
        return START + READ * tokens
    if command == "candidates":
        return START + DRAWN * turns * recipe.candidates.n * recipe.estimate.output_tokens
    if command in ("rollout", "evaluate", "values"):
        return START + DRAWN * turns * recipe.estimate.output_tokens
    return START / 2


@dataclass
class Clock:
    """How much is done of all that there is to do, and how long the rest takes."""

    weights: Sequence[float]
    schedule: Schedule
    now: Callable[[], float] = time.monotonic
    _worked: float = 0.0
    """Weight that this run has done, and in how many seconds of its stages."""
    _seconds: float = 0.0
    _started: dict[int, float] = field(default_factory=dict)

    def start(self, number: int) -> None:
        """A stage starts."""
        self._started[number] = self.now()

    def finish(self, number: int) -> None:
        """A stage is done."""
        self._seconds += self.now() - self._started.pop(number)
        self._worked += self.weights[number]

    def share(self, parts: Mapping[int, float]) -> float:
        """The share of all work that is done, given the shares of the stages that run."""
        done = sum(self.weights[number] for number in self.schedule.done)
        return (done + self._weight(parts)) / sum(self.weights)

    def left(self, parts: Mapping[int, float]) -> float:
        """Seconds until all is done, at the speed so far and with as many stages at a time as there can be."""
        return self.schedule.length({number: self.left_of(number, parts) for number in self._undone()})

    def left_of(self, number: int, parts: Mapping[int, float]) -> float:
        """Seconds that one stage still takes."""
        return self._speed(parts) * self.weights[number] * (1 - parts.get(number, 0.0))

    def _undone(self) -> tuple[int, ...]:
        return (*self.schedule.running, *self.schedule.waiting)

    def _speed(self, parts: Mapping[int, float]) -> float:
        now = self.now()
        seconds = self._seconds + sum(now - started for started in self._started.values())
        # An ordinary speed counts as if it had been watched for a while: the first seconds say little.
        return (seconds + WATCHED) / (self._worked + self._weight(parts) + WATCHED)

    def _weight(self, parts: Mapping[int, float]) -> float:
        return sum(part * self.weights[number] for number, part in parts.items())
