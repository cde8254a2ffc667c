"""What the commands that run untrusted code share: their options, and the sandboxes behind them."""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from sweetrl.domains.backend.defects import Defect
    from sweetrl.domains.backend.scorer import BackendScorer
    from sweetrl.sandbox import Sandbox
    from sweetrl.types import Task

WorkersOption = Annotated[
    int, typer.Option("--workers", min=0, help="Answers judged at a time; 0 for one per core.")
]
ModeOption = Annotated[
    Literal["module", "official"],
    typer.Option(
        "--mode", help="Run answers as modules, or as the paper's scorer does, with its word filters."
    ),
]
TurnCostOption = Annotated[
    float,
    typer.Option(
        "--turn-cost", min=0, max=1, help="Take so much off the reward for each turn before the answer."
    ),
]
IsolationOption = Annotated[
    Literal["landlock", "bubblewrap", "unsafe"] | None,
    typer.Option("--isolation", help="What keeps answers in; the best that this machine offers by default."),
]


class BackendSandboxes:
    """A scorer for backend tasks and what it takes to check them."""

    def __init__(self, main: "Sandbox", other: "Sandbox", scorer: "BackendScorer", workers: int) -> None:
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
    async def opened(self) -> "AsyncIterator[BackendScorer]":
        """The scorer, which lives as long as its sandboxes."""
        yield self.scorer

    def find_defects(
        self, tasks: "Iterable[Task]", advance: Callable[[int], None]
    ) -> "Iterator[tuple[str, list[Defect]]]":
        """The defects of each task, in order."""
        from sweetrl.domains.backend.defects import DefectFinder

        finder = DefectFinder(self.scorer, self.main, self.other)
        with ThreadPoolExecutor(self.workers) as threads:
            chosen = list(tasks)
            for task, defects in zip(chosen, threads.map(finder.find, chosen), strict=True):
                advance(1)
                yield task.id, defects


@contextmanager
def backend_sandboxes(workers: int, mode: str, isolation: str | None) -> Iterator[BackendSandboxes]:
    """Sandboxes and scorer for as long as the block lasts."""
    from sweetrl.domains.backend.scorer import BackendScorer, Mode
    from sweetrl.sandbox import Isolation, Sandbox

    workers = workers or len(os.sched_getaffinity(0))
    kind = None if isolation is None else Isolation(isolation)
    main = Sandbox(workers=workers, isolation=kind)
    other = Sandbox(workers=workers, isolation=kind, hash_seed=1)
    scorer = BackendScorer(main, mode=Mode(mode), workers=workers)
    try:
        yield BackendSandboxes(main, other, scorer, workers)
    finally:
        # The processes first: what waits for them in the scorer's threads then ends at once.
        main.close()
        other.close()
        scorer.close()
