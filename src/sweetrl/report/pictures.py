"""Screenshots inside the page: PNG files as `data:` addresses, as far as there is room."""

import base64
import struct

from sweetrl.report.markup import Markup, element

PICTURE_BYTES = 1_500_000
"""The largest single picture."""
PAGE_BYTES = 12_000_000
"""All pictures of a page."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_LARGEST_SIDE = 20_000
_LARGEST_AREA = 100_000_000
"""Pixels: browsers unpack a picture whole."""


class PictureBudget:
    """How much room is left for pictures on a page."""

    def __init__(self, room: int = PAGE_BYTES) -> None:
        self._room = room
        self.left_out = 0

    def show(self, png: bytes | None, alternative: str, caption: str) -> Markup | None:
        """The picture with its caption; a note in its place if it is too large or no picture."""
        if png is None:
            return None
        size = png_size(png)
        if size is None or len(png) > min(PICTURE_BYTES, self._room):
            self.left_out += 1
            return element(
                "figure", element("p", "picture left out", class_="cut"), element("figcaption", caption)
            )
        self._room -= len(png)
        width, height = size
        address = "data:image/png;base64," + base64.b64encode(png).decode()
        image = element("img", src=address, alt=alternative, width=width, height=height)
        zoom = element("button", image, type="button", class_="zoom", aria_label=f"{alternative}: enlarge")
        return element("figure", zoom, element("figcaption", caption), class_="picture")


def png_size(content: bytes) -> tuple[int, int] | None:
    """Width and height; None if it is not a PNG file of a sensible size."""
    if len(content) < 24 or not content.startswith(_SIGNATURE) or content[12:16] != b"IHDR":
        return None
    width, height = struct.unpack(">II", content[16:24])
    sensible = max(width, height) <= _LARGEST_SIDE and 0 < width * height <= _LARGEST_AREA
    return (width, height) if sensible else None
