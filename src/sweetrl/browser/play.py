"""The styles that Tailwind's script tag would write, for pages whose scripts never run.

The classes, `text/tailwindcss` styles and `tailwind.config` of the untrusted page are read as data; Tailwind's script
runs on them in a page of ours, and the rules that it writes are added to the untrusted page.
"""

import asyncio
import base64
import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from sweetrl.browser.assets import WebAssets
from sweetrl.browser.literals import read_object
from sweetrl.browser.requests import PlayVersion, play_plugins, play_version
from sweetrl.records import without_surrogates

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession

_HOST = "http://tailwind.invalid"
_POLICY = f"default-src 'none'; script-src {_HOST} 'unsafe-eval'; style-src 'unsafe-inline'"
_DOCUMENT = "<!doctype html><html><head><script src=/play.js></script></head><body></body></html>"
# A rule of ours in the last stylesheet: once it is written, so are all others, whatever prefix classes have.
_LAST = ".sweetrl-79071 { order: 79071 }"
# Tailwind works without a pause once it has everything. Rules missing after a few moments will never appear.
_COMPILE = """(({classes, styles, config, last}) => new Promise((resolve) => {
  let failure = "";
  addEventListener("unhandledrejection", ({reason}) => failure ||= String(reason?.message ?? reason));
  if (config !== null && window.tailwind) window.tailwind.config = config;
  for (const text of [...styles, last]) {
    const style = document.createElement("style");
    style.type = "text/tailwindcss";
    style.textContent = text;
    document.head.append(style);
  }
  const holder = document.createElement("div");
  holder.className = classes;
  document.body.append(holder);
  const written = () => [...document.querySelectorAll("style:not([type])")].map((each) => each.textContent)
    .find((text) => text.includes(last.split(" ")[0]));
  const look = (looks) => {
    const css = written();
    if (css === undefined && !failure && looks < 20) setTimeout(look, 5, looks + 1);
    else resolve(css === undefined ? ["", failure || "no styles"] : [css, ""]);
  };
  setTimeout(look, 5, 0);
}))"""
_CONFIG = re.compile(r"tailwind\.config\s*=\s*(?={)")


class Probe(Struct, frozen=True):
    """What probe.js found on a page."""

    sources: tuple[str, ...]
    """The address of every script tag; empty for inline scripts."""
    inline: tuple[str, ...]
    """Inline scripts that set Tailwind's configuration."""
    styles: tuple[str, ...]
    classes: str


class PlayStyles:
    """Compiles such styles in the pages of one browser; equal wishes of a usual size are compiled once."""

    _REMEMBERED = 256
    _USUAL_CHARACTERS = 256 << 10

    def __init__(self, browser: "Browser", assets: WebAssets) -> None:
        self._browser = browser
        self._assets = assets
        self._done: dict[bytes, tuple[str, str]] = {}

    async def compile(self, probe: Probe) -> tuple[str, tuple[str, ...]]:
        """CSS and warnings; neither where no script tag asks for Tailwind."""
        source = next((each for each in probe.sources if play_version(each)), None)
        version = play_version(source) if source else None
        if source is None or version is None:
            return "", ()
        config, warnings = _configuration(probe, version)
        wish = {"classes": probe.classes, "styles": probe.styles, "config": config, "last": _LAST}
        key = msgspec.json.encode((source, wish))
        done = self._done.get(key)
        if done is None:
            done = await self._run(self._assets.play_script(version, play_plugins(source)), wish)
            self._remember(key, done)
        css, failure = done
        # As in any browser: a mistake in one rule, and Tailwind writes none.
        return css, (*warnings, f"Tailwind wrote no styles: {failure}") if failure else warnings

    def _remember(self, key: bytes, done: tuple[str, str]) -> None:
        if len(key) + len(done[0]) > self._USUAL_CHARACTERS:
            return
        while len(self._done) >= self._REMEMBERED:
            del self._done[next(iter(self._done))]
        self._done[key] = done

    async def _run(self, script: str, wish: dict[str, Any]) -> tuple[str, str]:
        """The CSS, or why there is none. If this raises, discard the browser: nothing is cleaned up."""
        context = await self._browser.new_context(service_workers="block", accept_downloads=False)
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        await _serve(
            session,
            {f"{_HOST}/": ("text/html", _DOCUMENT), f"{_HOST}/play.js": ("text/javascript", script)},
        )
        await page.goto(f"{_HOST}/")
        expression = f"{_COMPILE}({msgspec.json.encode(wish).decode()})"
        result = await session.send(
            "Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True}
        )
        css, failure = result["result"]["value"]
        await context.close()
        return css, " ".join(without_surrogates(failure).split())[:200]


def scripts_not_run(probe: Probe) -> str:
    """A warning about the scripts that were left out, if any were."""
    ours = sum(play_version(source) is not None for source in probe.sources) + len(probe.inline)
    others = len(probe.sources) - ours
    return f"scripts do not run: {others} left out" if others > 0 else ""


def _configuration(probe: Probe, version: PlayVersion) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    if not probe.inline or version == 4:  # version 4 is configured in CSS
        return None, ()
    found = _CONFIG.search(probe.inline[-1])
    config = read_object(probe.inline[-1], found.end()) if found else None
    return config, () if config is not None else ("tailwind.config is more than plain data and was ignored",)


async def _serve(session: "CDPSession", files: dict[str, tuple[str, str]]) -> None:
    """Answer requests from `files` and refuse all others."""

    async def respond(event: dict[str, Any]) -> None:
        found = files.get(event["request"]["url"])
        if found is None:
            await session.send(
                "Fetch.failRequest", {"requestId": event["requestId"], "errorReason": "BlockedByClient"}
            )
            return
        headers = {"Content-Type": f"{found[0]}; charset=utf-8", "Content-Security-Policy": _POLICY}
        await session.send(
            "Fetch.fulfillRequest",
            {
                "requestId": event["requestId"],
                "responseCode": 200,
                "responseHeaders": [{"name": name, "value": value} for name, value in headers.items()],
                "body": base64.b64encode(found[1].encode()).decode(),
            },
        )

    session.on("Fetch.requestPaused", lambda event: asyncio.ensure_future(respond(event)))
    await session.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})
