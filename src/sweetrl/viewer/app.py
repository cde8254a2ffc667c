"""The application: pages for people under `/`, the same as JSON under `/api/` (docs/viewer.md)."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from sweetrl.errors import SweetError, UsageError
from sweetrl.experiments.layout import SCREENSHOTS
from sweetrl.experiments.run_folder import read_picture
from sweetrl.outputs import find_page
from sweetrl.report.markup import element
from sweetrl.report.pictures import png_size
from sweetrl.types import Annotation
from sweetrl.viewer.annotations import NOTE_CHARACTERS, append_annotation
from sweetrl.viewer.dialogues import Dialogue, find_dialogue
from sweetrl.viewer.framed import FRAME_HEADERS, framed
from sweetrl.viewer.guard import App, Guard
from sweetrl.viewer.metrics import Metrics, as_json
from sweetrl.viewer.pages.compare import compare_page
from sweetrl.viewer.pages.dialogue import Around, dialogue_page
from sweetrl.viewer.pages.frame import address, page, static_files
from sweetrl.viewer.pages.listing import dialogue_address, list_page, query_fields
from sweetrl.viewer.pages.results import metrics_page
from sweetrl.viewer.queries import PAGE, Query, Reader, Row
from sweetrl.viewer.requests import is_on, list_query, required, whole_number
from sweetrl.viewer.secrets import Hidden, Secrets

OTHERS = 30
"""Other dialogues on the same task that a page links to."""
LARGEST_POST = 1_000_000
"""Bytes. Any message that a game takes fits in."""


class NotThereError(SweetError):
    """What a request asks for is not in the index."""


class _Mark(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request that annotates a turn."""

    run: str
    episode_id: str
    turn: int
    mark: str
    note: str = ""


