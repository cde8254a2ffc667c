"""Pictures of image services."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.browser.pictures import picture, size_asked


@pytest.mark.parametrize(
    ("address", "size"),
    [
        ("https://picsum.photos/id/48/300/200", (300, 200)),
        ("https://picsum.photos/id/48/100/50-estate", (100, 50)),
        ("https://picsum.photos/seed/7/300/200.jpg?random=2", (300, 200)),
        ("https://picsum.photos/200", (200, 200)),
        ("https://via.placeholder.com/150x80", (150, 80)),
        ("https://via.placeholder.com/150", (150, 150)),
        ("https://placehold.co/600x400/000/fff.png?text=1x1", (600, 400)),
        ("https://source.unsplash.com/random/800x600", (800, 600)),
        ("https://images.unsplash.com/photo-1500000-abc?w=600&h=100", (600, 100)),
        ("https://images.unsplash.com/photo-1500000-abc?w=600&q=80", (600, 400)),
        ("https://loremflickr.com/320/240/dog", (320, 240)),
        ("https://ui-avatars.com/api/?name=A&size=128", (128, 128)),
        ("https://picsum.photos/0/99999", (1, 4096)),
        ("https://picsum.photos/", (640, 480)),
    ],
)
def test_a_picture_has_the_size_that_its_address_names(address: str, size: tuple[int, int]) -> None:
    assert size_asked(urlsplit(address)) == size
    drawn = picture(address)
    assert drawn is not None
    assert f'width="{size[0]}" height="{size[1]}"'.encode() in drawn


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com/300/200",
        "http://picsum.photos.example.com/300/200",
        "http://picsum.photos@127.0.0.1/300/200",
        "http://notpicsum.photos/300/200",
        "http://[picsum.photos/300/200",
    ],
)
def test_other_hosts_have_no_pictures(address: str) -> None:
    assert picture(address) is None


def test_a_picture_is_always_the_same_and_depends_on_its_address() -> None:
    assert picture("https://picsum.photos/300/200") == picture("https://picsum.photos/300/200")
    assert picture("https://picsum.photos/seed/cat/300/200") != picture(
        "https://picsum.photos/seed/dog/300/200"
    )


def test_placeholders_have_the_colour_that_was_asked_for() -> None:
    assert b'fill="#ff8800"' in (picture("https://placehold.co/600x400/ff8800/fff") or b"")
    assert b'fill="#cccccc"' in (picture("https://via.placeholder.com/300") or b"")


@given(st.text())
def test_nothing_from_an_address_gets_into_a_picture_but_numbers_and_colours(path: str) -> None:
    drawn = (picture(f"https://placehold.co/{path}") or b"").decode()
    assert drawn.count("<") == 3 or not drawn
