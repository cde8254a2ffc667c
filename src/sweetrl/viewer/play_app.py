"""The application of `sweetrl play --web`: one page, and two requests that change something."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from sweetrl.errors import UsageError
from sweetrl.viewer.app import answer_json, read_json_body, static_routes
from sweetrl.viewer.games import Games, Player
from sweetrl.viewer.guard import TOKEN, App, Guard
from sweetrl.viewer.pages.play import play_page


class _Start(Struct, forbid_unknown_fields=True):
    name: str = ""
    consents: bool = False


class _Message(Struct, forbid_unknown_fields=True):
    text: str
    answer: bool = False


def play_application(games: Games, *, hosts: frozenset[str]) -> App:
    """The page of every player, found by their token."""

    def player_of(request: Request) -> Player:
        return games.players[request.scope[TOKEN]]

    async def show(request: Request) -> Response:
        player = player_of(request)
        await games.resume(player)
        return HTMLResponse(play_page(games.settings, player, games.game_of(player)))

    async def start(request: Request, body: _Start) -> None:
        await games.start(player_of(request), body.name, consents=body.consents)

    async def say(request: Request, body: _Message) -> None:
        await games.say(player_of(request), body.text, answer=body.answer)

    routes = [
        Route("/", show),
        Route("/api/start", _posting(_Start, start), methods=["POST"]),
        Route("/api/say", _posting(_Message, say), methods=["POST"]),
        *static_routes(),
    ]
    return Guard(Starlette(routes=routes), hosts=hosts, tokens=games.players)


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
