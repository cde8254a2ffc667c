"""`serve`: the viewer on an address of this machine, with a thread that keeps the index up to date."""

import contextlib
import errno
import fcntl
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
from typing import TYPE_CHECKING, Any

from sweetrl.domains.sources import read_tasks
from sweetrl.errors import MissingExtra, SweetError, UsageError
from sweetrl.records import is_on_hub
from sweetrl.viewer.imports import with_imports
from sweetrl.viewer.index import Index
from sweetrl.viewer.queries import Reader
from sweetrl.viewer.sources import Given

if TYPE_CHECKING:
    from sweetrl.viewer.games import PlaySettings

logger = logging.getLogger(__name__)

FOLLOW_SECONDS = 1.0
"""How often files are looked at for new records."""
PATIENCE_SECONDS = 10.0
"""How long the first indexing may take before the address is told; pages fill in afterwards."""
LOOPBACK = "127.0.0.1"
_ABOUT_THE_PORT = (errno.EADDRINUSE, errno.EACCES)
TOKEN_CHARACTERS = 32


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
    return _cache_folder() / f"{digest}.sqlite"


def _cache_folder() -> Path:
    """A folder of the user's own: the index holds what was said, which others on this machine must not read."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "sweetrl" / "view"
    with contextlib.suppress(OSError):  # whoever needs it to be there will say so
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    return folder


def kept_token() -> str:
    """The token of this user's viewers, the same every time: bookmarks stay good when a viewer is started again."""
    try:
        descriptor = os.open(_cache_folder() / "token", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "r+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            token = file.read().strip()
            if len(token) < TOKEN_CHARACTERS:
                token = secrets.token_urlsafe(24)
                file.seek(0)
                file.write(token)
            return token
    except (OSError, UnicodeDecodeError):
        return secrets.token_urlsafe(24)


@contextlib.contextmanager
def following(index: Index, every: float = FOLLOW_SECONDS) -> Iterator[threading.Event]:
    """Keep the index up to date for as long as the block lasts; the event says that it was so once."""
    complete = threading.Event()

    def follow() -> None:
        told = ""
        while not index.stopping.is_set():
            try:
                index.extend()
                told = ""
            except SweetError as error:
                if str(error) != told:
                    logger.warning("%s", error)
                told = str(error)
            complete.set()
            index.stopping.wait(every)

    thread = threading.Thread(target=follow, name="index", daemon=True)
    thread.start()
    try:
        yield complete
    finally:
        index.stopping.set()
        thread.join()


def serve(settings: Settings, announce: Callable[[str, str], None]) -> None:
    """Index the runs, tell the address, and answer requests until interrupted.

    `announce` is also given an address that works once, for a browser that this process starts: command lines can be
    read by every user of the machine.
    """
    uvicorn = _uvicorn("sweetrl view")
    from sweetrl.viewer.app import Viewer
    from sweetrl.viewer.metrics import Metrics
    from sweetrl.viewer.secrets import Secrets

    _check_tasks(settings.tasks)
    token, once = kept_token(), secrets.token_urlsafe(24)
    path = settings.index or index_path(settings.given)
    given = with_imports(settings.given, path.with_suffix(".imported"))
    with listening(settings.host, settings.port) as listener, Index(path, given) as index:
        index.prepare()
        reader = Reader(index.path)
        viewer = Viewer(
            reader,
            Secrets(settings.tasks, [each.root for each in given], reader.folders),
            Metrics(reader, given),
            settings.author,
        )
        app = viewer.application(hosts=frozenset({"localhost", settings.host}), token=token, once=once)
        with following(index) as complete:
            complete.wait(PATIENCE_SECONDS)
            announce(*(address_of(settings.host, listener, each) for each in (token, once)))
            uvicorn.Server(_config(uvicorn, app)).run(sockets=[listener])


def _check_tasks(sources: Sequence[str]) -> None:
    """Refuse a source that cannot be read now, not when somebody wants to see something hidden."""
    for source in sources:
        if not is_on_hub(source):
            next(read_tasks(source, 1), None)


async def serve_games(
    settings: "PlaySettings", listener: socket.socket, host: str, announce: Callable[[list[str]], None]
) -> None:
    """Tell every player's address, and answer requests until interrupted."""
    uvicorn = _uvicorn("sweetrl play --web")
    from sweetrl.viewer.games import Games
    from sweetrl.viewer.play_app import play_application

    games = Games(settings)
    try:
        app = play_application(games, hosts=frozenset({"localhost", host}))
        announce([address_of(host, listener, token) for token in games.players])
        await uvicorn.Server(_config(uvicorn, app)).serve(sockets=[listener])
    finally:
        games.close()


def _uvicorn(feature: str) -> Any:
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise MissingExtra(feature, "view") from None
    return uvicorn


def _config(uvicorn: Any, app: Any) -> Any:
    return uvicorn.Config(
        app,
        log_level="error",  # access lines would show tokens, and broken requests of anyone are no news
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=2,  # of pages that wait for a reply
    )


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket on the address. It is opened before anything else is done: a port in use is told at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            other = "--port" if getattr(error, "errno", None) in _ABOUT_THE_PORT else "--host"
            raise UsageError(f"cannot listen on {host}:{port}: {reason}; choose another {other}") from None
        listener.listen(128)
        yield listener


def address_of(host: str, listener: socket.socket, token: str) -> str:
    """Where a visitor goes, with their token."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/?token={token}"
