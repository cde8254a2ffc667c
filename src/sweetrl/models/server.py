"""One OpenAI-compatible server: its connections, its concurrency limit and its retries.

Retries live here and nowhere else. A request that fails is tried again; a server to which there is no connection at
all for `patience` seconds is down (`EndpointDown`), and the run stops. One that is slow, or busy, is not.
"""

import asyncio
import os
import random
from collections.abc import Callable
from typing import TypeVar

import aiohttp

from sweetrl.errors import EndpointDown, ModelError, NoReplyError, UsageError
from sweetrl.models.concurrency import AdaptiveLimiter, Slot
from sweetrl.models.endpoints import EndpointOptions
from sweetrl.models.faults import Fault, fault_of, fault_of_status
from sweetrl.models.meter import Meter
from sweetrl.models.specification import EndpointUrl
from sweetrl.models.streaming import Stream
from sweetrl.models.transport import Reply, Transport

_T = TypeVar("_T")

MAX_DETAIL = 300
"""Characters of a server's own words that an error repeats."""
CHAT_PATH = "/chat/completions"


class Server:
    """Sends each request until it has a usable answer or no retries are left."""

    def __init__(self, url: EndpointUrl, options: EndpointOptions) -> None:
        self.url = url
        ceiling = options.max_concurrency
        self.limiter = AdaptiveLimiter(start=min(options.start_concurrency, ceiling), ceiling=ceiling)
        self._options = options
        self._secrets = sorted(url.secrets(), key=len, reverse=True)
        self._users = 0
        self._unreachable_since: float | None = None
        """When the first of the latest attempts to connect failed; None once the server has been heard of again."""
        try:
            self._transport = Transport(
                url.at(CHAT_PATH),
                headers_for(url),
                max_body=options.max_reply_bytes,
                connect_timeout=options.connect_timeout,
            )
        except ValueError as error:
            raise UsageError("the model's address is malformed") from error

    @property
    def closed(self) -> bool:
        """Whether its last user has left."""
        return self._transport.closed

    def join(self) -> "Server":
        """Use the server until `leave`."""
        self._users += 1
        return self

    async def leave(self) -> None:
        """Stop using the server; the last one to go closes the connections."""
        self._users -= 1
        if self._users == 0:
            await self._transport.close()

    async def post(
        self,
        body: bytes,
        read: Callable[[bytes], _T],
        meter: Meter,
        stream: Stream | None = None,
        *,
        path: str = CHAT_PATH,
    ) -> _T:
        """The result of `read` on the answer to `body`; `read` raises `Fault` if it cannot be used.

        `stream` hears the answer as it arrives.
        """
        faults: list[Fault] = []
        meter.asked = self.url.shown
        while True:
            try:
                answer = await self._attempt(body, read, stream, self.url.at(path))
            except Fault as fault:
                faults.append(fault)
                self._refuse_if_down(fault)
                if self._is_hopeless(faults):
                    raise self._error(faults) from None
            else:
                meter.requests += 1
                meter.trouble = ""
                return answer
            meter.retries += 1
            meter.trouble = self._trouble(faults[-1])
            await asyncio.sleep(self._pause(faults))

    async def _attempt(
        self, body: bytes, read: Callable[[bytes], _T], stream: Stream | None, address: str
    ) -> _T:
        async with self.limiter.slot() as slot:
            if self.closed:
                raise Fault("closed", "the model has been closed", final=True)
            started = asyncio.get_running_loop().time()
            try:
                if stream is not None:
                    stream.restart()
                async with asyncio.timeout(self._options.timeout):
                    heard = None if stream is None else stream.feed
                    reply = await self._transport.post(body, heard, address=address)
                self._unreachable_since = None
                answer = read(_content(reply))
            except (Fault, TimeoutError, aiohttp.ClientError) as error:
                raise self._noted(fault_of(error), slot) from None
            # A server that takes most of the time it has gets no more to do.
            if asyncio.get_running_loop().time() - started < self._options.timeout / 2:
                self.limiter.succeeded()
            return answer

    def _noted(self, fault: Fault, slot: Slot) -> Fault:
        if fault.overload:
            self.limiter.pushed_back(slot)
        if fault.unreachable and self._unreachable_since is None:
            self._unreachable_since = asyncio.get_running_loop().time()
        return fault

    def _patience_left(self) -> float:
        """Seconds until a server that cannot be reached counts as down."""
        since = self._unreachable_since
        waited = 0.0 if since is None else asyncio.get_running_loop().time() - since
        return self._options.patience - waited

    def _refuse_if_down(self, fault: Fault) -> None:
        if fault.unreachable and self._patience_left() <= 0:
            raise EndpointDown(
                self._presentable(f"{self.url.shown}: {fault.detail}")
                + f", for {self._options.patience:g} s; start the server and rerun the same command to resume"
            ) from None

    def _is_hopeless(self, faults: list[Fault]) -> bool:
        last = faults[-1]
        same = sum(fault.kind == last.kind for fault in faults)
        return (
            last.final
            or len(faults) >= self._options.attempts
            or (last.costly and same >= self._options.costly_attempts)
        )

    def _pause(self, faults: list[Fault]) -> float:
        """Exponential backoff with full jitter, on top of the delay that the server requested."""
        options = self._options
        longest = min(options.max_backoff, options.first_backoff * 2.0 ** (len(faults) - 1))
        asked = min(faults[-1].retry_after or 0.0, options.max_retry_after)
        pause = asked + random.uniform(0.0, longest)  # noqa: S311  not a secret
        return min(pause, max(self._patience_left(), 0.0)) if faults[-1].unreachable else pause

    def _error(self, faults: list[Fault]) -> ModelError:
        last = faults[-1]
        tries = f" ({len(faults)} attempts)" if len(faults) > 1 else ""
        advice = {
            "auth": f"; is {self.url.key_variable} set to a valid key?",
            "timeout": f" ({self._options.timeout:g} s)",
        }.get(last.kind, "")
        error = NoReplyError if last.by_words else ModelError
        return error(
            self._presentable(f"{last.kind}: {self.url.shown}: {last.detail}") + advice + tries,
            kind=last.kind,
        )

    def _trouble(self, fault: Fault) -> str:
        """Why a request is sent again, for people who wait for it."""
        if fault.kind == "connection":
            return f"no connection to {self.url.shown}, retrying"
        return self._presentable(f"{self.url.shown}: {fault.detail}")[:80] + ", retrying"

    def _presentable(self, text: str) -> str:
        """One line without secrets: servers echo keys in their complaints."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        line = " ".join(text.split())
        return line if len(line) <= MAX_DETAIL else line[: MAX_DETAIL - 1] + "…"


def _content(reply: Reply) -> bytes:
    if reply.status != 200:
        raise fault_of_status(reply)
    return reply.body


OFFICIAL_HEADERS = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Headers that only OpenAI's own service gets, with the environment variables they come from."""


def headers_for(url: EndpointUrl) -> dict[str, str]:
    """The headers of every request to `url`. Of the variables `OPENAI_*`, other servers get none."""
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "sweetrl",
    }
    if url.login is not None:
        headers["Authorization"] = f"Basic {url.login}"
    elif (key := url.key()) is not None:
        headers["Authorization"] = f"Bearer {key}"
    if url.official:
        given = {name: os.environ.get(variable, "").strip() for name, variable in OFFICIAL_HEADERS.items()}
        headers |= {name: value for name, value in given.items() if value}
    return headers
