"""Pages without a browser: boxes painted with Pillow, and a renderer that shows those it is told about."""

import io
from collections.abc import Mapping, Sequence

from PIL import Image, ImageDraw

from sweetrl.types import Box, Shot

WIDTH, HEIGHT = 1366, 600


def body(background: str = "#ffffff", height: float = HEIGHT) -> Box:
    return Box(tag="body", x=0, y=0, width=WIDTH, height=height, background=background)


def box(tag: str, x: float, y: float, width: float, height: float, text: str = "", **style: object) -> Box:
    """An element right below the body."""
    given = {"depth": 1, "parent": 0, **style}
    return Box(tag=tag, x=x, y=y, width=width, height=height, text=text, **given)  # type: ignore[arg-type]


def paint(*boxes: Box) -> Shot:
    """The picture of a page: its areas, and a bar for each text."""
    height = int(boxes[0].height) if boxes else HEIGHT
    picture = Image.new("RGB", (WIDTH, height), "white")
    draw = ImageDraw.Draw(picture)
    for each in boxes:
        corners = (each.x, each.y, each.x + each.width - 1, each.y + each.height - 1)
        if each.background:
            draw.rectangle(corners, fill=each.background[:7])
        if each.text:
            length = min(each.width - 1, 8 * len(each.text))
            draw.rectangle((each.x, each.y, each.x + length, each.y + 10), fill=each.color[:7])
    file = io.BytesIO()
    picture.save(file, "PNG")
    return Shot(png=file.getvalue(), width=WIDTH, height=height, boxes=boxes)


class PaintedPages:
    """A `Renderer` with a fixed outcome for each page: a shot, or an error to raise."""

    def __init__(self, pages: Mapping[str, Shot | Exception]) -> None:
        self._pages = pages
        self.asked: list[str] = []

    async def render(self, html: str) -> Shot:
        self.asked.append(html)
        outcome = self._pages[html]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def close(self) -> None:
        pass


def shop(
    *,
    header: str = "#dc2626",
    title: str = "Golden Crust",
    cards: int = 3,
    footer: bool = True,
    card_top: float = 200,
    extra: Sequence[Box] = (),
) -> Shot:
    """A small page with a few choices."""
    parts = [body(), box("header", 0, 0, WIDTH, 80, background=header)]
    parts.append(box("h1", 20, 20, 300, 40, title, color="#ffffff", font_size=24.0, parent=1, depth=2))
    for place in range(cards):
        parts.append(box("div", 40 + 320 * place, card_top, 280, 160, background="#dbeafe"))
        parts.append(
            box("p", 60 + 320 * place, card_top + 20, 200, 24, "Rye loaf", parent=len(parts) - 1, depth=2)
        )
    if footer:
        parts.append(
            box("footer", 0, 520, WIDTH, 80, "All rights reserved", color="#ffffff", background="#1f2937")
        )
    return paint(*parts, *extra)
