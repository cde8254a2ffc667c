"""Pages of agents in a real browser: they are seen, and nothing in them runs, asks anyone, or leads anywhere."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from playwright.sync_api import Browser, expect

from report.samples import episode
from sweetrl.browser import WebAssets
from sweetrl.viewer.framed import framed
from viewer.attacks import ATTACKS, LISTENER
from viewer.stored_runs import served, write_records

MORE_ATTACKS = (
    f"<link rel=preconnect href='{LISTENER}'><LINK rel=dns-prefetch href='{LISTENER}'>",
    f"<a id=go href='{LISTENER}/top' target=_top ping='{LISTENER}/ping'>go</a>",
    f"<a id=go href='{LISTENER}/self'>go</a>",
    f"<a id=go href='{LISTENER}/blank' target=_blank>go</a>",
    "<a id=go href='javascript:top.hit=1'>go</a>",
    f"<form action='{LISTENER}/form' target=_top><button id=go>go</button></form>",
    f"<meta http-equiv=refresh content='0;url={LISTENER}/refresh'>",
    "<meta http-equiv=Content-Security-Policy content=\"script-src 'unsafe-inline'\"><script>top.hit=1</script>",
    f"<style>@font-face{{font-family:f;src:url({LISTENER}/f)}}*{{font-family:f;cursor:url({LISTENER}/c),auto}}</style>",
    f"<iframe src='{LISTENER}/frame'></iframe><object data='{LISTENER}/o'></object>",
    f"<video poster='{LISTENER}/poster' src='{LISTENER}/v' autoplay></video><input type=image src='{LISTENER}/i'>",
)
SEEN = "This is my page"


@contextmanager
def listening() -> Iterator[tuple[str, list[int]]]:
    """An address of this machine, and a note for each connection to it."""
    connections: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connections.append(1)
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", connections
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[tuple[str, list[str], list[int]]]:
    """A viewer over pages that attack it: its address, the ids of the dialogues, connections to the attacker."""
    with listening() as (mine, connections):
        # A page in a fence would be taken instead of the one around it.
        attacks = [each.replace(LISTENER, mine) for each in (*MORE_ATTACKS, *ATTACKS) if "```" not in each]
        pages = [f"<html><body><h1>{SEEN}</h1>{attack}</body></html>" for attack in attacks]
        held = [
            msgspec.structs.replace(
                episode(f"p{number}"), answer=html.encode("utf-8", "replace").decode().replace("\0", "")
            )
            for number, html in enumerate(pages)
        ]
        write_records(tmp_path / "run" / "episodes.jsonl", held)
        with served([str(tmp_path / "run")], tmp_path / "index.sqlite") as site:
            yield site, [each.id for each in held], connections


def test_a_page_gets_the_tailwind_that_it_asks_for_and_no_other_link() -> None:
    assets = WebAssets()
    if assets.missing():
        pytest.skip("Tailwind is not installed")
    sheet = "https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css"
    shown = framed(
        f'<link href="{sheet}" rel="stylesheet"><LiNk rel=icon href=x><p class="bg-green-50">Hi</p><link'
    )
    assert "<style>" in shown
    assert ".bg-green-50{" in shown
    assert "<link" not in shown.lower()


@pytest.mark.parametrize("piece", ["<link ", "<img src=", "<img src", "<link href="])
def test_a_page_of_many_open_tags_takes_no_longer_than_its_length(piece: str) -> None:
    assert len(framed(piece * 100_000)) >= len(piece) * 100_000


def test_a_page_gets_pictures_that_are_drawn_in_place_of_those_elsewhere() -> None:
    shown = framed('<img alt="a" src="https://picsum.photos/200/100"><img src=cat.png>')
    assert '<img alt="a" src="data:image/svg+xml;base64,' in shown
    assert shown.endswith("<img src=cat.png>")


def address(name: str) -> str:
    return f"/page?{urlencode({'of': 'run', 'id': name})}"


def test_the_page_of_an_agent_is_shown_in_a_frame_without_rights(
    browser: Browser, attacked: tuple[str, list[str], list[int]]
) -> None:
    site, names, _ = attacked
    page = browser.new_page()
    page.goto(f"{site}/dialogue?{urlencode({'of': 'run', 'id': names[0]})}")
    page.get_by_text("the page itself, without scripts").click()
    frame = page.locator("iframe.agents-page")
    assert frame.get_attribute("sandbox") == ""
    expect(page.frame_locator("iframe.agents-page").locator("h1")).to_have_text(SEEN)
    answer = page.request.get(site + address(names[0]))
    assert answer.status == 404
    assert SEEN not in answer.text()
    page.close()


def test_no_page_of_an_agent_runs_anything_or_asks_anyone(
    browser: Browser, attacked: tuple[str, list[str], list[int]]
) -> None:
    site, names, connections = attacked
    page = browser.new_page()
    page.goto(site)
    opened: list[str] = []
    page.context.on("page", lambda other: opened.append(other.url))
    # Even in frames that forget the attribute: the answer itself forbids everything.
    page.evaluate(
        """(addresses) => Promise.all(addresses.map((address, number) => new Promise((loaded) => {
            const frame = document.createElement("iframe");
            if (number % 2) frame.sandbox = "";
            frame.src = address;
            frame.onload = loaded;
            document.querySelector("main").append(frame);
        })))""",
        [address(name) for name in names],
    )
    frames = page.main_frame.child_frames
    assert len(frames) == len(names)
    assert all(SEEN in frame.content() for frame in frames)
    for frame in frames[: len(MORE_ATTACKS)]:
        for link in frame.locator("#go").all():
            link.dispatch_event("click")
    page.wait_for_timeout(500)
    assert page.evaluate("[window.hit, location.pathname]") == [None, "/"]
    assert [frame.evaluate("window.hit") for frame in frames] == [None] * len(names)
    assert opened == []
    assert connections == []
    page.close()
