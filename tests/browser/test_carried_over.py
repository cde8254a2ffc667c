"""A page on a tab that has shown others looks as it does in a new browser."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest

from browser.carried_over import HONEST, LEAVING
from sweetrl.browser import BrowserPool, Shot, WebAssets


@pytest.fixture(scope="module")
def fresh(run: Any, chromium: None, tailwind: WebAssets) -> Callable[[str], Shot]:
    """Gives each honest page as the first one that a browser shows."""

    async def alone(page: str) -> Shot:
        async with BrowserPool() as renderer:
            return await renderer.render(page)

    return cache(lambda name: run(alone(HONEST[name])))


async def differing(leaving: Mapping[str, str], wanted: Mapping[str, Shot]) -> list[tuple[str, str]]:
    """Which honest page looks different after which other one, on one and the same tab."""
    async with BrowserPool() as renderer:
        found = []
        for left, page in leaving.items():
            for name, shot in wanted.items():
                await renderer.render(page)
                if await renderer.render(HONEST[name]) != shot:
                    found.append((left, name))
        return found


def test_nothing_of_a_page_shows_in_the_next(run: Any, fresh: Callable[[str], Shot]) -> None:
    assert run(differing(LEAVING, {name: fresh(name) for name in ("plain", "titled")})) == []


@pytest.mark.slow
def test_nothing_of_any_page_shows_in_any_other(run: Any, fresh: Callable[[str], Shot]) -> None:
    assert run(differing(LEAVING | HONEST, {name: fresh(name) for name in HONEST})) == []
