import base64

import pytest

from report.reading import read
from report.samples import png
from sweetrl.report import pictures
from sweetrl.report.pictures import PictureBudget, png_size


def test_a_picture_is_inside_the_page_with_its_words():
    picture = png(30, 20)
    shown = read(PictureBudget().show(picture, "the wanted page", "wanted"))
    image = shown.one("img")
    assert image.attributes["src"] == "data:image/png;base64," + base64.b64encode(picture).decode()
    assert (image.attributes["alt"], image.attributes["width"]) == ("the wanted page", "30")
    assert shown.one("button").attributes["aria-label"] == "the wanted page: enlarge"
    assert shown.one("figcaption").text == "wanted"


def test_no_picture_is_nothing():
    assert PictureBudget().show(None, "a", "b") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<svg onload=alert(1)>",
        b"GIF89a" + bytes(50),
        png(30, 20)[:20],
        b"\x89PNG\r\n\x1a\n" + bytes(40),
    ],
)
def test_what_is_no_png_is_left_out_with_a_note(content):
    shown = read(PictureBudget().show(content, "a", "b"))
    assert shown.all("img") == []
    assert shown.one(class_="cut").text == "picture left out"


def test_sizes_that_would_fill_the_memory_are_refused():
    assert png_size(png(30, 20)) == (30, 20)
    huge = bytearray(png(30, 20))
    huge[16:20] = (1 << 30).to_bytes(4, "big")
    assert png_size(bytes(huge)) is None


def test_pictures_stop_where_the_room_ends(monkeypatch):
    picture = png(30, 20)
    budget = PictureBudget(room=2 * len(picture) + 1)
    assert [len(read(budget.show(picture, "a", "b")).all("img")) for _ in range(4)] == [1, 1, 0, 0]
    monkeypatch.setattr(pictures, "PICTURE_BYTES", len(picture) - 1)
    assert read(PictureBudget().show(picture, "a", "b")).all("img") == []
