"""Which pages may be followed by another one in the same document."""

import pytest

from sweetrl.browser.traces import leaves_no_trace

LINK = '<link href="https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css" rel="stylesheet">'


@pytest.mark.parametrize(
    "page",
    [
        "",
        f"<html>\n{LINK}\n<body class='flex'><header><img src='x'></header><style>p {{ color: red }}</style>"
        "<style type='text/css'></style>",
        "<!DOCTYPE html><head><META charset=UTF-8><meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<LINK rel=stylesheet href='x.css'/></head><form><input></form><svg><path d='M0 0'/></svg>",
    ],
)
def test_a_plain_page_leaves_no_trace(page: str) -> None:
    assert leaves_no_trace(page)


@pytest.mark.parametrize(
    "page",
    [
        "<meta http-equiv=Content-Security-Policy content=\"style-src 'none'\">",
        "<meta charset=utf-8 http-equiv=default-style content=x>",
        "<meta name=color-scheme content=dark>",
        "<link rel=preload as=style href=x>",
        "<link rel='&#112;reload' as=style href=x>",
        "<link rel=preload as=style href=x rel=stylesheet>",
        "<link href='x' rel=stylesheet rel=preload>",
        "<link/rel=preload/href=x>",
        "<meta\n<p>",
        "<script></script>",
        "<style title=x>p { color: red }</style>",
        "<svg><style\ntitle=x></style></svg>",
        "<style type=text/css title=x></style>",
        "<style media=print></style>",
        "<input autofocus>",
        "<img src=x loading = lazy>",
        "<base href=x>",
        "<iframe srcdoc=x></iframe>",
        "<video src=x>",
        "<me\x00ta charset=utf-8>",
    ],
)
def test_a_page_that_may_leave_something_behind_is_recognised(page: str) -> None:
    assert not leaves_no_trace(page)
