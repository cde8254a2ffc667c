"""Programs that a recipe needs beside its stages, such as model servers: started, awaited, ended."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from sweetrl.errors import UsageError
from sweetrl.experiments import adapters, processes
from sweetrl.experiments.events import Listener, ServerStarting
from sweetrl.experiments.listings import answer_of, models_in
from sweetrl.settings import ServerSettings

POLL_SECONDS = 0.2
_ENDING_TOGETHER = """trap 'trap "" TERM; kill 0' TERM
{ %s
} & wait $!; code=$?; wait; exit $code"""
"""The shell that is told to end, by us or because we are gone, tells all that the command started and awaits it."""
FAREWELL_SECONDS = 30.0
"""Seconds that a program has to end by itself."""


class Servers:
    """The servers of a run: each is started for its stages, or once for all of them."""

    def __init__(self, wanted: tuple[ServerSettings, ...], folder: Path) -> None:
        """The output of the N-th server goes to `folder`/server-N.log."""
        self._wanted = wanted
        self._folder = folder
        self._kept: dict[int, contextlib.ExitStack] = {}

    def of(self, stage: str) -> bool:
        """Whether a stage needs any."""
        return any(stage in settings.stages for settings in self._wanted)

    @contextlib.contextmanager
    def serving(self, stage: str, report: Listener) -> Iterator[None]:
        """Keep those that a stage needs running during the block, with all adapters that there are by now."""
        with contextlib.ExitStack() as stack:
            for number, settings in enumerate(self._wanted):
                if stage in settings.stages:
                    self._start(number, settings, stack, report)
                    adapters.load(settings, self._folder)
            yield

    def close(self) -> None:
        """End those that were kept."""
        for kept in self._kept.values():
            kept.close()
        self._kept.clear()

    def _start(
        self, number: int, settings: ServerSettings, stack: contextlib.ExitStack, report: Listener
    ) -> None:
        if settings.keep:
            if number in self._kept and answer_of(settings.ready) is not None:
                return
            # A server that has died may leave its child processes.
            self._kept.pop(number, contextlib.ExitStack()).close()
            stack = self._kept[number] = contextlib.ExitStack()
        stack.enter_context(_running(settings, self._folder, self._folder / f"server-{number}.log", report))


@contextlib.contextmanager
def _running(settings: ServerSettings, folder: Path, log: Path, report: Listener) -> Iterator[None]:
    command = settings.command.replace("{output}", str(folder))
    if answer_of(settings.ready) is not None:
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
    while (answer := answer_of(settings.ready)) is None or process.poll() is not None:
        if process.poll() is not None:
            raise UsageError(
                f"the server ended with code {process.returncode}; see {log}: {settings.command}"
            )
        if time.monotonic() > deadline:
            raise UsageError(f"{settings.ready} did not answer within {settings.timeout} s; see {log}")
        time.sleep(POLL_SECONDS)
    names = models_in(answer)
    if settings.serves is not None and names and settings.serves not in names:
        raise UsageError(
            f"{settings.ready}: serves {', '.join(names)}, but the recipe asks it for {settings.serves}; "
            f"give the server that name"
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(FAREWELL_SECONDS)
            return
