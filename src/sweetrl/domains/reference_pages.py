"""Pictures of reference pages as files, for critics that see."""

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path

from sweetrl.browser.session import BrowserSession
from sweetrl.domains.registry import domain_of
from sweetrl.errors import DataError, PageError, RenderError
from sweetrl.records import write_atomically
from sweetrl.types import Task, digest


class References:
    """A folder of pictures, each made on first use and named by a hash of its page's source."""

    def __init__(self, folder: Path | None = None) -> None:
        """Without a `folder` pictures are kept until it is closed."""
        self._own = None if folder is not None else tempfile.TemporaryDirectory(prefix="sweetrl-")
        self._folder = folder or Path(self._own.name if self._own else "")
        self._session = BrowserSession()

    def path(self, task: Task) -> Path:
        """The place of the picture of a task's reference, once it is made."""
        return self._folder / f"{digest(_page(task))}.png"

    async def of(self, task: Task) -> Path:
        """The picture of a task's reference; `RenderError` if there can be none."""
        path = self.path(task)
        if not path.exists():
            try:
                shot = await self._session.renderer.render(_page(task))
            except PageError as error:
                raise RenderError(f"the reference of {task.id} cannot be shown: {error}") from error
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, shot.png)
        return path

    async def close(self) -> None:
        """End the browsers, and remove a temporary folder."""
        await self._session.close()
        if self._own is not None:
            self._own.cleanup()


async def make_references(tasks: Iterable[Task], folder: Path) -> References:
    """The folder with the pictures of all these tasks in it."""
    references = References(folder)
    try:
        await asyncio.gather(*map(references.of, tasks))
    finally:
        await references.close()
    return references


def _page(task: Task) -> str:
    domain = domain_of(task)
    if domain.pictures is None:
        raise DataError(f"task {task.id} is a {task.domain} task; a critic that sees needs pages to look at")
    return domain.pictures.page(domain.secret_of(task))
