"""`sweetrl play --web`: people play whole games in a real browser, and a killed server loses nothing that was said."""

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from models.streaming_server import streaming
from sweetrl.domains.registry import reference_text
from sweetrl.domains.sources import load_tasks
from sweetrl.records import read_records
from sweetrl.types import Episode, TurnCredit, Verdict
from viewer.attacks import ATTACKS
from viewer.harm import unharmed

TASKS = "mini-backend:validation:3"
Start = Callable[..., tuple[subprocess.Popen[str], list[str]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the command with the folder `tmp_path / "played"`; the process and the players' links."""
    started: list[subprocess.Popen[str]] = []

    def run(*options: str, players: int = 2) -> tuple[subprocess.Popen[str], list[str]]:
        words = ["play", "--web", "--players", str(players), "--tasks", TASKS, "-o", str(tmp_path / "played")]
        process = subprocess.Popen(
            [sys.executable, "-m", "sweetrl", *words, *options], stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stderr is not None
        return process, [process.stderr.readline().split()[-1] for _ in range(players)]

    yield run
    for process in started:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def send(page: Page, text: str, button: str = "Send") -> None:
    page.fill("textarea", text)
    with page.expect_navigation():
        page.get_by_role("button", name=button).click()


def test_people_play_whole_games_through_a_crash(browser: Browser, start: Start, tmp_path: Path) -> None:
    terms = tmp_path / "consent.txt"
    terms.write_text("What you write is <b>kept</b>.")
    options = ("--consent", str(terms), "--ask-name")
    process, links = start(*options, "--port", "0")
    first, second = (browser.new_context().new_page() for _ in links)
    for page, link, name in ((first, links[0], "Ada"), (second, links[1], "Bob")):
        page.set_default_timeout(60_000)
        page.goto(link)
        expect(page.locator(".consent")).to_contain_text("<b>kept</b>")
        page.check("[name=consents]")
        page.fill("[name=name]", name)
        with page.expect_navigation():
            page.get_by_role("button", name="Start").click()
    assert first.locator(".task-request").inner_text() != second.locator(".task-request").inner_text()
    send(first, "Is there <i>a limit</i>?")
    expect(first.locator(".chat .agent")).to_contain_text("Is there <i>a limit</i>?")
    reply = first.locator(".chat .collaborator .bubble").inner_text()
    expect(second.locator(".chat li")).to_have_count(0)

    process.send_signal(signal.SIGKILL)
    process.wait()
    port = first.url.split(":")[-1].strip("/")
    _, again = start(*options, "--port", port)
    assert again == links
    first.reload()
    expect(first.locator(".chat .collaborator .bubble")).to_have_text(reply)
    expect(first.locator("#turn")).to_have_text("Message 2 of 8")

    task = next(iter(load_tasks(TASKS).values()))
    send(first, reference_text(task), "Hand in as the answer")
    expect(first.locator(".outcome.success")).to_be_visible()
    expect(first.locator(".chat .credit .value")).to_have_count(2)
    expect(first.locator("pre").last).to_be_visible()
    played = tmp_path / "played"
    [episode] = read_records(played / "episodes.jsonl", Episode)
    assert (episode.id, episode.agent, len(episode.turns)) == (f"{task.id}#0", "human", 2)
    assert episode.extra["play"]["player"] == "Ada"
    assert episode.extra["play"]["consented"]
    assert [each.success for each in read_records(played / "verdicts.jsonl", Verdict)] == [True]
    assert [each.turn for each in read_records(played / "credit.jsonl", TurnCredit)] == [0, 1]
    with first.expect_navigation():
        first.get_by_role("button", name="Play another").click()
    expect(first.locator("#turn")).to_have_text("Message 1 of 8")
    for page in (first, second):
        page.context.close()


def test_a_person_plays_the_collaborator(page: Page, start: Start, tmp_path: Path) -> None:
    _, [link] = start(
        "--as", "collaborator", "--agent", "scripted:curious", "--turn-limit", "2", "--port", "0", players=1
    )
    page.goto(link)
    with page.expect_navigation():
        page.get_by_role("button", name="Start").click()
    task = next(iter(load_tasks(TASKS).values()))
    expect(page.locator("pre").first).to_contain_text(reference_text(task).splitlines()[0])
    expect(page.locator(".chat .agent")).to_have_count(1)
    send(page, "It should be doubled.")
    expect(page.locator("h1")).to_have_text("How it ended")
    expect(page.locator(".chat .collaborator")).to_contain_text("It should be doubled.")
    [episode] = read_records(tmp_path / "played" / "episodes.jsonl", Episode)
    assert (episode.collaborator, len(episode.turns)) == ("human", 2)


def test_a_reply_is_shown_as_it_comes_and_survives_a_crash_in_its_middle(
    browser: Browser, start: Start
) -> None:
    page = browser.new_context().new_page()
    page.set_default_timeout(60_000)
    with streaming(["It is <b>twice</b>", " the number."]) as server:
        model = f"openai:test@{server.url}"
        process, [link] = start("--collaborator", model, "--port", "0", players=1)
        page.goto(link)
        with page.expect_navigation():
            page.get_by_role("button", name="Start").click()
        send(page, "What is it?")
        replies = page.locator(".chat .collaborator .bubble")
        # Whole: nobody knows yet whether this model thinks aloud.
        expect(replies).to_have_text(["It is <b>twice</b> the number."])
        server.released.clear()
        send(page, "Is it so?")
        expect(page.locator("#awaited .heard")).to_have_text("It is <b>twice</b>")
        expect(page.locator("textarea")).to_have_count(0)
        page.reload()
        expect(page.locator("#awaited .heard")).to_have_text("It is <b>twice</b>")
        expect(page.locator(".chat .agent")).to_have_count(2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        server.released.set()
        start("--collaborator", model, "--port", page.url.split(":")[-1].strip("/"), players=1)
        expect(replies).to_have_text(["It is <b>twice</b> the number."] * 2)
        expect(page.locator("textarea")).to_be_visible()
    page.context.close()


def test_nothing_that_is_said_in_a_game_is_more_than_text(page: Page, start: Start, tmp_path: Path) -> None:
    terms = tmp_path / "consent.txt"
    terms.write_text("\n\n".join(each for each in ATTACKS if each.isprintable()))
    said = [each for each in ATTACKS if "window.hit" in each and len(each) < 300 and each.isprintable()][::6]
    with streaming(["", ""]) as server:
        options = ("--collaborator", f"openai:test@{server.url}", "--turn-limit", "99", "--ask-name")
        _, [link] = start(*options, "--consent", str(terms), "--port", "0", players=1)
        page.goto(link)
        unharmed(page)
        page.check("[name=consents]")
        page.fill("[name=name]", said[0][:90])
        with page.expect_navigation():
            page.get_by_role("button", name="Start").click()
        for number, attack in enumerate(said, 1):
            server.pieces = [attack, " ."]
            send(page, attack)
            expect(page.locator(".chat .collaborator .bubble")).to_have_count(number)
            expect(page.locator("textarea")).to_be_visible()
            unharmed(page)
        send(page, f"{said[1]}\ndef {said[2]}", "Hand in as the answer")
        expect(page.locator("h1")).to_have_text("How it ended")
        unharmed(page)
    assert len(said) >= 8


def posted(link: str, path: str, body: dict[str, object]) -> bool:
    """Whether the server of a player's link took it."""
    at, _, token = link.partition("?token=")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(at + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_no_message_that_was_taken_is_lost_however_often_the_server_is_killed(start: Start) -> None:
    options = ("--turn-limit", "1000", "--port")
    process, links = start(*options, "0")
    port = str(urlsplit(links[0]).port)
    browsers = {link: urllib.request.build_opener(urllib.request.HTTPCookieProcessor()) for link in links}
    assert all(posted(link, "api/start", {}) for link in links)
    taken: dict[str, list[str]] = {link: [] for link in links}
    for life in range(4):
        killer = threading.Timer(0.2 + 0.1 * life, process.kill)
        killer.start()
        for number in count():
            for link in links:
                text = f"Is it {life}, {number}?"
                if posted(link, "api/say", {"text": text}):
                    taken[link].append(text)
            if process.poll() is not None:
                break
        killer.join()
        process, again = start(*options, port)
        assert again == links
        for link in links:  # whoever reloads the page has the other side speak
            browsers[link].open(link, timeout=60).close()
    for link in links:
        page = "aria-busy"
        while "aria-busy" in page:
            with browsers[link].open(link, timeout=60) as answer:
                page = answer.read().decode()
        assert len(taken[link]) > 3
        assert [page.count(text) for text in taken[link]] == [1] * len(taken[link])
