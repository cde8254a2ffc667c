"""A real HTTP server on loopback that tells log-probabilities of prompts as vLLM does, by models in this process."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from aiohttp import web

Entries = list[dict[str, Any] | None]


class LogprobServer:
    """Serves `models` by name; `change` has the last word on the entries of a reply."""

    def __init__(
        self, models: Mapping[str, Any], change: Callable[[Entries], Entries | None] = lambda each: each
    ) -> None:
        self.asked: list[dict[str, Any]] = []
        self._models = models
        self._change = change

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/v1/completions", self._complete)
        # Clients that went away are not waited for.
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port: int = self._runner.addresses[0][1]

    async def stop(self) -> None:
        await self._runner.cleanup()
        await asyncio.sleep(0.01)  # sockets are closed in the next turn of the loop

    async def _complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        if body["model"] not in self._models:
            return web.json_response({"error": {"message": "no such model"}}, status=404)
        entries = self._change(prompt_logprobs(self._models[body["model"]], body["prompt"]))
        return web.json_response({"choices": [{"text": "", "prompt_logprobs": entries}]})


@torch.no_grad()
def prompt_logprobs(model: Any, tokens: list[int]) -> Entries:
    """An entry for each token, by its id; none for the first."""
    found = model(torch.tensor([tokens])).logits[0].log_softmax(-1)
    told = [
        {str(token): {"logprob": float(found[at, token]), "rank": 1, "decoded_token": "?"}}
        for at, token in enumerate(tokens[1:])
    ]
    return [None, *told]


@contextmanager
def serving(
    models: Mapping[str, Any], change: Callable[[Entries], Entries | None] = lambda each: each
) -> Iterator[LogprobServer]:
    """The server, in a thread of its own for as long as the block lasts."""
    server, loop = LogprobServer(models, change), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(60)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
