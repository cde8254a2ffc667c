"""`RememberingRenderer`: references are needed in every turn of every dialogue, and rendered once."""

import asyncio
from collections import OrderedDict

from sweetrl.protocols import Renderer
from sweetrl.types import Shot, digest

_BYTES_OF_A_BOX = 1000


class RememberingRenderer:
    """A `Renderer` in front of another: the same page is rendered once while it is remembered.

    Pages are known by the hash of their content. Callers that ask for the same page at the same time share one
    rendering. Failures are not remembered.
    """

    def __init__(self, renderer: Renderer, *, capacity_bytes: int = 256 << 20) -> None:
        """`capacity_bytes` bounds what is kept, about; pages not asked for the longest go first."""
        self._renderer = renderer
        self._capacity = capacity_bytes
        self._bytes = 0
        self._shots: OrderedDict[str, Shot] = OrderedDict()
        self._pending: dict[str, asyncio.Task[Shot]] = {}

    async def render(self, html: str) -> Shot:
        """See `Renderer`."""
        key = digest(html)
        if key in self._shots:
            self._shots.move_to_end(key)
            return self._shots[key]
        if key not in self._pending:
            self._pending[key] = asyncio.ensure_future(self._render(key, html))
        # Shielded: if one caller gives up, the others must still get the picture.
        return await asyncio.shield(self._pending[key])

    async def close(self) -> None:
        """Close the renderer behind it."""
        self._shots.clear()
        self._bytes = 0
        await self._renderer.close()

    async def _render(self, key: str, html: str) -> Shot:
        try:
            shot = await self._renderer.render(html)
        finally:
            del self._pending[key]
        self._shots[key] = shot
        self._bytes += _bytes_of(shot)
        while self._bytes > self._capacity:
            self._bytes -= _bytes_of(self._shots.popitem(last=False)[1])
        return shot


def _bytes_of(shot: Shot) -> int:
    """Approximate memory of a shot: a page of thousands of elements can have a tiny picture."""
    texts = [*(box.text for box in shot.boxes), *shot.blocked]
    return len(shot.png) + _BYTES_OF_A_BOX * len(shot.boxes) + 4 * sum(map(len, texts))
