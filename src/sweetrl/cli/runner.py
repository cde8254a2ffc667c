"""Runs the stages of an experiment that are not done yet, each in a process of its own, several at a time if asked."""

import contextlib
import os
import shlex
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sweetrl.cli import children, console, interrupts
from sweetrl.cli.journal import Journal
from sweetrl.cli.schedule import Schedule, needs_of

if TYPE_CHECKING:
    from sweetrl.cli.road import Stage
    from sweetrl.settings import ServerSettings

POLL_SECONDS = 0.05
GRACE_SECONDS = 60.0
"""How long stages have to end by themselves after an interrupt that does not come from a terminal.

Most often they got it too, and finish what they have begun; but it may have been sent to this process alone.
"""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
"""Variables that say how many threads a stage computes with."""
MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
"""Lets the C library keep what a step of a tiny model allocates for the next one, in place of giving it back: a seventh
of the page faults, which took 7 % of the processor time of a training. Changes no result."""
INTERRUPTED = (130, -signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGTERM)
"""How stages, and launchers in front of them, end when they are asked to."""


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass
class _Running:
    process: "children.Child"
    servers: contextlib.ExitStack
    started: float


class Runner:
    """Does the stages of an experiment, those that are not done yet."""

    def __init__(
        self,
        folder: Path,
        planned: "list[Stage]",
        servers: "tuple[ServerSettings, ...]" = (),
        *,
        jobs: int = 1,
        allow_failures: bool = False,
        quiet: bool = False,
    ) -> None:
        self._planned = planned
        self._servers = servers
        self._allow_failures = allow_failures
        self._quiet = quiet
        self._folder = folder
        self._jobs = jobs
        self._journal = Journal(folder)
        self._schedule = Schedule(needs_of(planned), jobs=jobs, alone=self._alone())
        self._running: dict[int, _Running] = {}
        self._patience = _Patience()
        self._cut: list[str] = []
        """Stages that did not come to their end because somebody asked them to stop."""
        self._failure = 0
        """The exit code of the first stage that failed."""

    def _alone(self) -> frozenset[int]:
        """Servers have one address and launchers take all GPUs, so that their stages share the machine with none."""
        return frozenset(
            number for number, stage in enumerate(self._planned) if stage.launcher or self._served(stage)
        )

    def _served(self, stage: "Stage") -> "tuple[ServerSettings, ...]":
        return tuple(server for server in self._servers if stage.name in server.stages)

    def run(self) -> list[dict[str, Any]]:
        """Do what is not done; what became of each stage."""
        self._skip_done()
        with interrupts.terminable(), interrupts.reacting(self._patience.ask_to_stop, self._patience.end):
            try:
                self._work()
            finally:
                self._end_all()
        if self._cut or interrupts.came():
            raise KeyboardInterrupt(_where(self._cut))
        if self._failure:
            raise typer.Exit(2 if self._failure == 2 else 1)
        return self._journal.entries

    def _skip_done(self) -> None:
        done = [number for number, stage in enumerate(self._planned) if self._journal.has(stage)]
        for number in done:
            self._schedule.end(number)
            self._tell_done_before(number)

    # -------- starting and ending

    def _work(self) -> None:
        while True:
            if interrupts.came():
                self._schedule.stop()
            if self._patience.is_over():
                self._terminate()
            for number in self._schedule.starting():
                self._start(number)
            if not self._running:
                return
            time.sleep(POLL_SECONDS)
            self._watch()

    def _watch(self) -> None:
        """Note which stages have ended."""
        for number, running in list(self._running.items()):
            code = running.process.poll()
            if code is not None:
                del self._running[number]
                running.servers.close()
                self._ended(number, code, time.monotonic() - running.started)

    def _start(self, number: int) -> None:
        from sweetrl.cli.servers import running

        stage = self._planned[number]
        self._tell_start(number)
        with contextlib.ExitStack() as servers:
            with interrupts.raised():
                servers.enter_context(running(self._served(stage), self._folder))
            stage.output.parent.mkdir(parents=True, exist_ok=True)
            started = time.monotonic()
            self._running[number] = _Running(self._launch(number), servers.pop_all(), started)

    def _launch(self, number: int) -> "children.Child":
        # Our standard output is for the one JSON object that --json promises.
        words = [*self._words(number), *(["--quiet"] if self._quiet else [])]
        return children.start(words, output=sys.stderr, variables=self._variables())

    def _words(self, number: int) -> list[str]:
        stage = self._planned[number]
        return [*(stage.launcher or [sys.executable]), "-m", "sweetrl", *stage.arguments]

    def _variables(self) -> dict[str, str]:
        """Stages side by side share the cores. What the user has said holds."""
        variables = dict(MEMORY)
        if self._jobs > 1:
            variables |= dict.fromkeys(THREADS, str(max(1, usable_cores() // self._jobs)))
        return {name: os.environ.get(name, value) for name, value in variables.items()}

    def _ended(self, number: int, code: int, seconds: float) -> None:
        stage = self._planned[number]
        if code == 1 and self._allow_failures:
            self._note(f"{stage.name}: some items failed; going on without them")
        elif code:
            self._broke_off(number, code)
            return
        self._schedule.end(number)
        self._journal.add(stage, code, seconds)
        self._tell_end(number, seconds)

    def _broke_off(self, number: int, code: int) -> None:
        """Nothing new starts; what runs beside the stage goes on to its end."""
        stage = self._planned[number]
        self._schedule.stop()
        if code in INTERRUPTED:
            self._cut.append(stage.name)
            return
        self._failure = self._failure or code
        self._tell_failure(number)
        self._note(f"the stage {stage.name} {_ending(code)}; {_advice(code)}")
        if self._running:
            others = ", ".join(self._planned[each].name for each in self._running)
            self._note(f"waiting for what runs beside it: {others}")

    def _terminate(self) -> None:
        for running in self._running.values():
            running.process.terminate()

    def _end_all(self) -> None:
        """Leave nothing running, whatever happened."""
        self._terminate()
        for running in self._running.values():
            running.process.wait()
            running.servers.close()
        self._running.clear()

    # -------- telling

    def _tell_done_before(self, number: int) -> None:
        self._note(f"{self._count(number)} {self._planned[number].name}: done before")

    def _tell_start(self, number: int) -> None:
        stage = self._planned[number]
        self._note(f"{self._count(number)} {stage.name}: {shlex.join(stage.arguments)}")

    def _tell_end(self, number: int, seconds: float) -> None:
        """The stage has said it all."""

    def _tell_failure(self, number: int) -> None:
        """The same."""

    def _count(self, number: int) -> str:
        return f"[{number + 1}/{len(self._planned)}]"

    def _note(self, text: str) -> None:
        if not self._quiet:
            console.note(text)


class _Patience:
    """How long stages have to end after an interrupt; noted and not raised, so that no stage is lost as it starts."""

    def __init__(self) -> None:
        self._deadline = float("inf")

    def ask_to_stop(self) -> None:
        """After the first Ctrl-C, stages finish what they have begun. A terminal has sent it to them too."""
        if not sys.stderr.isatty():
            self._deadline = time.monotonic() + GRACE_SECONDS

    def end(self) -> None:
        """After the second one, or SIGTERM, they have no time left."""
        self._deadline = time.monotonic()

    def is_over(self) -> bool:
        """Whether stages that still run must be told to end; true once for each time."""
        over = time.monotonic() >= self._deadline
        if over:
            self._deadline = float("inf")
        return over


def _where(names: list[str]) -> str:
    if not names:
        return ""
    return f"in the {'stage' if len(names) == 1 else 'stages'} {', '.join(names)}"


def _ending(code: int) -> str:
    return f"ended with code {code}" if code > 0 else f"was ended by signal {-code}"


def _advice(code: int) -> str:
    if code < 0:
        return interrupts.RESUME
    if code == 1:
        return "the same command again does the failed items, --allow-failures goes on without them"
    return "mend what it said and run the same command again"
