"""What a runner reports while it works: `sweetrl run` and `sweetrl quickstart` print it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sweetrl.experiments.pipeline import Stage


@dataclass(frozen=True)
class StageSkipped:
    """The journal has the stage: it was done before."""

    number: int
    stage: Stage


@dataclass(frozen=True)
class StageStarted:
    """The stage is about to start, after the servers that it needs."""

    number: int
    stage: Stage


@dataclass(frozen=True)
class StageFinished:
    """The stage is done and in the journal."""

    number: int
    stage: Stage
    seconds: float
    some_failed: bool = False
    """Some of its items failed, which is allowed in this run."""


@dataclass(frozen=True)
class StageFailed:
    """The stage ended otherwise. Nothing new starts; the stages beside it run to their end."""

    number: int
    stage: Stage
    code: int
    """The exit code; that of a signal is negative."""
    beside: tuple[str, ...] = ()
    """Names of the stages that still run."""
    log: Path | None = None
    said: str = ""
    """What the stage wrote to its log in this run."""


@dataclass(frozen=True)
class StageInterrupted:
    """The stage stopped because it was asked to; rerunning the same command resumes it."""

    number: int
    stage: Stage


@dataclass(frozen=True)
class StagesProgressed:
    """How far the running stages are, several times a second."""

    shares: Mapping[int, float]
    """By the number of the stage, from 0 to 1."""


@dataclass(frozen=True)
class ServerStarting:
    """A server that the next stage needs is started."""

    command: str


Event = (
    StageSkipped
    | StageStarted
    | StageFinished
    | StageFailed
    | StageInterrupted
    | StagesProgressed
    | ServerStarting
)
Listener = Callable[[Event], object]


def ignore(_: Event) -> None:
    """The listener of a run that nobody watches."""
