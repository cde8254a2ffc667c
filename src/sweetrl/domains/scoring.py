"""What it takes to score the answers of one domain and to find its defective tasks."""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from sweetrl.errors import SweetError, UsageError, broke_down, one_line
from sweetrl.protocols import Scorer
from sweetrl.settings import ScorerSettings
from sweetrl.types import Episode, Task, Verdict


class Defect(Struct, frozen=True):
    """One thing that is wrong with a task."""

    task_id: str
    reason: str
    """A word for it, the same for all tasks with this defect."""
    test: str
    """Name of the first test concerned; empty if it is about all of them."""
    detail: str


Advance = Callable[[int], None]
"""Told how many more tasks are done."""


class ScoringBackend(Protocol):
    """The resources of a domain's scorer: sandboxes, browsers, files."""

    @property
    def workers(self) -> int:
        """How many answers it scores at a time."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that affect verdicts, for the run card."""
        ...

    def opened(self) -> AbstractAsyncContextManager[Scorer]:
        """The scorer, for as long as the block lasts."""
        ...

    async def find_defects(self, tasks: Iterable[Task], advance: Advance) -> dict[str, list[Defect]]:
        """The defects of each task by its id, in order."""
        ...


OpenScoring = Callable[[ScorerSettings, Path | None], AbstractContextManager[ScoringBackend]]
"""Also takes the folder for pictures of compared pages, if they are to be kept."""


def concurrency(settings: ScorerSettings) -> int:
    """How many answers are scored at a time: the requested number, or one per core."""
    return settings.workers or len(os.sched_getaffinity(0))


class PlainScoring:
    """The backend of a scorer that needs no resources, on tasks without a check for defects."""

    def __init__(self, scorer: Scorer, workers: int) -> None:
        self._scorer = scorer
        self.workers = workers

    @property
    def settings(self) -> dict[str, Any]:
        """The scorer's name."""
        return {"scorer": self._scorer.name}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Scorer]:
        """The scorer, whose verdicts are checked."""
        yield _Checked(self._scorer)

    async def find_defects(self, tasks: Iterable[Task], advance: Advance) -> dict[str, list[Defect]]:
        """No defect is known of any task."""
        found: dict[str, list[Defect]] = {task.id: [] for task in tasks}
        advance(len(found))
        return found


class _Checked:
    """A scorer that may be anybody's: what no verdict can be is refused before it is written."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self.name = scorer.name

    async def score(self, task: Task, episode: Episode) -> Verdict:
        """The verdict; `UsageError` if it is none."""
        if not self.name.startswith(f"{task.domain}-"):
            better = f"{task.domain}-{self.name.partition('/')[0]}/1"
            raise UsageError(
                f"the scorer {self.name!r} of {task.domain} tasks needs a name such as {better!r}"
            )
        try:
            verdict = await self._scorer.score(task, episode)
        except SweetError:
            raise
        except Exception as error:
            raise broke_down(f"the scorer {self.name}, on the dialogue {episode.id},", error) from error
        try:
            msgspec.convert(msgspec.to_builtins(verdict), Verdict)
        except (TypeError, msgspec.ValidationError) as error:
            raise UsageError(
                f"the scorer {self.name} returned what is no verdict: {one_line(error)}; fix the scorer"
            ) from error
        if verdict.reward is None and verdict.failure is None:
            raise UsageError(f"the scorer {self.name} gave neither a reward nor a failure; fix the scorer")
        return verdict


def plain_scoring(make: Callable[[ScorerSettings], Scorer]) -> OpenScoring:
    """`Domain.scoring` for a scorer that is made from the settings; it is closed in the end if it can be."""

    @contextmanager
    def opened(settings: ScorerSettings, _screenshots: Path | None) -> Iterator[ScoringBackend]:
        scorer = make(settings)
        try:
            yield PlainScoring(scorer, concurrency(settings))
        finally:
            close = getattr(scorer, "close", None)
            if close is not None:
                close()

    return opened
