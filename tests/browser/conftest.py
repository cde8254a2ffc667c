"""Real browsers for the tests of this folder; skipped, with the reason, where there is none."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from sweetrl.browser import BrowserPool, Limits, Shot, WebAssets, find_browser
from sweetrl.errors import UsageError


@pytest.fixture(scope="session")
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Runs a coroutine in the one event loop that all browsers of the session live in."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="session")
def chromium() -> None:
    """Skips where no browser can be started."""
    pytest.importorskip("playwright", reason="showing pages needs the extra `browser`")
    try:
        find_browser()
    except UsageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def tailwind() -> WebAssets:
    """Skips where Tailwind is not installed."""
    assets = WebAssets()
    if not (assets.folder / "tailwindcss").is_dir():
        pytest.skip(
            f"no Tailwind CSS in {assets.folder}: scripts/install-web-assets, which needs npm, puts it there"
        )
    return assets


@pytest.fixture(scope="session")
def pool(run: Any, chromium: None) -> Iterator[BrowserPool]:
    """Two browsers that many tests share, hostile ones included.

    Patient: on a busy machine, a plain page must be shown within a quarter of the limit.
    """
    renderer = BrowserPool(workers=2, limits=Limits(seconds=12))
    yield renderer
    run(renderer.close())


@pytest.fixture(scope="session")
def render(run: Any, pool: BrowserPool) -> Callable[[str], Shot]:
    """The picture of a page."""
    return lambda html: run(pool.render(html))
