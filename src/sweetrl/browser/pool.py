"""`BrowserPool`: renders untrusted pages to pictures, several at a time."""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sweetrl.browser.assets import WebAssets
from sweetrl.browser.chromium import find_browser, launch, write_font_configuration
from sweetrl.browser.play import PlayStyles
from sweetrl.browser.tab import CannotMeasure, Limits, Tab, open_tab
from sweetrl.errors import PageError, RenderError, SweetError, needs_extra
from sweetrl.records import without_surrogates
from sweetrl.types import Shot

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

# A healthy browser shows this in some 50 ms.
_PROBE_PAGE = "<!doctype html><title>probe</title><p style='height:100px;background:green'>healthy</p>"
_PAGES_PER_TAB = 250
_SECONDS_TO_END = 10


class _Process:
    """A running browser and its tab."""

    def __init__(self, browser: "Browser", pid: int, styles: PlayStyles, tab: Tab) -> None:
        self.browser = browser
        self.pid = pid
        self.styles = styles
        self.tab = tab

    @property
    def usable(self) -> bool:
        """Whether another page can be shown."""
        return self.browser.is_connected() and not self.tab.abandoned

    async def kill(self) -> None:
        """Kill the browser at once; nothing in it needs saving."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        await _ended(self.browser.close())


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
        _require_playwright()
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
        """See `Renderer`. `RenderError` if the browser, as opposed to the page, fails; nothing else is raised."""
        page = self._checked(html)
        worker = await self._free.get()
        try:
            return await self._attempts(worker, page)
        except PageError:
            if worker.process is not None and not worker.process.usable:
                await _end(worker)
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
        await self._stop_driver(self._playwright)
        self._folder.cleanup()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _checked(self, html: str) -> str:
        """The page as a file would hold it, if it is not too large."""
        if len(html) <= self.limits.html_bytes:
            html = str(without_surrogates(html))
            if len(html.encode()) <= self.limits.html_bytes:
                return html
        raise PageError(f"the page is larger than {self.limits.html_bytes} bytes")

    async def _attempts(self, worker: _Worker, html: str) -> Shot:
        """A page that fails in a browser that shows other pages is tried once more, in a new one."""
        for _ in range(2):
            process = await self._ready(worker)
            try:
                return await asyncio.wait_for(process.tab.shoot(html), self.limits.seconds)
            except SweetError:
                raise
            # Any exception: whether plain pages still work decides who is to blame, not the type of the error.
            except Exception as error:
                await _end(worker)
                reason = self._reason(error)
                if self._closed:
                    raise RenderError("the browsers were closed while a page was shown") from error
        await self._insist_on_health(worker)
        raise PageError(f"the page {reason}")

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"is not ready in time ({self.limits.seconds:g} s)"
        if isinstance(error, CannotMeasure):
            return f"cannot be measured: {error}"
        return "takes the browser down"

    async def _insist_on_health(self, worker: _Worker) -> None:
        """Blame a page only if the machine is not so busy that any page would have failed."""
        process = await self._ready(worker)
        try:
            await asyncio.wait_for(process.tab.shoot(_PROBE_PAGE), self.limits.seconds / 4)
        except Exception as error:
            reason = f"a plain page {self._reason(error)} too"
            raise RenderError(f"the browser fails: {reason}; is the machine overloaded?") from error

    async def _ready(self, worker: _Worker) -> _Process:
        process = worker.process
        if process is not None and process.usable and process.tab.pages_shown >= _PAGES_PER_TAB:
            await self._renew(process)
        if process is None or not process.usable:
            await _end(worker)
            process = worker.process = await self._start()
        return process

    async def _renew(self, process: _Process) -> None:
        """A new tab, as renderers grow with the number of documents that they have shown."""
        process.tab.abandoned = True
        with contextlib.suppress(Exception):  # a tab that stays abandoned takes its browser with it
            async with asyncio.timeout(self.limits.seconds):
                await process.tab.close()
                process.tab = await open_tab(process.browser, self._assets, process.styles, self.limits)

    async def _launch(self) -> "Browser":
        """A new browser; if that fails, by a new driver too, as the old one may be what is broken."""
        driver = await self._driver()
        try:
            return await launch(driver, self._executable, self._fonts)
        except RenderError:
            await self._stop_driver(driver)
            return await launch(await self._driver(), self._executable, self._fonts)

    async def _start(self) -> _Process:
        from playwright.async_api import Error

        browser = await self._launch()
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
                from playwright.async_api import async_playwright

                self._playwright = await async_playwright().start()
            return self._playwright

    async def _stop_driver(self, driver: "Playwright | None") -> None:
        """Stop this driver, if nobody has yet."""
        if driver is not None and self._playwright is driver:
            self._playwright = None
            await _ended(driver.stop())


def _require_playwright() -> None:
    """Refuse at once what no page could be shown without."""
    with needs_extra("showing pages", "browser"):
        import playwright  # noqa: F401  what counts is that it is there


async def _ended(ending: Coroutine[Any, Any, None]) -> None:
    """Wait for the end of something that may be dead already, or too busy to answer."""
    with contextlib.suppress(Exception):
        await asyncio.wait_for(ending, _SECONDS_TO_END)


async def _end(worker: _Worker) -> None:
    if worker.process is not None:
        process, worker.process = worker.process, None
        await process.kill()
