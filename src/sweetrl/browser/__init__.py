r"""Renders untrusted HTML to a picture: offline, deterministic, in a pool of headless Chromium browsers.

    async with BrowserPool(workers=2) as renderer:
        shot = await renderer.render("<h1>Hello</h1>")
    # Shot(png=b"\x89PNG...", width=1366, height=..., boxes=(Box(tag="body", ...), ...), ...)

`docs/rendering.md` lists what a page can load, what is blocked, and what is not covered.
"""

from sweetrl.browser.assets import WebAssets
from sweetrl.browser.chromium import find_browser
from sweetrl.browser.memory import RememberingRenderer
from sweetrl.browser.pool import BrowserPool
from sweetrl.browser.tab import Limits
from sweetrl.errors import PageError, RenderError
from sweetrl.types import Box, Shot

__all__ = [
    "Box",
    "BrowserPool",
    "Limits",
    "PageError",
    "RememberingRenderer",
    "RenderError",
    "Shot",
    "WebAssets",
    "find_browser",
]
