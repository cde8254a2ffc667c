"""What every renderer must do. Subclass `RendererContract`, name it `Test...`, and say how to open one."""

import asyncio
import struct
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from sweetrl.protocols import Renderer
from sweetrl.types import Shot

PAGE = "<html><body><h1>Title</h1><p style='color:red'>Words</p></body></html>"
OTHER = "<html><body><p>Other words</p></body></html>"


class RendererContract:
    """One test for each promise of the protocol."""

    def open(self) -> AbstractAsyncContextManager[Renderer]:
        """A renderer, closed in the end. Called once for each test."""
        raise NotImplementedError

    def ask(self, question: Callable[[Renderer], Coroutine[Any, Any, list[Shot]]]) -> list[Shot]:
        """What `question` gives with an open renderer."""

        async def run() -> list[Shot]:
            async with self.open() as renderer:
                return await question(renderer)

        return asyncio.run(run())

    def test_the_picture_is_a_png_of_the_size_that_it_is_said_to_have(self) -> None:
        async def question(renderer: Renderer) -> list[Shot]:
            return [await renderer.render(PAGE)]

        [shot] = self.ask(question)
        assert shot.png.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">II", shot.png[16:24]) == (shot.width, shot.height)

    def test_the_same_page_gives_the_same_bytes_and_another_page_others(self) -> None:
        async def question(renderer: Renderer) -> list[Shot]:
            return [await renderer.render(page) for page in (PAGE, OTHER, PAGE)]

        first, other, again = self.ask(question)
        assert first == again
        assert first.png != other.png

    def test_boxes_begin_with_the_body_and_name_earlier_boxes_as_parents(self) -> None:
        async def question(renderer: Renderer) -> list[Shot]:
            return [await renderer.render(PAGE)]

        [shot] = self.ask(question)
        assert [box.tag for box in shot.boxes] == ["body", "h1", "p"]
        assert [box.text for box in shot.boxes] == ["", "Title", "Words"]
        assert all(box.parent < index for index, box in enumerate(shot.boxes))

    def test_pages_asked_for_at_once_get_their_own_pictures(self) -> None:
        async def question(renderer: Renderer) -> list[Shot]:
            return list(await asyncio.gather(*(renderer.render(page) for page in (PAGE, OTHER) * 3)))

        shots = self.ask(question)
        assert [shot.boxes[1].text for shot in shots] == ["Title", "Other words"] * 3

    def test_it_can_be_closed_twice(self) -> None:
        async def question(renderer: Renderer) -> list[Shot]:
            shot = await renderer.render(PAGE)
            await renderer.close()
            await renderer.close()
            return [shot]

        assert len(self.ask(question)) == 1
