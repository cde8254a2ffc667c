"""How long the stages of a plan still take.

Stages differ a thousandfold, so each has a weight, in seconds of an ordinary laptop. The speed of this machine is
estimated from measurements: of the stage itself as far as it is done, of other stages that do the same kind of work,
and of all others.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sweetrl.experiments.estimates import cost, dialogues_to_learn_from
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.schedule import Schedule
from sweetrl.settings import Recipe

START = 4.0
"""Seconds until Python and PyTorch are there."""
SAID, DRAWN, READ, TRAINED = 1.5e-4, 2.5e-4, 1.6e-5, 6e-5
"""Seconds for a token that the tiny model says in a dialogue, draws as a candidate, reads, or learns from."""
SCORED = 5e-3
"""Seconds for a dialogue that is scored."""
IMITATED = 0.2
"""Share of the dialogues that succeed: only those are imitated."""
WATCHED = 20.0
"""Seconds of work after which what was measured counts for more than what was expected."""
SEEN = 0.02
"""Share of a stage that must be done before its own pace says something."""


def weight(recipe: Recipe, stage: Stage) -> float:
    """About how many seconds a stage takes."""
    estimated = cost(recipe, stage)
    tokens, turns = estimated.tokens or 0, (estimated.requests or 0) / 2
    said = turns * recipe.estimate.output_tokens
    match stage.arguments[0]:
        case "train":
            return START + TRAINED * tokens * (IMITATED if stage.arguments[1] == "rft" else 1)
        case "rank":
            return START + READ * tokens
        case "candidates":
            return START + DRAWN * said * recipe.candidates.n
        case "evaluate":
            return START + SAID * said + SCORED * turns / recipe.estimate.turns
        case "rollout" | "values":
            return START + SAID * said
        case "score":
            return START / 2 + SCORED * (dialogues_to_learn_from(recipe) or 0)
    return START / 2


def kind_of(stage: Stage) -> str:
    """The kind of work of a stage: stages of one kind have about the same pace."""
    command = stage.arguments[0]
    return "talk" if command in ("rollout", "evaluate", "values", "candidates") else command


@dataclass
class Clock:
    """How much is done of all that there is to do, and how long the rest takes."""

    weights: Sequence[float]
    schedule: Schedule
    kinds: Sequence[str] = ()
    """The kind of work of each stage; without kinds, all have one pace."""
    now: Callable[[], float] = time.monotonic
    _finished: list[tuple[str, float, float]] = field(default_factory=list)
    """Kind, seconds and weight of what this run has done."""
    _started: dict[int, float] = field(default_factory=dict)

    def start(self, number: int) -> None:
        """A stage starts."""
        self._started[number] = self.now()

    def finish(self, number: int) -> None:
        """A stage is done."""
        seconds = self.now() - self._started.pop(number)
        self._finished.append((self._kind(number), seconds, self.weights[number]))

    def share(self, parts: Mapping[int, float]) -> float:
        """The share of all work that is done, given the shares of the stages that run."""
        done = sum(self.weights[number] for number in self.schedule.done)
        return (done + sum(part * self.weights[number] for number, part in parts.items())) / sum(self.weights)

    def left(self, parts: Mapping[int, float]) -> float:
        """Seconds until all is done, at the pace so far and with as many stages at a time as there can be."""
        return self.schedule.length({number: self.left_of(number, parts) for number in self._undone()})

    def left_of(self, number: int, parts: Mapping[int, float]) -> float:
        """Seconds that one stage still takes."""
        return self._pace(number, parts) * self.weights[number] * (1 - parts.get(number, 0.0))

    def _undone(self) -> tuple[int, ...]:
        return (*self.schedule.running, *self.schedule.waiting)

    def _kind(self, number: int) -> str:
        return self.kinds[number] if self.kinds else ""

    def _pace(self, number: int, parts: Mapping[int, float]) -> float:
        """Seconds of this machine for one of an ordinary one: by the stage itself, its kind, and all stages."""
        measured = [*self._finished, *self._running(parts)]
        pace = _blended(1.0, [each[1:] for each in measured])
        pace = _blended(pace, [each[1:] for each in measured if each[0] == self._kind(number)])
        own = dict(zip(self._paced(parts), self._running(parts), strict=True))
        return _blended(pace, [own[number][1:]] if number in own else [])

    def _paced(self, parts: Mapping[int, float]) -> list[int]:
        """The running stages that are far enough to have a pace; a stage that still starts has none."""
        return [number for number in self._started if parts.get(number, 0.0) >= SEEN]

    def _running(self, parts: Mapping[int, float]) -> Iterator[tuple[str, float, float]]:
        """Kind, seconds and weight of what the running stages have done since they were up."""
        for number in self._paced(parts):
            start = min(START, self.weights[number] / 2)
            seconds = max(self.now() - self._started[number] - start, 0.0)
            yield self._kind(number), seconds, parts[number] * (self.weights[number] - start)


def _blended(expected: float, measured: Sequence[tuple[float, ...]]) -> float:
    """A pace of which `measured` has seconds and weights; what is expected counts as if it had been watched a while."""
    seconds, weights = (sum(each[place] for each in measured) for place in (0, 1))
    return (seconds + WATCHED * expected) / (weights + WATCHED)
