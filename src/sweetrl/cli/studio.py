"""What it takes to score frontend answers: browsers and a measure of similarity."""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweetrl import interrupts
from sweetrl.errors import UsageError

if TYPE_CHECKING:
    from sweetrl.browser.session import BrowserSession
    from sweetrl.protocols import Scorer
    from sweetrl.scoring.defects import Defect
    from sweetrl.scoring.similarity import Similarity
    from sweetrl.types import Task


class FrontendBench:
    """What it takes to score frontend tasks and to check them."""

    def __init__(self, similarity: str, workers: int, folder: Path | None = None) -> None:
        """`folder`: where the pictures that were compared are kept, if anywhere."""
        self._folder = folder
        self._measure = open_similarity(similarity)
        self.workers = workers or len(os.sched_getaffinity(0))

    @property
    def settings(self) -> dict[str, Any]:
        """What shapes a verdict."""
        return {"scorer": f"frontend-{self._measure.name}"}

    @asynccontextmanager
    async def opened(self) -> "AsyncIterator[Scorer]":
        """The scorer, for as long as the block lasts."""
        from sweetrl.browser.session import BrowserSession
        from sweetrl.scoring.frontend import FrontendScorer

        studio = BrowserSession(self._folder, workers=self.workers)
        keep = None if self._folder is None else studio.keep
        try:
            yield FrontendScorer(studio.renderer, studio.pool, self._measure, keep=keep)
        finally:
            await studio.close()
            await self._measure.close()

    def find_defects(
        self, tasks: "Iterable[Task]", advance: Callable[[int], None]
    ) -> "Iterator[tuple[str, list[Defect]]]":
        """The defects of each task, in order."""
        from sweetrl.browser.session import BrowserSession

        return iter(interrupts.run(_all_defects, list(tasks), BrowserSession(workers=self.workers), advance))


async def _all_defects(
    tasks: "list[Task]", studio: "BrowserSession", advance: Callable[[int], None]
) -> "list[tuple[str, list[Defect]]]":
    found = []
    try:
        for start in range(0, len(tasks), 64):
            found += await _defects(tasks[start : start + 64], studio, advance)
    finally:
        await studio.close()
    return found


async def _defects(
    tasks: "list[Task]", studio: "BrowserSession", advance: Callable[[int], None]
) -> "list[tuple[str, list[Defect]]]":
    import asyncio

    from sweetrl.scoring.page_defects import find_page_defects

    async def check(task: "Task") -> "tuple[str, list[Defect]]":
        found = await find_page_defects(task, studio.pool)
        advance(1)
        return task.id, found

    return list(await asyncio.gather(*map(check, tasks)))


def open_similarity(name: str) -> "Similarity":
    """The similarity of a name: `layout`, `clip:PATH_OR_ID`."""
    from sweetrl.scoring.layout import LayoutSimilarity

    kind, _, model = name.partition(":")
    if kind == "clip" and model:
        from sweetrl.scoring.clip import ClipSimilarity

        return ClipSimilarity.load(model)
    if name == "layout":
        return LayoutSimilarity()
    raise UsageError(f"no similarity is called {name!r}; there are layout and clip:PATH_OR_ID")
