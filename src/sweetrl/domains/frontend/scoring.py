"""Browsers for scoring pages and for checking frontend tasks."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from sweetrl.browser.session import BrowserSession
from sweetrl.domains.frontend.defects import find_page_defects
from sweetrl.domains.frontend.layout import LayoutSimilarity
from sweetrl.domains.frontend.scorer import FrontendScorer
from sweetrl.domains.frontend.similarity import Similarity
from sweetrl.domains.scoring import Advance, Defect, concurrency
from sweetrl.errors import UsageError
from sweetrl.settings import ScorerSettings
from sweetrl.types import Task

_CHECKED_AT_A_TIME = 64


class PageScoring:
    """The browsers and measures that score and check frontend tasks."""

    def __init__(self, settings: ScorerSettings, screenshots: Path | None = None) -> None:
        self._folder = screenshots
        self._measure = open_similarity(settings.similarity)
        self.workers = concurrency(settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that affect verdicts."""
        return {"scorer": f"frontend-{self._measure.name}"}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[FrontendScorer]:
        """The scorer, for as long as the block lasts."""
        session = BrowserSession(self._folder, workers=self.workers)
        keep = None if self._folder is None else session.keep
        try:
            yield FrontendScorer(session.renderer, session.pool, self._measure, keep=keep)
        finally:
            await session.close()
            await self._measure.close()

    async def find_defects(self, tasks: Iterable[Task], advance: Advance) -> dict[str, list[Defect]]:
        """The defects of each task, in order."""
        session, chosen = BrowserSession(workers=self.workers), list(tasks)
        found: dict[str, list[Defect]] = {}

        async def check(task: Task) -> list[Defect]:
            defects = await find_page_defects(task, session.pool)
            advance(1)
            return defects

        try:
            for start in range(0, len(chosen), _CHECKED_AT_A_TIME):
                some = chosen[start : start + _CHECKED_AT_A_TIME]
                defects = await asyncio.gather(*map(check, some))
                found.update(zip((task.id for task in some), defects, strict=True))
        finally:
            await session.close()
        return found


def open_pages(settings: ScorerSettings, screenshots: Path | None) -> nullcontext[PageScoring]:
    """Page scoring as a block; the browsers are started and ended by `opened` and `find_defects`."""
    return nullcontext(PageScoring(settings, screenshots))


def open_similarity(name: str) -> Similarity:
    """The similarity of a name: `layout`, `clip:PATH_OR_ID`."""
    kind, _, model = name.partition(":")
    if kind == "clip" and model:
        from sweetrl.domains.frontend.clip import ClipSimilarity

        return ClipSimilarity.load(model)
    if name == "layout":
        return LayoutSimilarity()
    raise UsageError(f"no similarity is called {name!r}; there are layout and clip:PATH_OR_ID")
