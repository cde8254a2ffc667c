"""Pages of agents for a frame in which nothing runs: what the renderer would serve them is put into them."""

import base64
import re
from functools import cache

from sweetrl.browser.assets import WebAssets
from sweetrl.browser.requests import Served, answer
from sweetrl.errors import RenderError

FRAME_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
    "x-dns-prefetch-control": "off",
}
"""The page's own text, style and pictures inside of it; no scripts, forms or requests."""
# No tag is followed beyond the next one: hostile pages must take time linear in their length.
_LINK = re.compile(r"<link\b[^<>]*+>", re.IGNORECASE)
_LINK_START = re.compile("<(?=link)", re.IGNORECASE)
_IMAGE = re.compile(r"""(<img\b[^<>]*?\bsrc\s*=\s*["']?)(https?:[^"'\s>]+)""", re.IGNORECASE)
_HREF = re.compile(r"""\bhref\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)

_assets = cache(WebAssets)


def framed(html: str) -> str:
    """The page with Tailwind and drawn pictures in place of those that it asks for, as in screenshots.

    No other link to a resource is left: a browser may open connections for them that no policy forbids.
    """
    styled = _LINK.sub(lambda link: _styled(link[0], html), html)
    return _LINK_START.sub("<x-", _IMAGE.sub(lambda image: image[1] + _drawn(image[2]), styled))


def _styled(link: str, html: str) -> str:
    address = _HREF.search(link)
    try:
        found = None if address is None else answer(address[1], "Stylesheet", html, _assets())
    except RenderError:
        return link  # Tailwind is not installed here
    return f"<style>{found.body.decode()}</style>" if isinstance(found, Served) else link


def _drawn(address: str) -> str:
    found = answer(address, "Image", "", _assets())
    if not isinstance(found, Served):
        return address
    return f"data:{found.content_type};base64,{base64.b64encode(found.body).decode()}"
