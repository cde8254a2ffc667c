"""Pages that are remembered."""

import asyncio

import pytest
from msgspec.structs import replace

from sweetrl.browser import Box, PageError, RememberingRenderer, Shot


class CountingRenderer:
    """Takes a while, counts, and refuses the page `bad`."""

    def __init__(self) -> None:
        self.rendered: list[str] = []
        self.closed = False

    async def render(self, html: str) -> Shot:
        self.rendered.append(html)
        await asyncio.sleep(0.01)
        if html == "bad":
            raise PageError("bad")
        return Shot(png=html.encode() * 10, width=1, height=1)

    async def close(self) -> None:
        self.closed = True


def test_a_page_is_rendered_once() -> None:
    async def ask() -> tuple[list[Shot], list[str]]:
        inner = CountingRenderer()
        memory = RememberingRenderer(inner)
        at_once = await asyncio.gather(*(memory.render(page) for page in "abab"))
        return [*at_once, await memory.render("a")], inner.rendered

    shots, rendered = asyncio.run(ask())
    assert rendered == ["a", "b"]
    assert [shot.png[:1] for shot in shots] == [b"a", b"b", b"a", b"b", b"a"]


def test_what_was_not_asked_for_the_longest_is_forgotten_first() -> None:
    async def ask() -> list[str]:
        inner = CountingRenderer()
        memory = RememberingRenderer(inner, capacity_bytes=20)
        for page in "abacab":
            await memory.render(page)
        return inner.rendered

    assert asyncio.run(ask()) == ["a", "b", "c", "b"]


def test_a_page_of_many_elements_takes_room_however_small_its_picture() -> None:
    box = Box(tag="p", x=0, y=0, width=1, height=1, text="word" * 500)

    class CrowdedRenderer(CountingRenderer):
        async def render(self, html: str) -> Shot:
            return replace(await super().render(html), boxes=(box,) * 100, blocked=("x" * 1000,) * 10)

    async def ask() -> list[str]:
        inner = CrowdedRenderer()
        memory = RememberingRenderer(inner, capacity_bytes=1_000_000)
        for page in "aaba":
            await memory.render(page)
        return inner.rendered

    # One takes some 900 KB: there is room for one only.
    assert asyncio.run(ask()) == ["a", "b", "a"]


def test_a_failure_is_not_remembered() -> None:
    async def ask() -> list[str]:
        inner = CountingRenderer()
        memory = RememberingRenderer(inner)
        for _ in range(2):
            with pytest.raises(PageError):
                await memory.render("bad")
        return inner.rendered

    assert asyncio.run(ask()) == ["bad", "bad"]


def test_a_caller_who_gives_up_does_not_take_the_picture_from_another() -> None:
    async def ask() -> Shot:
        memory = RememberingRenderer(CountingRenderer())
        impatient = asyncio.create_task(memory.render("a"))
        patient = asyncio.create_task(memory.render("a"))
        await asyncio.sleep(0)
        impatient.cancel()
        return await patient

    assert asyncio.run(ask()).png == b"a" * 10


def test_closing_it_closes_the_renderer_behind_it() -> None:
    inner = CountingRenderer()
    asyncio.run(RememberingRenderer(inner).close())
    assert inner.closed
