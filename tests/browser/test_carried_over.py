"""A page on a tab that has shown others looks as it does in a new browser."""

from collections.abc import Iterable
from typing import Any

import pytest

from browser.carried_over import HONEST, LEAVING
from sweetrl.browser import BrowserPool, Shot, WebAssets


@pytest.fixture(scope="module")
def fresh(run: Any, chromium: None, tailwind: WebAssets) -> dict[str, Shot]:
    """Each honest page as the first one that a browser shows."""

    async def alone(page: str) -> Shot:
        async with BrowserPool() as renderer:
            return await renderer.render(page)

    return {name: run(alone(page)) for name, page in HONEST.items()}


async def differing(
    leaving: dict[str, str], honest: Iterable[str], fresh: dict[str, Shot]
) -> list[tuple[str, str]]:
    """Which honest page looks different after which other one, on one and the same tab."""
    async with BrowserPool() as renderer:
        found = []
        for left, page in leaving.items():
            for name in honest:
                await renderer.render(page)
                if await renderer.render(HONEST[name]) != fresh[name]:
                    found.append((left, name))
        return found


def test_nothing_of_a_page_shows_in_the_next(run: Any, fresh: dict[str, Shot]) -> None:
    assert run(differing(LEAVING, ("plain", "titled"), fresh)) == []


@pytest.mark.slow
def test_nothing_of_any_page_shows_in_any_other(run: Any, fresh: dict[str, Shot]) -> None:
    assert run(differing(LEAVING | HONEST, HONEST, fresh)) == []
