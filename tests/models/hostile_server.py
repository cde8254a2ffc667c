"""A real HTTP server on loopback that speaks OpenAI's chat protocol and misbehaves on purpose.

Its good replies depend on the request alone, so that runs with and without faults can be compared:

    async with HostileServer(rate=0.3, seed=1) as server: ...     in the loop of a test
    with in_thread(HostileServer(rate=0.3)) as server: ...        beside commands that run a loop of their own
"""

import asyncio
import contextlib
import itertools
import json
import random
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import StrEnum
from typing import Any

from sweetrl.seeds import derive_seed

FAULT_TEXT = "FAULT-TEXT"
"""Part of everything a fault says, so that a test can prove that none of it reached the data."""
HUGE = 10_000_000
DEEP = b"[" * 100_000 + b"]" * 100_000


class Trouble(StrEnum):
    """What the server can do wrong."""

    RATE_LIMIT = "429"
    RATE_LIMIT_SECONDS = "429, Retry-After: 0.01"
    RATE_LIMIT_DATE = "429, Retry-After: now"
    SERVER_ERROR = "500"
    UNAVAILABLE = "503"
    RESET = "reset before the reply"
    RESET_IN_BODY = "reset in the middle of the body"
    TRUNCATED = "closed in the middle of the body"
    HANG = "no reply at all"
    DRIP = "one byte at a time, without end"
    BAD_JSON = "not JSON"
    NO_CHOICES = "no choices"
    NO_CONTENT = "no content"
    CONTENT_FILTER = "stopped by a content filter"
    PROMPT_FILTERED = "400, content filter"
    EMPTY = "a reply without a word"
    HUGE = "10 MB with a length"
    HUGE_CHUNKED = "10 MB in chunks"
    STRAY = "a second reply that nobody asked for"
    CONTEXT_LENGTH = "400, context length"
    DEEP_JSON = "JSON 100,000 levels deep"
    DEEP_ERROR = "500 with JSON 100,000 levels deep"
    NEGATIVE_USAGE = "fewer tokens used than none"
    GIANT_USAGE = "more tokens used than there are atoms"
    WRONG_TYPES = "texts where numbers should be"
    UNAUTHORIZED = "401"
    NO_MODEL = "404"
    NO_QUOTA = "429, no quota"
    BAD_REQUEST = "400"


TRANSIENT = (
    Trouble.RATE_LIMIT,
    Trouble.RATE_LIMIT_SECONDS,
    Trouble.RATE_LIMIT_DATE,
    Trouble.SERVER_ERROR,
    Trouble.UNAVAILABLE,
    Trouble.RESET,
    Trouble.RESET_IN_BODY,
    Trouble.TRUNCATED,
    Trouble.HANG,
    Trouble.DRIP,
    Trouble.BAD_JSON,
    Trouble.NO_CHOICES,
    Trouble.NO_CONTENT,
    Trouble.CONTENT_FILTER,
    Trouble.HUGE,
    Trouble.HUGE_CHUNKED,
    Trouble.STRAY,
    Trouble.CONTEXT_LENGTH,
    Trouble.DEEP_JSON,
    Trouble.DEEP_ERROR,
    Trouble.NEGATIVE_USAGE,
    Trouble.GIANT_USAGE,
    Trouble.WRONG_TYPES,
)
"""What a patient client survives, if it does not happen too often in a row."""

_ERRORS: dict[Trouble, tuple[int, str, dict[str, str]]] = {
    Trouble.RATE_LIMIT: (429, "rate_limit_exceeded", {}),
    Trouble.RATE_LIMIT_SECONDS: (429, "rate_limit_exceeded", {"Retry-After": "0.01"}),
    Trouble.RATE_LIMIT_DATE: (429, "rate_limit_exceeded", {"Retry-After": "date"}),
    Trouble.SERVER_ERROR: (500, "server_error", {}),
    Trouble.UNAVAILABLE: (503, "overloaded", {}),
    Trouble.CONTEXT_LENGTH: (400, "context_length_exceeded", {}),
    Trouble.PROMPT_FILTERED: (400, "content_filter", {}),
    Trouble.UNAUTHORIZED: (401, "invalid_api_key", {}),
    Trouble.NO_MODEL: (404, "model_not_found", {}),
    Trouble.NO_QUOTA: (429, "insufficient_quota", {}),
    Trouble.BAD_REQUEST: (400, "invalid_value", {}),
}


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    target: str
    headers: dict[str, str]
    body: dict[str, Any]


