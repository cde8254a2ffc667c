"""Browsers for a whole run: started when first needed, shared by all who look at pages."""

import os
from pathlib import Path

from sweetrl.browser.memory import RememberingRenderer
from sweetrl.browser.pool import BrowserPool
from sweetrl.records import write_atomically
from sweetrl.types import picture_digest


class BrowserSession:
    """The browsers of one event loop, and the folder for what they photograph."""

    def __init__(self, folder: Path | None = None, *, workers: int = 0, pictures: bool = True) -> None:
        """`folder`: where pictures are kept, if anywhere; `pictures`: whether models are shown those or sources."""
        self.pictures = pictures
        self._folder = folder
        self._workers = workers or len(os.sched_getaffinity(0))
        self._pool: BrowserPool | None = None
        self._remembering: RememberingRenderer | None = None

    @property
    def pool(self) -> BrowserPool:
        """For pages that come once."""
        if self._pool is None:
            self._pool = BrowserPool(workers=self._workers)
        return self._pool

    @property
    def renderer(self) -> RememberingRenderer:
        """For pages that come again."""
        if self._remembering is None:
            self._remembering = RememberingRenderer(self.pool)
        return self._remembering

    def keep(self, png: bytes) -> str:
        """Store a picture under its content hash, which is returned."""
        name = picture_digest(png)
        if self._folder is not None:
            path = self._folder / f"{name}.png"
            if not path.exists():
                self._folder.mkdir(parents=True, exist_ok=True)
                write_atomically(path, png)
        return name

    async def close(self) -> None:
        """End the browsers, if any were started."""
        if self._pool is not None:
            await self._pool.close()
