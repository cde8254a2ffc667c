"""The designer's remarks on plain pages, without a browser: a corpus has hundreds of thousands of drafts.

The boxes of a plain page follow from its choices. They were measured once, and the real designer reads them; a test
compares its remarks with those on the rendered pages.
"""

from functools import lru_cache

from sweetrl.domains.frontend.designer import remark
from sweetrl.domains.frontend.mini_frontend import Design, page_of
from sweetrl.types import Box, Shot

COLOURS = {
    "gray-800": "#1f2937",
    "red-600": "#dc2626",
    "blue-600": "#2563eb",
    "green-600": "#059669",
    "purple-600": "#7c3aed",
    "indigo-800": "#3730a3",
    "pink-600": "#db2777",
    "gray-200": "#e5e7eb",
    "yellow-200": "#fde68a",
    "blue-100": "#dbeafe",
    "green-100": "#d1fae5",
    "red-100": "#fee2e2",
    "purple-100": "#ede9fe",
}
"""Colours of Tailwind's palette, by name."""
_WIDTH = 1366.0
_HEADINGS = {"2xl": (24.0, 32.0), "4xl": (36.0, 40.0), "6xl": (60.0, 60.0)}
"""Font size, and height of the line."""
_TEXT_WIDTHS = {"h1": 160.0, "h2": 1302.0, "p": 1318.0}
_BUTTON_WIDTHS = {
    "Menu": 92,
    "Bikes": 89,
    "Exhibits": 109,
    "Classes": 107,
    "Services": 115,
    "Plants": 96,
    "Lessons": 111,
    "Trips": 85,
    "Beans": 97,
    "Product": 110,
    "Projects": 112,
}


@lru_cache(maxsize=200_000)
def remark_on(wanted: Design, shown: Design) -> str:
    """The remark of a designer who wants one page and is shown the other."""
    return remark(sketch(wanted), sketch(shown))


@lru_cache(maxsize=50_000)
def sketch(design: Design) -> Shot:
    """The page as the designer reads it. In place of a picture it has the page's source: equal only to itself."""
    boxes = tuple(_boxes(design))
    return Shot(png=page_of(design).encode(), width=int(_WIDTH), height=int(boxes[0].height), boxes=boxes)


def _boxes(design: Design) -> list[Box]:
    """In document order. Only the places that a remark can depend on are as in the browser."""
    font, line = _HEADINGS[design.heading_size]
    business, end = design.business, 248 + line
    return [
        Box(tag="body", x=0, y=0, width=_WIDTH, height=end + 72, background="#ffffff"),
        _area("header", 0, 64, design.header_colour),
        _text("h1", 1, 16, 32, business.name, "start", font_size=24.0),
        _area("section", 64, 184 + line, design.hero_colour),
        _text("h2", 3, 128, line, business.headline, design.hero_align, font_size=font),
        _button(144 + line, business.pages[0], design.button_colour),
        _area("footer", end, 72, design.footer_colour),
        _text("p", 6, end + 24, 24, f"{business.name}, all rights reserved", design.footer_align),
    ]


def _area(tag: str, top: float, height: float, colour: str) -> Box:
    background = COLOURS[colour]
    return Box(tag=tag, x=0, y=top, width=_WIDTH, height=height, background=background, depth=1, parent=0)


def _text(
    tag: str, parent: int, top: float, height: float, text: str, align: str, font_size: float = 16.0
) -> Box:
    """Text in a line of its own; its colour never differs."""
    return Box(
        tag=tag,
        x=32,
        y=top,
        width=_TEXT_WIDTHS[tag],
        height=height,
        text=text,
        text_align=align,
        font_size=font_size,
        depth=2,
        parent=parent,
    )


def _button(top: float, label: str, colour: str) -> Box:
    return Box(
        tag="button",
        x=32,
        y=top,
        width=_BUTTON_WIDTHS[label],
        height=40,
        text=label,
        background=COLOURS[colour],
        text_align="center",
        depth=2,
        parent=3,
    )