def plain_reply(body: dict[str, Any], sample: int) -> str:
    """A text that is different for every chat, seed and sample."""
    said = json.dumps(body["messages"], sort_keys=True)
    return f"reply {derive_seed(said, body.get('seed'), sample)} ok"


@dataclass
class HostileServer:
    """A share `rate` of the requests meets one of `troubles`; `script` says what the first ones meet."""

    rate: float = 0.0
    seed: int = 0
    troubles: Sequence[Trouble] = TRANSIENT
    script: Iterable[Trouble | None] = ()
    reply: Callable[[dict[str, Any], int], str] = plain_reply
    objects: Callable[[dict[str, Any]], Trouble | None] = lambda _: None
    """What a request meets each time, by what it says."""
    latency: Callable[[random.Random], float] = lambda _: 0.0
    max_samples: int | None = None
    """The most choices in one reply."""
    refuse_samples: bool = False
    """Answer 400 when asked for more than one sample."""
    max_parallel: int | None = None
    """Answer 429 when more requests than that are under way."""
    allowed: int | None = None
    """Requests beyond this number wait until more are allowed, or all (None)."""
    while_stuck: Callable[[], None] = lambda: None
    """Called when a client has begun to wait for a reply that never ends."""
    tls: ssl.SSLContext | None = None
    listen: int = 0
    """The port, if it must be a certain one."""
    asked: list[Asked] = field(default_factory=list)
    met: Counter[Trouble] = field(default_factory=Counter)
    connections: int = 0
    parallel: int = 0
    peak: int = 0

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)
        self._script = iter(self.script)
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked_once = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> "HostileServer":
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.listen, backlog=2048, ssl=self.tls
        )
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until_asked(self) -> None:
        """Wait for the first request."""
        await self._asked_once.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._answer(await _read_request(reader), writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        self.asked.append(asked)
        self._asked_once.set()
        self.parallel += 1
        self.peak = max(self.peak, self.parallel)
        number = len(self.asked)
        try:
            while self.allowed is not None and number > self.allowed:  # noqa: ASYNC110  set by other threads
                await asyncio.sleep(0.01)
            trouble = self._trouble(asked)
            latency = self.latency(self._draw)
            if latency > 0:
                await asyncio.sleep(latency)
            if trouble is None:
                writer.write(_response(200, self._completion(asked.body)))
            else:
                self.met[trouble] += 1
                return await self._misbehave(trouble, asked, writer)
        finally:
            self.parallel -= 1
        await writer.drain()
        return True

    def _trouble(self, asked: Asked) -> Trouble | None:
        if (objection := self.objects(asked.body)) is not None:
            return objection
        if self.max_parallel is not None and self.parallel > self.max_parallel:
            return Trouble.RATE_LIMIT
        if self.refuse_samples and asked.body.get("n", 1) > 1:
            return Trouble.BAD_REQUEST
        scripted = next(self._script, False)
        if scripted is not False:
            return scripted
        return self._draw.choice(self.troubles) if self._draw.random() < self.rate else None

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        count = min(body.get("n", 1), self.max_samples or body.get("n", 1))
        texts = [self.reply(body, sample) for sample in range(count)]
        choices = [_choice(index, text, logprobs="logprobs" in body) for index, text in enumerate(texts)]
        prompt = sum(len(str(message["content"]).split()) for message in body.get("messages", ()))
        written = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
        return {
            "id": "x",
            "object": "chat.completion",
            "model": body["model"],
            "choices": choices,
            "usage": usage,
        }

    async def _misbehave(self, trouble: Trouble, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        if trouble in _ERRORS:
            writer.write(_error(trouble, asked))
            return True
        good = _response(200, self._completion(asked.body))
        match trouble:
            case Trouble.RESET:
                _reset(writer)
            case Trouble.RESET_IN_BODY:
                writer.write(good[:-20])
                await writer.drain()
                await asyncio.sleep(0.005)
                _reset(writer)
            case Trouble.TRUNCATED:
                writer.write(good[:-20])
            case Trouble.HANG:
                self.while_stuck()
                await asyncio.sleep(3600)
            case Trouble.DRIP:
                await _drip(writer, self.while_stuck)
            case Trouble.HUGE_CHUNKED:
                await _send_huge_chunks(writer)
            case Trouble.STRAY:
                writer.write(good + _response(200, _saying(FAULT_TEXT)))
            case _:
                writer.write(_unusable(trouble))
                await writer.drain()
        return trouble not in (Trouble.RESET, Trouble.RESET_IN_BODY, Trouble.TRUNCATED)


async def _read_request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))))
    return Asked(first.split()[1], headers, body)


