"""Programs that a recipe needs beside its stages, such as model servers: started, awaited, ended."""

import contextlib
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sweetrl.errors import UsageError
from sweetrl.experiments import processes
from sweetrl.experiments.events import Listener, ServerStarting
from sweetrl.settings import ServerSettings

POLL_SECONDS = 0.2
_ENDING_TOGETHER = """trap 'trap "" TERM; kill 0' TERM
{ %s
} & wait $!; code=$?; wait; exit $code"""
"""The shell that is told to end, by us or because we are gone, tells all that the command started and awaits it."""
MOST_READ = 1 << 20
"""Bytes of an answer that are looked at."""
FAREWELL_SECONDS = 30.0
"""How long a program has to end by itself."""


@contextlib.contextmanager
def running(wanted: tuple[ServerSettings, ...], folder: Path, report: Listener) -> Iterator[None]:
    """Keep the programs running during the block; what they say goes to `folder`/server-N.log."""
    with contextlib.ExitStack() as stack:
        for number, settings in enumerate(wanted):
            stack.enter_context(_running(settings, folder, folder / f"server-{number}.log", report))
        yield


@contextlib.contextmanager
def _running(settings: ServerSettings, folder: Path, log: Path, report: Listener) -> Iterator[None]:
    command = settings.command.replace("{output}", str(folder))
    if _answer(settings.ready) is not None:
        raise UsageError(
            f"{settings.ready}: another program answers there already; stop it, or choose another port"
        )
    report(ServerStarting(command))
    with log.open("ab") as sink:
        # In a session of its own, so that all its processes can be ended and none gets our Ctrl-C.
        process = processes.start(_ENDING_TOGETHER % command, output=sink, errors=sink, own_session=True)
    try:
        _await_ready(process, settings, log)
        yield
    finally:
        _end(process)


def _await_ready(process: "subprocess.Popen[bytes]", settings: ServerSettings, log: Path) -> None:
    deadline = time.monotonic() + settings.timeout
    while (answer := _answer(settings.ready)) is None or process.poll() is not None:
        if process.poll() is not None:
            raise UsageError(
                f"the server ended with code {process.returncode}; see {log}: {settings.command}"
            )
        if time.monotonic() > deadline:
            raise UsageError(f"{settings.ready} did not answer within {settings.timeout} s; see {log}")
        time.sleep(POLL_SECONDS)
    names = _models(answer)
    if settings.serves is not None and names and settings.serves not in names:
        raise UsageError(
            f"{settings.ready}: serves {', '.join(names)}, but the recipe asks it for {settings.serves}; "
            f"give the server that name"
        )


def _answer(address: str) -> bytes | None:
    """What an address answers, be it an error; None if nothing answers."""
    try:
        with urllib.request.urlopen(address, timeout=5) as response:  # noqa: S310  the recipe's own address
            return bytes(response.read(MOST_READ))
    except urllib.error.HTTPError:
        return b""
    except (OSError, ValueError):
        return None


def _models(answer: bytes) -> list[str]:
    """The models that a list of an OpenAI-compatible server names; none if it is no such list."""
    try:
        return [each.id for each in msgspec.json.decode(answer, type=_ModelList).data]
    except msgspec.DecodeError:
        return []


class _Model(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_Model]


def _end(process: "subprocess.Popen[bytes]") -> None:
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(FAREWELL_SECONDS)
            return
