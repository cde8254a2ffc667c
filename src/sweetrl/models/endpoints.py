"""The servers that a run talks to: how they are treated, and one of each however many models use it."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from sweetrl.errors import needs_extra
from sweetrl.models.specification import EndpointUrl

if TYPE_CHECKING:
    from sweetrl.models.server import Server

Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class EndpointOptions(Struct, frozen=True, kw_only=True):
    """How to treat a server."""

    timeout: Seconds = 300.0
    """Seconds for one attempt, from the request to the last byte of the reply."""
    connect_timeout: Seconds = 15.0
    patience: Seconds = 10.0
    """Seconds without any connection to the server after which the run stops instead of trying on."""
    attempts: Positive = 12
    """How often a request is sent before it fails."""
    costly_attempts: Positive = 5
    """Attempts after timeouts, content filters and prompts that are too long, each counted separately."""
    first_backoff: Seconds = 0.5
    """Upper bound in seconds of the first pause between attempts; it doubles from one to the next."""
    max_backoff: Seconds = 20.0
    max_retry_after: Seconds = 60.0
    """The longest pause in seconds that a server may ask for."""
    start_concurrency: Positive = 64
    """Requests under way at first; the number adapts to what the server can take."""
    max_concurrency: Positive = 512
    """Each request under way takes a socket, of which a process may often have no more than 1024."""
    max_reply_bytes: Positive = 4 * 2**20
    """A larger reply is refused, not read."""


class Endpoints:
    """The servers in use. Models of one server share its connections and its concurrency limit."""

    def __init__(self, options: EndpointOptions | None = None) -> None:
        self._options = options or EndpointOptions()
        self._servers: dict[EndpointUrl, Server] = {}

    def server(self, url: EndpointUrl) -> "Server":
        """The server at `url`, for a model to join."""
        server = self._servers.get(url)
        if server is None or server.closed:
            with needs_extra("a model behind an endpoint", "serve"):
                from sweetrl.models.server import Server
            server = self._servers[url] = Server(url, self._options)
        return server
