"""The application of `sweetrl play --web`: one page, replies as they come, and the requests that change something."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from sweetrl.errors import UsageError
from sweetrl.viewer.app import answer_json, read_json_body, starlette
from sweetrl.viewer.framed import FRAME_HEADERS, framed
from sweetrl.viewer.games import Games, Player
from sweetrl.viewer.guard import TOKEN, App, Guard
from sweetrl.viewer.pages.play import page_text, play_page

PROMPT_SECONDS = 0.2
"""How long a page waits for a reply before it is sent without."""


class _Start(Struct, forbid_unknown_fields=True):
    name: str = ""
    consents: bool = False


class _Message(Struct, forbid_unknown_fields=True):
    text: str
    answer: bool = False


class _Again(Struct, forbid_unknown_fields=True):
    pass


def play_application(games: Games, *, hosts: frozenset[str]) -> App:
    """The page of every player, found by their token."""

    def player_of(request: Request) -> Player:
        return games.players[request.scope[TOKEN]]

    async def show(request: Request) -> Response:
        player = player_of(request)
        games.proceed(player)
        if player.work is not None:  # what is ready at once is shown at once
            await asyncio.wait({player.work}, timeout=PROMPT_SECONDS)
        return HTMLResponse(play_page(games.settings, player, games.game_of(player)))

    async def show_page(request: Request) -> Response:
        player = player_of(request)
        html = page_text(player, games.game_of(player), request.query_params.get("name", ""))
        if html is None or request.headers.get("sec-fetch-dest") != "iframe":
            raise HTTPException(404)
        return HTMLResponse(await run_in_threadpool(framed, html), headers=FRAME_HEADERS)

    async def reply(request: Request) -> Response:
        return StreamingResponse(_as_it_comes(player_of(request)), media_type="text/event-stream")

    async def start(request: Request, body: _Start) -> None:
        await games.start(player_of(request), body.name, consents=body.consents)

    async def say(request: Request, body: _Message) -> None:
        games.say(player_of(request), body.text, answer=body.answer)
        games.proceed(player_of(request))

    async def ask_again(request: Request, _: _Again) -> None:
        player_of(request).failure = ""

    routes = [
        Route("/", show),
        Route("/page", show_page),
        Route("/api/start", _posting(_Start, start), methods=["POST"]),
        Route("/api/say", _posting(_Message, say), methods=["POST"]),
        Route("/api/again", _posting(_Again, ask_again), methods=["POST"]),
        Route("/api/reply", reply),
    ]
    return Guard(starlette(routes), hosts=hosts, tokens=games.players)


async def _as_it_comes(player: Player) -> AsyncIterator[bytes]:
    """What the other side says, as server-sent events: all of it so far, and `done` once the page has more."""
    while player.is_waiting:
        changed = player.changed
        yield b"data: %b\n\n" % msgspec.json.encode(player.heard)
        await changed.wait()
    yield b"event: done\ndata: {}\n\n"


def _posting(kind: type[Any], act: Callable[[Request, Any], Awaitable[None]]) -> Callable[[Request], Any]:
    """A handler that takes JSON of one kind; what is wrong with it is told in one line."""

    async def handle(request: Request) -> Response:
        try:
            body = msgspec.json.decode(await read_json_body(request), type=kind)
            await act(request, body)
        except (UsageError, msgspec.DecodeError, UnicodeDecodeError) as error:
            return answer_json({"error": str(error)}, 400)
        return answer_json({})

    return handle
