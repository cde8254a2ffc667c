"""Pictures of the viewer and of a game for the documentation, from a quickstart and a run about pages.

    sweetrl credit quickstart/seed-0/evaluations/base/episodes.jsonl --critic quickstart/seed-0/critics/sweet \
        --tasks mini-backend:validation:300:0 -o quickstart/seed-0/evaluations/base/credit.jsonl
    sweetrl evaluate --tasks mini-frontend-plain:validation:4 --agent page-mediocre --collaborator designer -o pages
    .venv/bin/python scripts/viewer_screenshots.py quickstart pages

writes `docs/pictures/viewer-*.png` and `play-*.png`. Needs the extras `browser` and `view`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from sweetrl.browser import find_browser

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
TERMS = """What you write is kept, and published with the results of this study.

You can stop at any time by closing the page."""
Row = dict[str, Any]


def main() -> None:
    """Take the pictures of the runs that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "run", type=Path, help="the folder of a quickstart, with credit.jsonl of an evaluation"
    )
    parser.add_argument("pages", type=Path, help="the folder of a run on frontend tasks")
    parser.add_argument("-o", "--output", type=Path, default=PICTURES, help="the folder for the pictures")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        with viewer(options.run, options.pages) as (address, rows):
            take(browser, address, rows, options.run.name, options.pages.name, options.output)
        with tempfile.TemporaryDirectory() as folder:
            terms = Path(folder, "consent.txt")
            terms.write_text(TERMS)
            asked = ("--tasks", "mini-backend:validation:1", "--consent", str(terms), "--ask-name")
            with game(Path(folder, "asked"), *asked) as address:
                play(browser, address, options.output)
            pages = ("--tasks", "mini-frontend-plain:validation:1", "--agent", "page-mediocre")
            with game(Path(folder, "pages"), *pages, "--as", "collaborator") as address:
                reply(browser, address, options.output / "play-collaborator.png")
        browser.close()


@contextmanager
def viewer(*runs: Path) -> Iterator[tuple[str, Callable[..., list[Row]]]]:
    """A viewer of the runs: its address with the token, and a function that lists dialogues."""
    with serving("view", *map(str, runs), "--no-browser", "--json") as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]

        def rows(**fields: object) -> list[Row]:
            start, _, token = address.partition("/?token=")
            headers = {"Authorization": f"Bearer {token}"}
            request = urllib.request.Request(f"{start}/api/dialogues?{urlencode(fields)}", headers=headers)  # noqa: S310
            with urllib.request.urlopen(request) as answer:  # noqa: S310
                found: list[Row] = json.load(answer)["dialogues"]
            return found or sys.exit(f"no dialogue with {fields}")

        yield address, rows


@contextmanager
def game(folder: Path, *options: str) -> Iterator[str]:
    """A game for one player: its address."""
    with serving("play", "--web", "-o", str(folder), *options) as process:
        assert process.stderr is not None
        yield process.stderr.readline().split()[-1]


@contextmanager
def serving(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A command that serves until the block ends."""
    command = [sys.executable, "-m", "sweetrl", *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            yield process
        finally:
            process.terminate()


def take(
    browser: Browser, address: str, rows: Callable[..., list[Row]], run: str, pages: str, folder: Path
) -> None:
    """A picture of each page of the viewer; `run` and `pages` are the titles of the runs."""
    start = f"http://{urlsplit(address).netloc}"
    worst = next(row for row in rows(sort="hurt") if 4 <= row["turns"] <= 6)
    branched = next(row for row in rows(sort="best", run=f"{run}/seed-0") if row["id"].endswith("#0"))
    page_row = rows(sort="reward", run=pages)[0]  # where there is a difference to see
    other = next(row for row in rows(sort="best", task=worst["task"]) if row["run"] != worst["run"])
    both = {"left": worst["run"], "id": worst["id"], "right": other["run"], "other": other["id"]}

    def dialogue(row: Row, **more: object) -> str:
        return f"/dialogue?{urlencode({'of': row['run'], 'id': row['id'], **more})}"

    def candidates(page: Page) -> None:
        page.locator(".chat details", has=page.locator(".candidates")).first.locator("summary").click()

    def agents_page(page: Page) -> None:
        page.locator(".answer details", has=page.locator("iframe")).locator("summary").click()
        page.locator(".agents-page").scroll_into_view_if_needed()
        page.frame_locator(".agents-page").locator("body *").first.wait_for()

    def at(selector: str) -> Callable[[Page], None]:
        return lambda page: page.locator(selector).first.evaluate("each => each.scrollIntoView()")

    pictures: list[tuple[str, str, Callable[[Page], None] | None]] = [
        ("list", "/?sort=hurt", None),
        ("dialogue", dialogue(worst, sort="hurt", at=2), None),
        ("candidates", dialogue(branched), candidates),
        ("hidden", dialogue(worst, hidden=1), at(".answer")),
        ("slider", dialogue(page_row, hidden=1), at(".answer")),
        ("page", dialogue(page_row), agents_page),
        ("compare", f"/compare?{urlencode(both)}", None),
        ("metrics", "/metrics", None),
        ("phone", "/?sort=hurt", None),
    ]
    for name, path, act in pictures:
        size = (390, 780) if name == "phone" else (1200, 900)
        page = tab(browser, address, *size, dark=name == "hidden")
        page.goto(start + path)
        if act is not None:
            act(page)
        page.screenshot(path=folder / f"viewer-{name}.png")
        page.context.close()


def tab(browser: Browser, address: str, width: int, height: int, *, dark: bool = False) -> Page:
    """A tab that has the cookie of the server."""
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    page.goto(address)
    return page


def click(page: Page, name: str) -> None:
    """Press a button that leads to the next page of a game."""
    with page.expect_navigation():
        page.get_by_role("button", name=name).click()


def play(browser: Browser, address: str, folder: Path) -> None:
    """Pictures of what a player agrees to, and of a finished game."""
    page = tab(browser, address, 1000, 900)
    page.check("[name=consents]")
    page.fill("[name=name]", "Ada")
    page.screenshot(path=folder / "play-consent.png", clip={"x": 0, "y": 0, "width": 1000, "height": 460})
    click(page, "Start")
    for question in ("What about negative numbers?", "Is there a maximum?"):
        page.fill("textarea", question)
        click(page, "Send")
        page.locator(".chat .collaborator").last.wait_for()
        page.locator("textarea").wait_for()
    page.fill("textarea", "def score(n):\n    return abs(n)")
    click(page, "Hand in")
    page.locator(".outcome").wait_for()
    page.screenshot(path=folder / "play-debrief.png")


def reply(browser: Browser, address: str, path: Path) -> None:
    """A picture of a person who sees the wanted page and replies to an agent."""
    page = tab(browser, address, 1200, 800)
    click(page, "Start")
    page.fill("textarea", "The header should be red, and the text on the left.")
    for frame in page.frames[1:]:
        frame.locator("header").wait_for()
    page.screenshot(path=path)


if __name__ == "__main__":
    main()
