"""One tab of a browser, in which untrusted pages are shown one after the other.

The tab is driven over the browser's own protocol and reused: a new one per page would cost more than the page.
It keeps nothing from one page to the next, as scripts are off and all caches are disabled. Even the document is
used again, unless the page before may have left something in it.
"""

import asyncio
import base64
from collections.abc import Coroutine
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from sweetrl.browser.assets import TAILWIND, WebAssets
from sweetrl.browser.play import PlayStyles, Probe, scripts_not_run
from sweetrl.browser.requests import PAGE_ADDRESS, PAGE_POLICY, Refused, Served, answer
from sweetrl.browser.traces import leaves_no_trace
from sweetrl.errors import PageError, SweetError
from sweetrl.records import decode_json
from sweetrl.types import Box, Shot

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession

VIEWPORT_WIDTH = 1366
VIEWPORT_HEIGHT = 682

_MEASURE = resources.files(__package__).joinpath("measure.js").read_text(encoding="utf-8")
_PROBE = resources.files(__package__).joinpath("probe.js").read_text(encoding="utf-8")
# In every new document the pointer is in the corner, and what lies there would look as if it were pointed at.
_POINTER_AWAY = {"type": "mouseMoved", "x": -1, "y": -1}
_ADD_STYLE = """((css) => {
  const style = Document.prototype.createElement.call(document, "style");
  Node.prototype.appendChild.call(style, Document.prototype.createTextNode.call(document, css));
  const head = Object.getOwnPropertyDescriptor(Document.prototype, "head").get.call(document);
  Node.prototype.appendChild.call(head, style);
})"""


class Limits(Struct, frozen=True, kw_only=True):
    """How much a page may ask for."""

    html_bytes: int = 1 << 20
    """Larger pages are refused: 30 MB take a browser down. Real ones have 1 to 6 KB."""
    width: int = 2 * VIEWPORT_WIDTH
    height: int = 16384
    """Pixels; what lies beyond is cut off, with a warning. Published pages are 80 to 3,400 high."""
    boxes: int = 3000
    text: int = 2000
    """Characters of one element's own words."""
    requests: int = 1000
    """Files that a page may ask for. Published ones name at most eight."""
    png_bytes: int = 16 << 20
    """Size of the picture. Published pages take at most some 420 KB; noise over all pixels would take 100 MB."""
    seconds: float = 10.0
    """For a page in a healthy browser, start to end."""


class _Measured(Struct, frozen=True):
    width: int
    height: int
    boxes: tuple[Box, ...]
    cut: bool


_MEASURED = msgspec.json.Decoder(_Measured)
_PROBED = msgspec.json.Decoder(Probe)


class CannotMeasure(Exception):  # noqa: N818  it says what is the matter
    """The page cannot be measured; whose fault that is, other pages will tell."""


class _Visit:
    """One page while it loads."""

    def __init__(self, html: str) -> None:
        self.html = html.removeprefix("\ufeff")
        self.plain = leaves_no_trace(html)
        self.requests = 0
        self.blocked: set[str] = set()
        self.warnings: list[str] = []
        self.failure: SweetError | None = None
        self.served = False
        self.loaded = asyncio.Event()
        self.given_up: asyncio.Future[Shot] = asyncio.get_running_loop().create_future()

    def warn(self, warning: str) -> None:
        if warning and warning not in self.warnings:
            self.warnings.append(warning)

    def asks_for_more_than(self, limit: int) -> bool:
        """Count one more request; past the limit the page is given up, even if the browser is busy."""
        self.requests += 1
        if self.requests > limit and not self.given_up.done():
            self.given_up.set_exception(PageError(f"the page asks for more than {limit} files"))
        return self.requests > limit

    def fail(self, error: SweetError) -> None:
        """Keep the first reason why there will be no picture."""
        self.failure = self.failure or error