@dataclass(frozen=True)
class Viewer:
    """What answers requests."""

    reader: Reader
    secrets: Secrets
    metrics: Metrics
    author: str = ""
    """Of annotations."""

    def application(self, *, hosts: frozenset[str], token: str | None, once: str | None = None) -> App:
        """Behind its guard, ready for a server. `once` opens it a single time, in place of the token."""
        pages = {
            "/": self._list,
            "/dialogue": self._dialogue,
            "/compare": self._compare,
            "/metrics": self._metrics,
            "/picture": self._picture,
            "/page": self._agents_page,
            "/api/state": self._api_state,
            "/api/runs": self._api_runs,
            "/api/dialogues": self._api_dialogues,
            "/api/dialogue": self._api_dialogue,
            "/api/metrics": self._api_metrics,
        }
        routes = [Route(path, _answering(answer)) for path, answer in pages.items()]
        routes.append(Route("/api/annotations", self._annotate, methods=["POST"]))
        return Guard(starlette(routes), hosts=hosts, tokens=[token] if token else [], once=once)

    # -------- pages

    def _list(self, request: Request) -> Response:
        query, critics = list_query(request.query_params), list(self.reader.critics())
        # Named in addresses only where there are several.
        query = replace(query, critic=self.reader.critic_of(query) if len(critics) > 1 else "")
        rows, total = self.reader.page(query)
        about = (self.reader.runs(), self.reader.endings(), self.reader.unreadable_lines(), critics)
        return HTMLResponse(list_page(query, rows, total, *about))

    def _dialogue(self, request: Request) -> Response:
        fields = request.query_params
        run, name = required(fields, ("of", "id"))
        version = self.reader.version()
        dialogue = self._found(run, name)
        show = is_on(fields, "hidden")
        query, place = list_query(fields), whole_number(fields, "at")
        critic = fields.get("critic", "")
        near = self._near(query, place, ("hidden", "1" if show else ""), ("critic", critic))
        seen = dialogue.judged_by(critic)
        around = Around(
            here=_changed(request, hidden="" if show else "1"),
            list_address=address("/", *query_fields(query, number=max(0, (place or 1) - 1) // PAGE)),
            previous=near[0],
            next=near[1],
            others=self._others(dialogue),
            show_hidden=show,
            author=self.author,
            critics={
                each: _changed(request, critic=each) for each in dialogue.critics if each not in seen.critics
            },
            version=version,
        )
        return HTMLResponse(dialogue_page(seen, self._hidden(dialogue, show=show), around))

    def _near(self, query: Query, place: int | None, *more: tuple[str, str]) -> tuple[str, str]:
        """The dialogues before and after the one at `place` of the list, which counts from 1."""
        if not place:
            return "", ""
        first = max(0, place - 2)
        rows = dict(enumerate(self.reader.rows(query, start=first, count=3), first))
        found = [
            dialogue_address(rows[number], query, number, *more) if number in rows else ""
            for number in (place - 2, place)
        ]
        return found[0], found[1]

    def _others(self, dialogue: Dialogue) -> list[Row]:
        rows = self.reader.rows(Query(task=dialogue.episode.task_id), start=0, count=OTHERS + 1)
        here = (dialogue.run, dialogue.episode.id)
        # One from another run first: that is what most people compare with.
        return sorted(
            (row for row in rows if (row.run, row.id) != here), key=lambda row: row.run == dialogue.run
        )

    def _compare(self, request: Request) -> Response:
        fields = request.query_params
        left, name, right, other = required(fields, ("left", "id", "right", "other"))
        first, second = self._found(left, name), self._found(right, other)
        if first.episode.task_id != second.episode.task_id:
            raise UsageError("these dialogues are on different tasks; compare two on the same one")
        show = is_on(fields, "hidden")
        here = _changed(request, hidden="" if show else "1")
        # By one critic, if there is one that judged both.
        critic = next((each for each in first.critics if each in second.critics), "")
        sides = (first.judged_by(critic), second.judged_by(critic))
        return HTMLResponse(compare_page(*sides, self._hidden(first, show=show), here, show_hidden=show))

    def _metrics(self, _: Request) -> Response:
        return HTMLResponse(metrics_page(self.metrics.contents()))

    def _picture(self, request: Request) -> Response:
        """A screenshot: a PNG file of the run, named by its hash. Nothing else is ever sent from a folder."""
        run, name = required(request.query_params, ("of", "name"))
        known = self.reader.run_id(run)
        png = None if known is None else read_picture(known[1] / SCREENSHOTS, name)
        if png is None or png_size(png) is None:
            raise NotThereError("there is no such picture")
        return Response(png, media_type="image/png", headers={"cache-control": "private, max-age=3600"})

    def _agents_page(self, request: Request) -> Response:
        """The page that an agent answered with, for a frame of ours in which nothing runs; for nobody else."""
        dialogue = self._found(*required(request.query_params, ("of", "id")))
        html = find_page(dialogue.episode.answer or "")
        if html is None or request.headers.get("sec-fetch-dest") != "iframe":
            raise NotThereError("pages of agents are shown inside of their dialogues only")
        return HTMLResponse(framed(html), headers=FRAME_HEADERS)

    def _found(self, run: str, name: str) -> Dialogue:
        dialogue = find_dialogue(self.reader, run, name)
        if dialogue is None:
            raise NotThereError(f"there is no dialogue {name[:100]!r} in the run {run[:100]!r}")
        return dialogue

    def _hidden(self, dialogue: Dialogue, *, show: bool) -> Hidden | None:
        return self.secrets.of(dialogue.episode.task_id) if show else None

    # -------- JSON

    def _api_state(self, _: Request) -> Response:
        total = sum(run.dialogues for run in self.reader.runs())
        return answer_json({"version": self.reader.version(), "dialogues": total})

    def _api_runs(self, _: Request) -> Response:
        return answer_json({"runs": self.reader.runs()})

    def _api_dialogues(self, request: Request) -> Response:
        query = list_query(request.query_params)
        rows, total = self.reader.page(query)
        critics = list(self.reader.critics())
        return answer_json({"total": total, "page": query.page, "critics": critics, "dialogues": rows})

    def _api_dialogue(self, request: Request) -> Response:
        run, name = required(request.query_params, ("of", "id"))
        dialogue = self._found(run, name)
        show = is_on(request.query_params, "hidden")
        return answer_json(_as_json(dialogue, self._hidden(dialogue, show=show), show=show))

    def _api_metrics(self, _: Request) -> Response:
        return answer_json({"runs": as_json(self.metrics.contents())})

    # -------- annotations

    async def _annotate(self, request: Request) -> Response:
        body = await read_json_body(request)
        return await run_in_threadpool(_answered, partial(self._keep, body), request)

    def _keep(self, body: bytes, _: Request) -> Response:
        try:
            mark = msgspec.json.decode(body, type=_Mark)
            annotation = msgspec.convert(
                {
                    "episode_id": mark.episode_id,
                    "task_id": mark.episode_id.rpartition("#")[0],
                    "turn": mark.turn,
                    "mark": mark.mark,
                    "note": mark.note[:NOTE_CHARACTERS],
                    "author": self.author,
                    "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                },
                Annotation,
            )
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"not an annotation: {error}") from None
        dialogue = self._found(mark.run, mark.episode_id)
        if annotation.turn >= len(dialogue.episode.turns):
            raise UsageError(f"the dialogue has {len(dialogue.episode.turns)} turns, and no turn {mark.turn}")
        append_annotation(dialogue.folder, annotation)
        return answer_json(annotation)


# ---------------------------------------------------------------- requests and answers


async def read_json_body(request: Request) -> bytes:
    """What was posted, if it says that it is JSON: a form of another site cannot send that without asking first."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise HTTPException(415, "send application/json")
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_POST:
                raise HTTPException(413, f"too long; at most {LARGEST_POST:,} bytes are taken")
    except ClientDisconnect:
        raise HTTPException(400, "the request was broken off") from None
    return body


def starlette(routes: Sequence[Route]) -> Starlette:
    """An application with these routes and those of style, script and icon; its refusals are one line each."""
    return Starlette(routes=[*routes, *_static_routes()], exception_handlers={HTTPException: _refused})


def _static_routes() -> list[Route]:
    return [
        Route(f"/static/{name}", partial(_static, content, kind))
        for name, (content, kind) in static_files().items()
    ]


def _answering(answer: Callable[[Request], Response]) -> Callable[[Request], Any]:
    """The handler of a page; it runs in a thread of its own, because it reads files."""

    async def handle(request: Request) -> Response:
        return await run_in_threadpool(_answered, answer, request)

    return handle


def _answered(answer: Callable[[Request], Response], request: Request) -> Response:
    try:
        return answer(request)
    except NotThereError as error:
        return _failure(request, str(error), 404)
    except UsageError as error:
        return _failure(request, str(error), 400)
    except sqlite3.Error:
        return _failure(request, "the index is being built; try again in a moment", 503)


def _failure(request: Request, reason: str, status: int) -> Response:
    if request.url.path.startswith("/api/"):
        return answer_json({"error": reason}, status)
    back = element("p", element("a", "All dialogues", href="/"))
    said = element("p", f"{reason[:1].upper()}{reason[1:]}.")
    return HTMLResponse(page("Not shown", element("div", said, back, class_="empty")), status)


async def _refused(request: Request, error: Any) -> Response:
    if error.status_code in (404, 405):
        return _failure(request, "there is nothing at this address", 404)
    return _failure(request, error.detail, error.status_code)


def answer_json(value: Any, status: int = 200) -> Response:
    """Any records as JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def _static(content: bytes, kind: str, _: Request) -> Response:
    return Response(content, media_type=kind, headers={"cache-control": "no-cache"})


def _changed(request: Request, **fields: str) -> str:
    """The address of this page with other values of some fields."""
    pairs: Sequence[tuple[str, str]] = [
        (name, value) for name, value in request.query_params.multi_items() if name not in fields
    ]
    return address(request.url.path, *pairs, **fields)


def _as_json(dialogue: Dialogue, hidden: Hidden | None, *, show: bool) -> dict[str, Any]:
    verdict = dialogue.verdict
    if verdict is not None and not show:
        verdict = msgspec.structs.replace(verdict, checks=(), screenshots=None)
    parts = None if hidden is None else [part._asdict() for part in hidden.parts]
    return {
        "run": dialogue.run,
        "episode": dialogue.episode,
        "verdict": verdict,
        "credit": dialogue.credit,
        "candidates": dialogue.candidates,
        "values": dialogue.values,
        "annotations": dialogue.annotations,
        "hidden": parts,
    }
