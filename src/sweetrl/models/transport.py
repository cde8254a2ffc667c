"""HTTP requests to one server, through aiohttp: each gets one whole reply of limited size.

aiohttp alone would buffer a reply of any size, and would take bytes that arrived on an idle connection for the
answer to the next request.
"""

import io
import ssl
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.tracing import Trace
from yarl import URL

LARGE_BODY = 2**20
"""Bytes of a request that are sent in pieces, so that the event loop is not blocked."""


class Reply(NamedTuple):
    """A response with its whole body."""

    status: int
    headers: Mapping[str, str]
    """Names are looked up in any case."""
    body: bytes


class ReplyTooLarge(aiohttp.ClientPayloadError):
    """The reply is larger than allowed."""


class Transport:
    """Keep-alive connections to one server; as many as there are requests under way.

    It does not follow redirects, store cookies or read credentials from the environment.
    """

    def __init__(
        self, address: str, headers: Mapping[str, str], *, max_body: int, connect_timeout: float
    ) -> None:
        """Requests go to `address` as a rule; one that cannot be read raises `ValueError`."""
        self.closed = False
        self._address = URL(address)
        self._headers = dict(headers)
        self._max_body = max_body
        self._connect_timeout = connect_timeout
        self._opened: aiohttp.ClientSession | None = None

    async def post(
        self, body: bytes, heard: Callable[[bytes], None] | None = None, *, address: str | None = None
    ) -> Reply:
        """Send `body`; raises `aiohttp.ClientError` or `TimeoutError` when no whole reply comes back.

        `heard` is called with the parts of the reply as they arrive; `address` is another one of the same server.
        """
        data = body if len(body) <= LARGE_BODY else io.BytesIO(body)
        target = self._address if address is None else URL(address)
        try:
            response = await self._session().post(target, data=data, allow_redirects=False)
            try:
                content = await self._read(response, heard)
            finally:
                # Closes the connection unless the reply was read to its end.
                response.release()
        except (aiohttp.ClientResponseError, HttpProcessingError) as error:
            # Its own text has the whole address, whose query may hold a key.
            raise aiohttp.ClientPayloadError(f"no proper reply: {error.message}") from None
        except UnicodeError:
            raise aiohttp.ClientConnectionError("no connection: no host can have that name") from None
        return Reply(response.status, response.headers, content)

    async def close(self) -> None:
        """Close all connections, those in use too."""
        self.closed = True
        if self._opened is not None:
            await self._opened.close()

    def _session(self) -> aiohttp.ClientSession:
        """Opened by the first request, since it belongs to the event loop."""
        if self._opened is None:
            secure = self._address.scheme == "https"
            self._opened = aiohttp.ClientSession(
                connector=_CleanConnector(limit=0, ssl=ssl.create_default_context() if secure else True),
                timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_timeout),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                proxy=proxy_for(self._address),
            )
        return self._opened

    async def _read(self, response: aiohttp.ClientResponse, heard: Callable[[bytes], None] | None) -> bytes:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise aiohttp.ClientPayloadError("the reply is compressed, which was not asked for")
        self._refuse_over(response.content_length or 0)
        body = bytearray()
        async for part in response.content.iter_any():
            body += part
            self._refuse_over(len(body))
            if heard is not None:
                heard(part)
        return bytes(body)

    def _refuse_over(self, size: int) -> None:
        if size > self._max_body:
            raise ReplyTooLarge(f"the reply is larger than {self._max_body} bytes")


class _CleanConnector(aiohttp.TCPConnector):
    """Never uses a connection on which bytes arrived before the request: they would be taken for its reply."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's own
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        if connection.protocol is not None and connection.protocol.should_close:
            connection.close()
            raise aiohttp.ClientConnectionError("the server sent bytes that were not asked for")
        return connection


def proxy_for(address: URL) -> str | None:
    """The proxy that the environment names for `address`; None for a direct connection."""
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    return None if proxy is None or proxy_bypass(address.host or "") else proxy