class Tab:
    """See the module; `open_tab` makes one. After any exception but `PageError`, throw the browser away.

    The same holds when it is `abandoned`.
    """

    def __init__(
        self,
        context: "BrowserContext",
        session: "CDPSession",
        assets: WebAssets,
        styles: PlayStyles,
        limits: Limits,
    ) -> None:
        self._context = context
        self._session = session
        self._assets = assets
        self._styles = styles
        self._limits = limits
        self._visit: _Visit | None = None
        self._clean_frame: str | None = None
        """The frame whose document can be reused for the next page."""
        self._answers: set[asyncio.Task[None]] = set()
        self.pages_shown = 0
        self.abandoned = False
        """Whether it was left in the middle of a page, of which more may still come."""

    async def start(self) -> None:
        """Fence it in: before this, nothing is intercepted."""
        self._session.on("Fetch.requestPaused", self._on_request)
        self._session.on("Page.loadEventFired", self._on_load)
        await self._session.send("Page.enable")
        await self._session.send("Network.enable")
        await self._session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        await self._session.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})

    async def shoot(self, html: str) -> Shot:
        """The picture of a page. It takes as long as it takes: the caller has the clock."""
        visit = self._visit = _Visit(html)
        self.pages_shown += 1
        showing = asyncio.ensure_future(self._show(visit))
        try:
            await asyncio.wait((showing, visit.given_up), return_when=asyncio.FIRST_COMPLETED)
            return visit.given_up.result() if visit.given_up.done() else showing.result()
        finally:
            showing.cancel()
            self._visit = None

    async def _show(self, visit: _Visit) -> Shot:
        frame = await self._load(visit)
        if visit.failure is not None:
            raise visit.failure
        self._clean_frame = frame if visit.plain else None
        if "<script" in visit.html.lower():
            await self._do_what_scripts_would(visit)
        await self._session.send("Input.dispatchMouseEvent", _POINTER_AWAY)
        limits = {"boxes": self._limits.boxes, "text": self._limits.text}
        measured = decode_json(_MEASURED, await self._call(_MEASURE, limits))
        return await self._capture(visit, measured)

    async def close(self) -> None:
        """Close the tab's context; the browser keeps running."""
        await self._context.close()

    async def _load(self, visit: _Visit) -> str:
        frame, self._clean_frame = self._clean_frame, None
        # A used document shows a page before its stylesheet is there, and transitions would start from that.
        if frame is None or not visit.plain or "transition" in visit.html:
            frame = str((await self._session.send("Page.navigate", {"url": PAGE_ADDRESS}))["frameId"])
        else:
            visit.served = True
            await self._session.send("Page.setDocumentContent", {"frameId": frame, "html": visit.html})
        await visit.loaded.wait()
        return frame

    async def _do_what_scripts_would(self, visit: _Visit) -> None:
        probe = decode_json(_PROBED, await self._call(_PROBE))
        css, warnings = await self._styles.compile(probe)
        for warning in (*warnings, scripts_not_run(probe)):
            visit.warn(warning)
        if css:
            await self._call(_ADD_STYLE, css)

    async def _capture(self, visit: _Visit, measured: _Measured) -> Shot:
        width, height = min(measured.width, self._limits.width), min(measured.height, self._limits.height)
        if (width, height) != (measured.width, measured.height):
            visit.warn(
                f"the page has {measured.width} x {measured.height} pixels and was cut to {width} x {height}"
            )
        if measured.cut:
            visit.warn(f"only the first {len(measured.boxes)} elements were measured")
        parameters = {
            "format": "png",
            "optimizeForSpeed": True,
            "captureBeyondViewport": width > VIEWPORT_WIDTH or height > VIEWPORT_HEIGHT,
            "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
        }
        picture = await self._session.send("Page.captureScreenshot", parameters)
        png = base64.b64decode(picture["data"])
        if len(png) > self._limits.png_bytes:
            raise PageError(f"the picture of the page is larger than {self._limits.png_bytes} bytes")
        return Shot(
            png=png,
            width=width,
            height=height,
            boxes=measured.boxes,
            blocked=tuple(sorted(visit.blocked)),
            warnings=tuple(visit.warnings),
        )

    async def _call(self, function: str, argument: object = None) -> bytes:
        expression = f"{function}({msgspec.json.encode(argument).decode()})"
        result = await self._session.send(
            "Runtime.evaluate", {"expression": expression, "returnByValue": True}
        )
        if "exceptionDetails" in result:
            thrown = result["exceptionDetails"].get("exception", {}).get("description", "no reason given")
            raise CannotMeasure(thrown.splitlines()[0][:200])
        return str(result["result"].get("value", "")).encode("utf-8", "replace")

    # ------------------------------------------------------------ events of the browser

    def _on_load(self, _: object) -> None:
        if self._visit is not None and self._visit.served:
            self._visit.loaded.set()

    def _on_request(self, event: dict[str, Any]) -> None:
        task = asyncio.ensure_future(self._answer(event))
        self._answers.add(task)
        task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answers.discard(task)
        # A request of a page that is gone, or a browser that died: whoever waits for the page will notice.
        task.cancelled() or task.exception()

    def _answer(self, event: dict[str, Any]) -> Coroutine[Any, Any, None]:
        visit, request = self._visit, str(event["requestId"])
        if visit is not None and not visit.served and event["resourceType"] == "Document":
            visit.served = True
            return self._fulfil(request, Served(visit.html.encode(), "text/html; charset=utf-8"))
        if visit is None or not visit.served:
            # Of the page before: it must not show in this one.
            return self._refuse(request)
        if visit.asks_for_more_than(self._limits.requests):
            self.abandoned = True
            return self._refuse(request)
        address = str(event["request"]["url"])
        given = self._given(visit, address, event["resourceType"])
        if isinstance(given, Served):
            visit.warn(given.warning)
            return self._fulfil(request, given)
        visit.blocked.add(address[:2000])
        return self._refuse(request)

    def _given(self, visit: _Visit, address: str, kind: str) -> Served | Refused:
        """The answer to a request of the page; if making it fails, the error is kept as the failure of the page."""
        if kind == "Document":
            return Refused(essential=False)
        try:
            given = answer(address, kind, visit.html, self._assets)
        except SweetError as error:
            visit.fail(error)
        except Exception as error:  # it would end the connection to all browsers
            visit.fail(PageError(f"the page cannot be given {address[:200]}: {type(error).__name__}"))
        else:
            if isinstance(given, Refused) and given.essential:
                missing = f"the page needs the stylesheet {address[:200]}, which is not offered"
                visit.fail(PageError(f"{missing}; Tailwind CSS {TAILWIND} is"))
            return given
        return Refused(essential=False)

    async def _fulfil(self, request: str, given: Served) -> None:
        headers = {
            "Content-Type": given.content_type,
            "Content-Security-Policy": PAGE_POLICY,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Access-Control-Allow-Origin": "*",
        }
        await self._session.send(
            "Fetch.fulfillRequest",
            {
                "requestId": request,
                "responseCode": 200,
                "responseHeaders": [{"name": name, "value": value} for name, value in headers.items()],
                "body": base64.b64encode(given.body).decode(),
            },
        )

    async def _refuse(self, request: str) -> None:
        await self._session.send(
            "Fetch.failRequest", {"requestId": request, "errorReason": "BlockedByClient"}
        )


async def open_tab(browser: "Browser", assets: WebAssets, styles: PlayStyles, limits: Limits) -> Tab:
    """A tab for untrusted pages in a context of its own."""
    context = await browser.new_context(
        viewport={"width": VIEWPORT_WIDTH, "height": VIEWPORT_HEIGHT},
        device_scale_factor=1,
        java_script_enabled=False,
        accept_downloads=False,
        service_workers="block",
        locale="en-US",
        timezone_id="UTC",
        color_scheme="light",
    )
    page = await context.new_page()
    # From here on every further page of this context is a popup.
    context.on("page", lambda popup: asyncio.ensure_future(popup.close()))
    page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.dismiss()))
    tab = Tab(context, await context.new_cdp_session(page), assets, styles, limits)
    await tab.start()
    return tab
