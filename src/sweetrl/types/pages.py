"""Rendered pages."""

from msgspec import Struct


class Box(Struct, frozen=True, kw_only=True):
    """One element of a rendered page: where it is and how it looks. Lengths are CSS pixels."""

    tag: str
    """Lower case, for example `div`."""
    x: float
    """From the left edge of the page, not of the window."""
    y: float
    width: float
    height: float
    text: str = ""
    """The element's own words, without those of its children; white space collapsed."""
    color: str = "#000000"
    """Colour of the text: `#rrggbb`, or `#rrggbbaa` where it is not opaque."""
    background: str = ""
    """Like `color`; empty where the element paints none of its own."""
    image: bool = False
    """Whether it shows a picture or a gradient: an `img` or `svg`, or a CSS background image."""
    font_size: float = 16.0
    font_weight: int = 400
    text_align: str = "start"
    border_radius: float = 0.0
    """Radius of the top left corner."""
    border_width: float = 0.0
    """Width of the widest side."""
    border_color: str = ""
    """Colour of that side; empty where there is no border."""
    depth: int = 0
    """How many elements contain it; 0 for the body."""
    parent: int = -1
    """Index of the nearest element around it among the boxes of the page; -1 for the body."""
    visible: bool = True
    """Has an area, and is neither hidden nor fully transparent."""


class Shot(Struct, frozen=True, kw_only=True):
    """A rendered page."""

    png: bytes
    width: int
    height: int
    boxes: tuple[Box, ...] = ()
    """In document order, from the body on."""
    blocked: tuple[str, ...] = ()
    """Addresses that the page requested and did not get: sorted, each once."""
    warnings: tuple[str, ...] = ()
    """Other surprises for its author: a page that was cut, for example."""
