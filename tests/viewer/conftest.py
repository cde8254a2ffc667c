"""A real browser for the tests of the viewer."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from sweetrl.browser import WebAssets, find_browser
from sweetrl.browser.chromium import write_font_configuration
from sweetrl.errors import UsageError


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        program = find_browser()
    except UsageError as error:
        pytest.skip(str(error))
    home = tmp_path_factory.mktemp("home")
    fonts = write_font_configuration(home, WebAssets().fonts)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "FONTCONFIG_FILE": str(fonts)}
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"], env=environment
        )
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab in which nothing may go wrong and nothing may leave the server."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    trouble: list[str] = []
    opened.on(
        "console", lambda said: trouble.append(said.text) if said.type in ("error", "warning") else None
    )
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("dialog", lambda dialog: trouble.append(f"dialog {dialog.message}"))
    asked: set[str] = set()
    opened.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    yield opened
    assert asked <= {urlsplit(opened.url).netloc}
    assert trouble == []
    context.close()
