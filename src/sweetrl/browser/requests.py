"""Answers to the requests of a page: Tailwind, pictures, and nothing else."""

import re
from typing import Literal

from msgspec import Struct

from sweetrl.browser.assets import STYLESHEETS, TAILWIND, WebAssets
from sweetrl.browser.pictures import picture

PAGE_HOST = "page.invalid"
PAGE_ADDRESS = f"http://{PAGE_HOST}/"

# A second and third fence behind interception: no scripts, no frames, no forms, and (by `sandbox`) no popups, no
# downloads, no automatic refresh.
PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline' http: https: data:; img-src http: https: data:; font-src data:; "
    "frame-src 'none'; object-src 'none'; form-action 'none'; sandbox"
)

_STYLESHEET = re.compile(
    r"https?://(?:(?:cdn|fastly)\.jsdelivr\.net/npm/|unpkg\.com/|cdnjs\.cloudflare\.com/ajax/libs/)"
    r"tailwindcss[@/][v^~]?(?P<version>[0-2](?:\.[\w.-]+)?)/(?:dist/)?(?P<file>[\w-]+?)(?:\.min)?\.css(?:[?#].*)?"
)
_DECORATION = re.compile(
    r"fonts\.(googleapis|gstatic)\.com|fonts\.bunny\.net|use\.typekit\.net|rsms\.me/inter|font-?awesome|"
    r"(material|bootstrap|feather|line|tabler|phosphor)-?(design-?)?icons|remixicon|boxicons|ionicons|animate(\.min)?\.css",
    re.IGNORECASE,
)


class Served(Struct, frozen=True):
    """The page gets this."""

    body: bytes
    content_type: str
    warning: str = ""


class Refused(Struct, frozen=True):
    """The page does not get it."""

    essential: bool
    """Without it the page would look like another one: a stylesheet that we do not have."""


def answer(address: str, kind: str, page: str, assets: WebAssets) -> Served | Refused:
    """The answer to a request for `address`; `kind` is the browser's name for the type of the resource."""
    if kind == "Stylesheet":
        return _stylesheet(address, page, assets)
    drawn = picture(address) if kind == "Image" else None
    return Refused(essential=False) if drawn is None else Served(drawn, "image/svg+xml")


def _stylesheet(address: str, page: str, assets: WebAssets) -> Served | Refused:
    found = _STYLESHEET.fullmatch(address)
    if found is None or found["file"] not in STYLESHEETS:
        return Refused(essential=_is_essential(address))
    css = assets.stylesheet(found["file"]).for_page(page)
    other = "" if found["version"] == TAILWIND else f"Tailwind {TAILWIND} was served for {found['version']}"
    return Served(css.encode(), "text/css; charset=utf-8", other)


def _is_essential(address: str) -> bool:
    """A file beside the page never existed, and fonts and icons are decoration: a page does without."""
    elsewhere = address.startswith(("http:", "https:")) and not address.startswith(PAGE_ADDRESS)
    return elsewhere and not _DECORATION.search(address)


PlayVersion = Literal[3, 4]
_PLAY_SCRIPTS: tuple[tuple[re.Pattern[str], PlayVersion], ...] = (
    (re.compile(r"(https?:)?//cdn\.tailwindcss\.com(/3[\d.]*)?/?(\?.*)?"), 3),
    (
        re.compile(
            r"(https?:)?//[\w.]+/(npm/)?tailwindcss-cdn(@[\w.^~-]+)?/(3[\d.]*/)?tailwindcss[\w-]*\.js"
        ),
        3,
    ),
    (re.compile(r"(https?:)?//[\w.]+/(npm/)?@tailwindcss/browser(@[\w.^~-]+)?(/[\w./-]*)?"), 4),
)


def play_version(address: str) -> PlayVersion | None:
    """Which Tailwind a script tag would load, if it would."""
    return next((version for pattern, version in _PLAY_SCRIPTS if pattern.fullmatch(address.strip())), None)


def play_plugins(address: str) -> frozenset[str]:
    """The official plugins that the address of a script asks for: `?plugins=forms,typography`."""
    found = re.search(r"[?&]plugins=([\w,-]+)", address) or re.search(r"-with-([\w-]+)\.js", address)
    return frozenset(found[1].split(",")) if found else frozenset()
