"""The renderers that ship, held to the contract."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from contracts.renderer import RendererContract
from sweetrl.browser import BrowserPool, RememberingRenderer, find_browser
from sweetrl.errors import UsageError
from sweetrl.protocols import Renderer


class TestBrowserPool(RendererContract):
    @pytest.fixture(autouse=True)
    def _needs_a_browser(self) -> None:
        pytest.importorskip("playwright", reason="showing pages needs the extra `browser`")
        try:
            find_browser()
        except UsageError as error:
            pytest.skip(str(error))

    def open(self) -> AbstractAsyncContextManager[Renderer]:
        return BrowserPool(workers=2)


class TestRememberingRenderer(TestBrowserPool):
    def open(self) -> AbstractAsyncContextManager[Renderer]:
        return self._remembering()

    @staticmethod
    @asynccontextmanager
    async def _remembering() -> AsyncIterator[Renderer]:
        async with BrowserPool() as pool:
            yield RememberingRenderer(pool)
