"""The chat models that ship, held to the contract."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from contracts.chat_model import ChatModelContract, closing
from models.hostile_server import HostileServer
from sweetrl.models import open_model
from sweetrl.models.scripted import ScriptedModel
from sweetrl.protocols import ChatModel


class TestScriptedModel(ChatModelContract):
    def open(self) -> AbstractAsyncContextManager[ChatModel]:
        # Longer than a turn of the loop, so that the contract has something to cancel.
        return closing(ScriptedModel(lambda chat, seed: f"{chat[-1].text} {seed}", latency=0.01))


class TestModelBehindEndpoint(ChatModelContract):
    def open(self) -> AbstractAsyncContextManager[ChatModel]:
        return self._serve(HostileServer())

    @staticmethod
    @asynccontextmanager
    async def _serve(server: HostileServer) -> AsyncIterator[ChatModel]:
        async with server, closing(open_model(f"openai:test@{server.url}")) as model:
            yield model


class TestModelBehindEndpointThatGivesFewSamples(TestModelBehindEndpoint):
    def open(self) -> AbstractAsyncContextManager[ChatModel]:
        return self._serve(HostileServer(max_samples=3))


class TestModelBehindEndpointThatRefusesSeveralSamples(TestModelBehindEndpoint):
    def open(self) -> AbstractAsyncContextManager[ChatModel]:
        return self._serve(HostileServer(refuse_samples=True))
