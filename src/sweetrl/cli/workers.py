"""What the commands that run untrusted code share: sandboxes, and a scorer that uses them."""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sweetrl.sandbox import Isolation, Sandbox
from sweetrl.scoring.backend import BackendScorer, Mode
from sweetrl.scoring.defects import Defect, DefectFinder
from sweetrl.settings import SandboxSettings
from sweetrl.types import Task


class BackendSandboxes:
    """A scorer for backend tasks and what it takes to check them."""

    def __init__(self, main: Sandbox, other: Sandbox, scorer: BackendScorer, workers: int) -> None:
        self.main = main
        self.other = other
        """With another order of sets, to see whether results depend on it."""
        self.scorer = scorer
        self.workers = workers

    @property
    def settings(self) -> dict[str, Any]:
        """What shapes a verdict."""
        return {"scorer": self.scorer.name, "limits": self.main.limits}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[BackendScorer]:
        """The scorer, which lives as long as its sandboxes."""
        yield self.scorer

    def find_defects(
        self, tasks: Iterable[Task], advance: Callable[[int], None]
    ) -> Iterator[tuple[str, list[Defect]]]:
        """The defects of each task, in order."""
        finder = DefectFinder(self.scorer, self.main, self.other)
        with ThreadPoolExecutor(self.workers) as threads:
            chosen = list(tasks)
            for task, defects in zip(chosen, threads.map(finder.find, chosen), strict=True):
                advance(1)
                yield task.id, defects


@contextmanager
def backend_sandboxes(settings: SandboxSettings) -> Iterator[BackendSandboxes]:
    """Sandboxes and scorer for as long as the block lasts."""
    workers = settings.workers or len(os.sched_getaffinity(0))
    kind = None if settings.isolation is None else Isolation(settings.isolation)
    main = Sandbox(workers=workers, isolation=kind)
    other = Sandbox(workers=workers, isolation=kind, hash_seed=1)
    scorer = BackendScorer(main, mode=Mode(settings.mode), workers=workers)
    try:
        yield BackendSandboxes(main, other, scorer, workers)
    finally:
        # The processes first: what waits for them in the scorer's threads then ends at once.
        main.close()
        other.close()
        scorer.close()
