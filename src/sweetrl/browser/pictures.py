"""Pictures for the addresses of image services: always the same one for the same address, of the size asked for."""

import hashlib
import re
from urllib.parse import SplitResult, parse_qs, urlsplit

_SERVICES = (
    "baconmockup.com",
    "dummyimage.com",
    "fakeimg.pl",
    "fillmurray.com",
    "images.pexels.com",
    "images.unsplash.com",
    "i.pravatar.cc",
    "loremflickr.com",
    "picsum.photos",
    "placebear.com",
    "placehold.co",
    "placehold.it",
    "placeholder.com",
    "placeimg.com",
    "placekitten.com",
    "randomuser.me",
    "source.unsplash.com",
    "ui-avatars.com",
    "via.placeholder.com",
)
_COLOURED = ("dummyimage.com", "placehold.co", "placehold.it", "placeholder.com", "via.placeholder.com")
_LARGEST = 4096
_DEFAULT = (640, 480)

_TIMES = re.compile(r"(?<!\d)(\d{1,5})x(\d{1,5})(?!\d)")
_SEGMENTS = re.compile(r"/(\d{1,5})/(\d{1,5})(?!\d)")
_SQUARE = re.compile(r"^/(\d{1,5})(?![\d/])")
_COLOUR = re.compile(r"/([0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?=[/.]|$)")


def picture(address: str) -> bytes | None:
    """An SVG file for an address of an image service; None for any other address."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return None
    service = next((name for name in _SERVICES if host == name or host.endswith("." + name)), None)
    if service is None:
        return None
    width, height = size_asked(parts)
    if service in _COLOURED:
        return _plain(width, height, _colour_asked(parts.path))
    return _landscape(width, height, topic=service + re.sub(r"\d+", "", parts.path))


def size_asked(parts: SplitResult) -> tuple[int, int]:
    """Width and height that an address names, whichever way its service writes them."""
    # `/id/48/300/200`: the number of the picture is not a length.
    path = re.sub(r"^/(id|seed)/[^/]+", "", parts.path)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if found := _TIMES.search(path) or _SEGMENTS.search(path):
        size = int(found[1]), int(found[2])
    elif found := _SQUARE.search(path):
        size = int(found[1]), int(found[1])
    else:
        size = _size_in_query(query)
    return _bounded(size[0]), _bounded(size[1])


def _size_in_query(query: dict[str, str]) -> tuple[int, int]:
    width, height = (
        query.get(short, query.get(long, "")) for short, long in (("w", "width"), ("h", "height"))
    )
    if not width.isdecimal():
        side = query.get("size", "")
        return (int(side[:6]), int(side[:6])) if side.isdecimal() else _DEFAULT
    return int(width[:6]), int(height[:6]) if height.isdecimal() else int(width[:6]) * 2 // 3


def _bounded(length: int) -> int:
    return max(1, min(length, _LARGEST))


def _colour_asked(path: str) -> str:
    # The size may look like a colour (`/300`): only what follows it counts.
    found = _COLOUR.search(path, path.find("/", 1) if "/" in path[1:] else len(path))
    return "#" + found[1] if found else "#cccccc"


def _plain(width: int, height: int, colour: str) -> bytes:
    return _svg(width, height, f'<rect width="100" height="100" fill="{colour}"/>')


def _landscape(width: int, height: int, topic: str) -> bytes:
    """Sky, sun and hills in muted colours that depend on the topic alone."""
    hue = int.from_bytes(hashlib.blake2b(topic.encode(), digest_size=2).digest(), "big") % 360
    return _svg(
        width,
        height,
        f'<rect width="100" height="100" fill="hsl({hue},30%,70%)"/>'
        f'<circle cx="72" cy="28" r="12" fill="hsl({(hue + 40) % 360},45%,84%)"/>'
        f'<path d="M0 62L30 38L62 70L82 52L100 66V100H0Z" fill="hsl({hue},26%,46%)"/>'
        f'<path d="M0 80L40 66L100 86V100H0Z" fill="hsl({hue},30%,30%)"/>',
    )


def _svg(width: int, height: int, content: str) -> bytes:
    # Stretched like a photograph, not fitted like a drawing.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 100 100" '
        f'preserveAspectRatio="none">{content}</svg>'
    ).encode()
