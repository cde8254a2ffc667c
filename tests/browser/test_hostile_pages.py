"""No page reads a file, reaches a listener or spoils the next page; each ends in a bounded picture or a refusal."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from browser.hostile_pages import TOO_MUCH, filled_in, hostile_pages
from browser.pixels import shows
from sweetrl.browser import BrowserPool, PageError, Shot

MAGENTA = (255, 0, 254)
NORMAL = (
    "<h1 style='color:teal'>The next page</h1><style>p { background: #eee }</style><p>Text <a href='#'>link</a> <input>"
    "<img src='https://picsum.photos/30/20'><img src='https://picsum.photos/10/10'>"
)


class Listener:
    """Counts the connections to a port of this machine, under both families of addresses."""

    def __init__(self) -> None:
        self.connections = 0
        self.port = 0
        self._sockets = [self._listen(socket.AF_INET, "127.0.0.1")]
        # A machine without the loopback address of IPv6 cannot be reached by it.
        with contextlib.suppress(OSError):
            self._sockets.append(self._listen(socket.AF_INET6, "::1"))

    def _listen(self, family: socket.AddressFamily, host: str) -> socket.socket:
        listening = socket.create_server((host, self.port), family=family)
        self.port = listening.getsockname()[1]
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()
        return listening

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        for each in self._sockets:
            # Closing alone would leave the thread in its accept.
            each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    server = Listener()
    yield server
    server.close()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A picture whose reading would be noticed: by its colour, and by the time of its last access."""
    path = tmp_path / "secret.png"
    Image.new("RGB", (900, 600), MAGENTA).save(path)
    os.utime(path, (1, path.stat().st_mtime))
    return path


@pytest.fixture
def style(tmp_path: Path) -> Path:
    path = tmp_path / "secret.css"
    path.write_text("* { background: #ff00fe !important }")
    os.utime(path, (1, path.stat().st_mtime))
    return path


@pytest.fixture(scope="module")
def normal(render: Callable[[str], Shot]) -> bytes:
    return render(NORMAL).png


def each_page() -> list[Any]:
    """Those that a browser works on until its time is up are for the slow tests, but for a few."""
    quick = hostile_pages().keys() - TOO_MUCH.keys() | {"30 MB", "a million elements", "100,000 pixels wide"}
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in hostile_pages()]


@pytest.mark.parametrize("name", each_page())
def test_a_hostile_page_gains_nothing_and_spoils_nothing(
    name: str, pool: BrowserPool, run: Any, listener: Listener, secret: Path, style: Path, normal: bytes
) -> None:
    page = filled_in(hostile_pages()[name], port=listener.port, secret=str(secret), style=str(style))
    with contextlib.suppress(PageError):
        shot = run(pool.render(page))
        assert 0 < shot.width <= pool.limits.width
        assert 0 < shot.height <= pool.limits.height
        assert len(shot.boxes) <= pool.limits.boxes
        assert not shows(shot.png, MAGENTA)
    assert listener.connections == 0
    assert secret.stat().st_atime == 1
    assert style.stat().st_atime == 1
    assert run(pool.render(NORMAL)).png == normal


def test_there_are_many_kinds() -> None:
    assert len(hostile_pages()) >= 36


def test_a_connection_would_be_noticed() -> None:
    server = Listener()
    socket.create_connection(("127.0.0.1", server.port)).close()
    while server.connections == 0:  # the test's time limit ends this
        pass
    server.close()
    assert server.connections == 1


def test_showing_the_secret_would_be_noticed(render: Callable[[str], Shot]) -> None:
    assert shows(render("<body style='background:#ff00fe'>").png, MAGENTA)


def test_reading_the_secret_would_be_noticed(secret: Path) -> None:
    if os.statvfs(secret).f_flag & os.ST_NOATIME:
        pytest.skip("this file system does not record accesses")
    secret.read_bytes()
    assert secret.stat().st_atime != 1
