"""The events that a runner reports; `sweetrl run` and `sweetrl quickstart` print them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sweetrl.experiments.pipeline import Stage


@dataclass(frozen=True)
class _OfStage:
    number: int
    """The place of the stage in the plan, from 0."""
    stage: Stage


@dataclass(frozen=True)
class StageSkipped(_OfStage):
    """The journal has the stage: it was done before."""


@dataclass(frozen=True)
class StageStarted(_OfStage):
    """The stage is about to start, after the servers that it needs."""


@dataclass(frozen=True)
class StageFinished(_OfStage):
    """The stage is done and in the journal."""

    seconds: float
    some_failed: bool = False
    """Some of its items failed, which is allowed in this run."""


@dataclass(frozen=True)
class StageFailed(_OfStage):
    """The stage ended otherwise. Nothing new starts; the stages beside it run to their end."""

    code: int
    """The exit code; that of a signal is negative."""
    beside: tuple[str, ...] = ()
    """Names of the stages that still run."""
    log: Path | None = None
    said: str = ""
    """The stage's log from this run."""


@dataclass(frozen=True)
class StageInterrupted(_OfStage):
    """The stage stopped because it was asked to; rerunning the same command resumes it."""


@dataclass(frozen=True)
class StagesProgressed:
    """How far the running stages are, several times a second."""

    shares: Mapping[int, float]
    """Progress from 0 to 1, by the number of the stage."""
    troubles: Mapping[int, str] = field(default_factory=dict)
    """What stages wait for, such as an endpoint that does not answer; only stages that wait are in it."""


@dataclass(frozen=True)
class ServerStarting:
    """A server that the next stage needs is started."""

    command: str


@dataclass(frozen=True)
class EndpointLimited:
    """The endpoint of an agent ignores or refuses something that it was asked for."""

    model: str
    what: str
    """Such as `seed`."""
    consequence: str


Event = (
    StageSkipped
    | StageStarted
    | StageFinished
    | StageFailed
    | StageInterrupted
    | StagesProgressed
    | ServerStarting
    | EndpointLimited
)
Listener = Callable[[Event], object]


def ignore(_: Event) -> None:
    """A listener that ignores all events."""
