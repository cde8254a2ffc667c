"""The published pages: all render, and always to the same pictures and measures."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sweetrl.browser import BrowserPool, Shot, WebAssets
from sweetrl.browser.requests import PAGE_ADDRESS
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.sources import load_tasks

FOREIGN_LOGO = "https://tailwindui.com/img/logos/workflow-mark-indigo-600.svg"


@pytest.fixture(scope="module")
def pages(colbench_dir: Path) -> list[str]:
    secrets = [task.secret for task in load_tasks(colbench_dir / "frontend_dev.jsonl").values()]
    return [secret.page for secret in secrets if isinstance(secret, FrontendSecret)]


async def shots(pages: list[str]) -> AsyncIterator[Shot]:
    """From browsers of their own, started and ended here."""
    async with BrowserPool() as renderer:
        for page in pages:
            yield await renderer.render(page)


async def fingerprints(pages: list[str]) -> list[str]:
    """All of a shot in one hash: the picture, the boxes, what was blocked, the warnings."""
    return [hashlib.sha256(msgspec.msgpack.encode(shot)).hexdigest() async for shot in shots(pages)]


def test_two_browsers_draw_and_measure_the_same(
    pages: list[str], run: Any, chromium: None, tailwind: WebAssets
) -> None:
    few = pages[::17][:30]
    once, again = run(fingerprints(few)), run(fingerprints(few[::-1]))
    assert again[::-1] == once
    assert len(set(once)) == len(few)


def test_a_page_looks_the_same_in_a_new_document_and_in_one_that_showed_another(
    pages: list[str], run: Any, chromium: None, tailwind: WebAssets
) -> None:
    async def both() -> list[tuple[Shot, Shot]]:
        async with BrowserPool() as renderer:
            compared = []
            for page in pages[3::60]:
                await renderer.render("<base><p>After this, a new document.")
                compared.append((await renderer.render(page), await renderer.render(page)))
            return compared

    assert all(new == used for new, used in run(both()))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_all_published_pages_are_drawn_and_measured_the_same_in_any_order_and_browser(
    pages: list[str], run: Any, chromium: None, tailwind: WebAssets
) -> None:
    assert len(pages) == 500
    once, again = run(fingerprints(pages)), run(fingerprints(pages[::-1]))
    assert again[::-1] == once


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_published_pages_lack_nothing_of_the_web_but_a_logo(
    pages: list[str], run: Any, chromium: None, tailwind: WebAssets
) -> None:
    async def collect() -> list[tuple[int, int, tuple[str, ...], tuple[str, ...]]]:
        return [(shot.width, shot.height, shot.blocked, shot.warnings) async for shot in shots(pages)]

    found = run(collect())
    blocked = {address for each in found for address in each[2]}
    assert {address for address in blocked if not address.startswith(PAGE_ADDRESS)} == {FOREIGN_LOGO}
    assert all(50 < height < 4000 for _, height, _, _ in found)
