"""Which requests of a page are answered."""

from pathlib import Path

import pytest

from sweetrl.browser import RenderError, WebAssets
from sweetrl.browser.requests import Refused, Served, answer, play_plugins, play_version

PAGE = "<p class=flex>"


@pytest.mark.parametrize(
    "address",
    [
        "https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css",
        "https://unpkg.com/tailwindcss@^2/dist/tailwind.min.css",
        "https://cdnjs.cloudflare.com/ajax/libs/tailwindcss/2.2.19/tailwind.min.css",
        "https://unpkg.com/tailwindcss@1.9.6/dist/tailwind.css?x",
    ],
)
def test_tailwind_is_served_wherever_it_is_asked_for(address: str, tailwind: WebAssets) -> None:
    given = answer(address, "Stylesheet", PAGE, tailwind)
    assert isinstance(given, Served)
    assert b".flex{display:flex}" in given.body


def test_another_version_of_tailwind_is_served_with_a_warning(tailwind: WebAssets) -> None:
    address = "https://unpkg.com/tailwindcss@{}/dist/tailwind.min.css"
    given = [answer(address.format(each), "Stylesheet", PAGE, tailwind) for each in ("2.2.19", "2.1.1")]
    assert [each.warning for each in given if isinstance(each, Served)] == [
        "",
        "Tailwind 2.2.19 was served for 2.1.1",
    ]


@pytest.mark.parametrize(
    ("address", "essential"),
    [
        ("https://cdn.jsdelivr.net/npm/bootstrap@5.3.0/dist/css/bootstrap.min.css", True),
        ("https://cdn.jsdelivr.net/npm/tailwindcss@3.4.1/dist/tailwind.min.css", True),
        ("https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/../../../etc/passwd", True),
        ("https://unpkg.com/tailwindcss@2.2.19/dist/other.css", True),
        ("https://evil.example/unpkg.com/tailwindcss@2.2.19/dist/tailwind.min.css", True),
        ("https://fonts.googleapis.com/css2?family=Inter", False),
        ("https://cdnjs.cloudflare.com/ajax/libs/font-awesome/6.0.0/css/all.min.css", False),
        ("http://page.invalid/styles.css", False),
        ("file:///etc/passwd", False),
    ],
)
def test_other_stylesheets_are_refused(address: str, essential: bool, tmp_path: Path) -> None:
    assert answer(address, "Stylesheet", PAGE, WebAssets(tmp_path)) == Refused(essential)


@pytest.mark.parametrize("kind", ["Script", "Font", "Media", "Document", "XHR", "WebSocket", "Other"])
def test_nothing_else_is_served(kind: str, tmp_path: Path) -> None:
    for address in ("https://picsum.photos/300/200", "https://cdn.tailwindcss.com/", "http://127.0.0.1/"):
        assert answer(address, kind, PAGE, WebAssets(tmp_path)) == Refused(essential=False)


def test_tailwind_that_is_not_installed_is_our_failure_and_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="install-web-assets"):
        answer(
            "https://unpkg.com/tailwindcss@2.2.19/dist/tailwind.min.css",
            "Stylesheet",
            PAGE,
            WebAssets(tmp_path),
        )


@pytest.mark.parametrize(
    ("address", "version", "plugins"),
    [
        ("https://cdn.tailwindcss.com", 3, set()),
        ("https://cdn.tailwindcss.com/3.4.1?plugins=forms,typography", 3, {"forms", "typography"}),
        ("//cdn.tailwindcss.com/", 3, set()),
        ("https://unpkg.com/tailwindcss-cdn@3.4.10/tailwindcss-with-forms.js", 3, {"forms"}),
        ("https://cdn.jsdelivr.net/npm/@tailwindcss/browser@4", 4, set()),
        ("https://unpkg.com/@tailwindcss/browser@4.1.0/dist/index.global.js", 4, set()),
        ("https://cdn.tailwindcss.com.example/", None, set()),
        ("https://example.com/jquery.js", None, set()),
        ("", None, set()),
    ],
)
def test_a_script_tag_that_loads_tailwind_is_recognised(
    address: str, version: int | None, plugins: set[str]
) -> None:
    assert play_version(address) == version
    assert play_plugins(address) == plugins
