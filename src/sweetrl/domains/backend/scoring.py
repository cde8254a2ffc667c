"""Sandboxes for scoring backend answers and for checking backend tasks."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from sweetrl.domains.backend.defects import DefectFinder
from sweetrl.domains.backend.scorer import BackendScorer, Mode
from sweetrl.domains.scoring import Advance, Defect, concurrency
from sweetrl.sandbox import Isolation, Sandbox
from sweetrl.settings import ScorerSettings
from sweetrl.types import Task


class SandboxScoring:
    """The scorer for backend tasks, with the sandboxes that scoring and checking need."""

    def __init__(self, main: Sandbox, other: Sandbox, scorer: BackendScorer, workers: int) -> None:
        """`other` has another order of sets, to see whether results depend on it."""
        self._main = main
        self._other = other
        self._scorer = scorer
        self.workers = workers

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that affect verdicts."""
        return {"scorer": self._scorer.name, "limits": self._main.limits}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[BackendScorer]:
        """The scorer, which lives as long as its sandboxes."""
        yield self._scorer

    async def find_defects(self, tasks: Iterable[Task], advance: Advance) -> dict[str, list[Defect]]:
        """The defects of each task, in order."""
        finder = DefectFinder(self._scorer, self._main, self._other)
        threads = ThreadPoolExecutor(self.workers)
        loop, found = asyncio.get_running_loop(), {}
        try:
            running = {task.id: loop.run_in_executor(threads, finder.find, task) for task in tasks}
            for task_id, defects in running.items():
                found[task_id] = await defects
                advance(1)
        finally:
            threads.shutdown(cancel_futures=True)
        return found


@contextmanager
def open_sandboxes(settings: ScorerSettings, _screenshots: Path | None = None) -> Iterator[SandboxScoring]:
    """Sandboxes and scorer for as long as the block lasts."""
    workers = concurrency(settings)
    isolation = None if settings.isolation is None else Isolation(settings.isolation)
    main = Sandbox(workers=workers, isolation=isolation)
    other = Sandbox(workers=workers, isolation=isolation, hash_seed=1)
    scorer = BackendScorer(main, mode=Mode(settings.mode), workers=workers)
    try:
        yield SandboxScoring(main, other, scorer, workers)
    finally:
        # The processes first: the scorer's threads that wait for them then end at once.
        main.close()
        other.close()
        scorer.close()
