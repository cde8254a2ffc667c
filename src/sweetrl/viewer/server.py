"""`serve`: the viewer on an address of this machine, with a thread that keeps the index up to date."""

import contextlib
import hashlib
import ipaddress
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sweetrl.errors import MissingExtra, SweetError, UsageError
from sweetrl.viewer.index import Index
from sweetrl.viewer.queries import Reader
from sweetrl.viewer.sources import Given

logger = logging.getLogger(__name__)

FOLLOW_SECONDS = 1.0
"""How often files are looked at for new records."""
PATIENCE_SECONDS = 10.0
"""How long the first indexing may take before the address is told; pages fill in afterwards."""
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Settings:
    """How the viewer is started."""

    given: Sequence[Given]
    host: str = LOOPBACK
    port: int = 0
    """0 for any that is free."""
    tasks: Sequence[str] = ()
    index: Path | None = None
    """Where the index is kept; in the user's cache folder if None."""
    author: str = ""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def index_path(given: Sequence[Given]) -> Path:
    """Where the index of these folders is kept: the same for the same folders, and safe to delete."""
    name = "\n".join(f"{each.label}={each.path}" for each in given)
    digest = hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "sweetrl" / "view" / f"{digest}.sqlite"


@contextlib.contextmanager
def following(index: Index, every: float = FOLLOW_SECONDS) -> Iterator[threading.Event]:
    """Keep the index up to date for as long as the block lasts; the event says that it was so once."""
    complete = threading.Event()

    def follow() -> None:
        while not index.stopping.is_set():
            try:
                index.extend()
            except SweetError as error:
                logger.warning("%s", error)
            complete.set()
            index.stopping.wait(every)

    thread = threading.Thread(target=follow, name="index", daemon=True)
    thread.start()
    try:
        yield complete
    finally:
        index.stopping.set()
        thread.join()


def serve(settings: Settings, announce: Callable[[str], None]) -> None:
    """Index the runs, tell the address, and answer requests until interrupted."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("sweetrl view", "view") from None
    from sweetrl.viewer.app import Viewer
    from sweetrl.viewer.metrics import Metrics
    from sweetrl.viewer.secrets import Secrets

    token = None if settings.is_local else secrets.token_urlsafe(24)
    with (
        _listening(settings) as listener,
        Index(settings.index or index_path(settings.given), settings.given) as index,
    ):
        index.prepare()
        reader = Reader(index.path)
        viewer = Viewer(
            reader,
            Secrets(settings.tasks, [each.root for each in settings.given]),
            Metrics(reader, settings.given),
            settings.author,
        )
        app = viewer.application(hosts=frozenset({"localhost", settings.host}), token=token)
        # Access lines would show the token; errors still come through.
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", server_header=False
        )
        with following(index) as complete:
            complete.wait(PATIENCE_SECONDS)
            announce(_address(settings, listener, token))
            uvicorn.Server(config).run(sockets=[listener])


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """A socket on the address. It is opened before anything is indexed: a port in use is told at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"cannot listen on {settings.host}:{settings.port}: {reason}; choose another --port"
            ) from None
        listener.listen(128)
        yield listener


def _address(settings: Settings, listener: socket.socket, token: str | None) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    query = "" if token is None else f"?token={token}"
    return f"http://{host}:{listener.getsockname()[1]}/{query}"
