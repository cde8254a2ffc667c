"""`BrowserPool`: pages that nobody trusts to pictures, several at a time."""

import asyncio
import contextlib
import os
import signal
import tempfile
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sweetrl.browser.assets import WebAssets
from sweetrl.browser.chromium import find_browser, launch, write_font_configuration
from sweetrl.browser.play import PlayStyles
from sweetrl.browser.tab import Limits, Tab, open_tab
from sweetrl.errors import MissingExtra, PageError, RenderError
from sweetrl.types import Shot

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

# A healthy browser shows this in some 50 ms.
_PROBE_PAGE = "<!doctype html><title>probe</title><p style='height:100px;background:green'>healthy</p>"
_PAGES_PER_TAB = 250


class _Process:
    """A running browser and its tab."""

    def __init__(self, browser: "Browser", pid: int, styles: PlayStyles, tab: Tab) -> None:
        self.browser = browser
        self.pid = pid
        self.styles = styles
        self.tab = tab

    async def kill(self) -> None:
        """At once, whatever it is busy with: there is nothing in it to save."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        await self.browser.close()


class _Worker:
    """Shows one page at a time; its process is started when first needed."""

    def __init__(self) -> None:
        self.process: _Process | None = None


class BrowserPool:
    """A `Renderer` on headless Chromium. Use it as an asynchronous context manager, in one event loop."""

    def __init__(
        self,
        *,
        workers: int = 1,
        executable: str | Path | None = None,
        assets: WebAssets | None = None,
        limits: Limits | None = None,
    ) -> None:
        """`workers` is how many browsers run side by side: about one per core."""
        self.limits = limits or Limits()
        self._executable = find_browser(executable)
        self._assets = assets or WebAssets()
        self._folder = tempfile.TemporaryDirectory(prefix="sweetrl-browser-")
        self._fonts = write_font_configuration(Path(self._folder.name), self._assets.fonts)
        self._workers = [_Worker() for _ in range(workers)]
        self._free: asyncio.LifoQueue[_Worker] = asyncio.LifoQueue()
        for worker in reversed(self._workers):
            self._free.put_nowait(worker)
        self._starting = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._closed = False

    async def render(self, html: str) -> Shot:
        """See `Renderer`. `RenderError` if the browser, as opposed to the page, fails."""
        if (
            len(html) > self.limits.html_bytes
            or len(html.encode("utf-8", "replace")) > self.limits.html_bytes
        ):
            raise PageError(f"the page is larger than {self.limits.html_bytes} bytes")
        worker = await self._free.get()
        try:
            return await self._attempts(worker, html)
        except PageError:
            raise
        except BaseException:
            # Also when cancelled: the tab is in an unknown state.
            await _end(worker)
            raise
        finally:
            self._free.put_nowait(worker)

    async def close(self) -> None:
        """End all browsers, those that are busy included; safe to call twice."""
        self._closed = True
        for worker in self._workers:
            await _end(worker)
        if self._playwright is not None:
            await self._playwright.stop()
            self._playwright = None
        self._folder.cleanup()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _attempts(self, worker: _Worker, html: str) -> Shot:
        """A page that fails in a browser that shows other pages is tried once more, in a new one."""
        from playwright.async_api import Error

        for _ in range(2):
            process = await self._ready(worker)
            try:
                return await asyncio.wait_for(process.tab.shoot(html), self.limits.seconds)
            except (TimeoutError, Error) as error:
                await _end(worker)
                reason = (
                    "is not ready in time" if isinstance(error, TimeoutError) else "takes the browser down"
                )
                if self._closed:
                    raise RenderError("the browsers were closed while a page was shown") from error
        await self._insist_on_health(worker)
        raise PageError(f"the page {reason} ({self.limits.seconds:g} s)")

    async def _insist_on_health(self, worker: _Worker) -> None:
        """Blame a page only if the machine is not so busy that any page would have failed."""
        from playwright.async_api import Error

        process = await self._ready(worker)
        try:
            await asyncio.wait_for(process.tab.shoot(_PROBE_PAGE), self.limits.seconds / 4)
        except (TimeoutError, Error) as error:
            raise RenderError("the browser fails on plain pages too: is the machine overloaded?") from error

    async def _ready(self, worker: _Worker) -> _Process:
        process = worker.process
        if process is not None and not process.browser.is_connected():
            await _end(worker)
            process = None
        if process is None:
            process = worker.process = await self._start()
        elif process.tab.pages_shown >= _PAGES_PER_TAB:
            # Renderers grow with the number of documents that they have shown.
            await process.tab.close()
            process.tab = await open_tab(process.browser, self._assets, process.styles, self.limits)
        return process

    async def _start(self) -> _Process:
        from playwright.async_api import Error

        browser = await launch(await self._driver(), self._executable, self._fonts)
        try:
            session = await browser.new_browser_cdp_session()
            processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
            pid = next(int(each["id"]) for each in processes if each["type"] == "browser")
            styles = PlayStyles(browser, self._assets)
            tab = await open_tab(browser, self._assets, styles, self.limits)
            return _Process(browser, pid, styles, tab)
        except Error as error:
            await browser.close()
            raise RenderError(f"{self._executable} starts but does not work: {error.message}") from error

    async def _driver(self) -> "Playwright":
        async with self._starting:
            if self._closed:
                raise RenderError("the browsers are closed")
            if self._playwright is None:
                try:
                    from playwright.async_api import async_playwright
                except ImportError as error:
                    raise MissingExtra("showing pages", "browser") from error
                self._playwright = await async_playwright().start()
            return self._playwright


async def _end(worker: _Worker) -> None:
    if worker.process is not None:
        process, worker.process = worker.process, None
        await process.kill()