def _choice(index: int, text: str, *, logprobs: bool) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": index, "finish_reason": "stop"}
    choice["message"] = {"role": "assistant", "content": text}
    if logprobs:
        choice["logprobs"] = {"content": [{"token": word, "logprob": -0.5} for word in text.split()]}
    return choice


def _saying(text: str | None, finish: str = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"content": text}, "finish_reason": finish}]}


def _response(status: int, body: object, **headers: str) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def _error(trouble: Trouble, asked: Asked) -> bytes:
    status, code, headers = _ERRORS[trouble]
    # Careless servers repeat the caller's key.
    said = f"{FAULT_TEXT}\n{code}: {asked.headers.get('authorization')}"
    if "Retry-After" in headers:
        headers = {"Retry-After": headers["Retry-After"].replace("date", formatdate(usegmt=True))}
    return _response(status, {"error": {"message": said, "code": code}}, **headers)


def _unusable(trouble: Trouble) -> bytes:
    bodies: dict[Trouble, object] = {
        Trouble.BAD_JSON: f'{{"choices": [{{"message": {{"content": "{FAULT_TEXT}'.encode(),
        Trouble.NO_CHOICES: {"choices": [], "error": {"message": FAULT_TEXT}},
        Trouble.NO_CONTENT: _saying(None),
        Trouble.EMPTY: _saying(" \n"),
        Trouble.CONTENT_FILTER: _saying(FAULT_TEXT, "content_filter"),
        Trouble.HUGE: b" " * HUGE + json.dumps(_saying(FAULT_TEXT)).encode(),
        Trouble.DEEP_JSON: b'{"choices": [], "error": %b}' % DEEP,
        Trouble.DEEP_ERROR: DEEP,
        Trouble.NEGATIVE_USAGE: _saying(FAULT_TEXT) | {"usage": {"prompt_tokens": -5}},
        Trouble.GIANT_USAGE: _saying(FAULT_TEXT) | {"usage": {"completion_tokens": 10**100}},
        Trouble.WRONG_TYPES: _saying(FAULT_TEXT) | {"usage": {"prompt_tokens": "many"}},
    }
    return _response(500 if trouble is Trouble.DEEP_ERROR else 200, bodies[trouble])


async def _send_huge_chunks(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    for _ in range(HUGE // 0x10000):
        writer.write(chunk)
        await writer.drain()
    end = json.dumps(_saying(FAULT_TEXT)).encode()
    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(end), end))


async def _drip(writer: asyncio.StreamWriter, while_stuck: Callable[[], None]) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    for sent in itertools.count():
        if writer.is_closing():
            return
        if sent == 3:
            while_stuck()
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextlib.contextmanager
def in_thread(server: HostileServer) -> Iterator[HostileServer]:
    """Run `server` in a thread with a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        yield server
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
