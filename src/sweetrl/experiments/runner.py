"""Runs the stages of an experiment that are not done yet, several at a time if asked, and reports events."""

import contextlib
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweetrl import interrupts
from sweetrl.errors import SweetError
from sweetrl.experiments import progress
from sweetrl.experiments.events import (
    Event,
    Listener,
    StageFailed,
    StageFinished,
    StageInterrupted,
    StageSkipped,
    StagesProgressed,
    StageStarted,
    ignore,
)
from sweetrl.experiments.journal import Journal
from sweetrl.experiments.local import LocalExecutor
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.probing import Probes
from sweetrl.experiments.processes import Child
from sweetrl.experiments.schedule import Schedule, needs_of
from sweetrl.experiments.servers import Servers
from sweetrl.experiments.sharding import is_recorded
from sweetrl.settings import ServerSettings

POLL_SECONDS = 0.05
GRACE_SECONDS = 60.0
"""How long stages have to end by themselves after an interrupt that does not come from a terminal.

Most often they got it too, and finish what they have begun; but it may have been sent to this process alone.
"""
INTERRUPTED = (130, -signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGTERM)
"""How stages, and launchers in front of them, end when they are asked to."""


class RunFailedError(SweetError):
    """A stage failed, so the experiment is incomplete; the listener has been told why."""

    def __init__(self, stage: str, code: int) -> None:
        super().__init__(f"the stage {stage} {ending(code)}")
        self.exit_code = 2 if code == 2 else 1
        """The exit code of a command that ran the experiment."""


def ending(code: int) -> str:
    """How a process ended, in words."""
    return f"ended with code {code}" if code > 0 else f"was ended by signal {-code}"


@dataclass
class _Running:
    process: Child
    servers: contextlib.ExitStack
    started: float


class Runner:
    """Does the stages of an experiment, those that are not done yet."""

    def __init__(
        self,
        folder: Path,
        planned: list[Stage],
        servers: tuple[ServerSettings, ...] = (),
        *,
        executor: LocalExecutor | None = None,
        jobs: int = 1,
        allow_failures: bool = False,
    ) -> None:
        self._folder = folder
        self._planned = planned
        self._servers = Servers(servers, folder)
        self._executor = executor or LocalExecutor(folder, jobs=jobs)
        self._allow_failures = allow_failures
        self._journal = Journal(folder)
        self._probes = Probes(each for each in planned if not self._journal.has(each))
        self.schedule = Schedule(needs_of(planned), jobs=jobs, alone=self._alone())
        self._running: dict[int, _Running] = {}
        self._patience = _Patience()
        self._report: Listener = ignore
        self._reported = 0.0
        """When the progress was reported last."""
        self._interrupted: list[str] = []
        """Stages that did not come to their end because somebody asked them to stop."""
        self._failure: RunFailedError | None = None
        """The first one."""

    def _alone(self) -> frozenset[int]:
        """Servers have one address, so that their stages share the machine with none."""
        return frozenset(
            number
            for number, stage in enumerate(self._planned)
            if self._executor.takes_all(stage) or self._servers.of(stage.name)
        )

    @property
    def has_work(self) -> bool:
        """Whether there are stages that are not done."""
        return not all(map(self._journal.has, self._planned))

    def run(self, report: Listener = ignore) -> list[dict[str, Any]]:
        """Do what is not done, and report it; the journal's entries.

        Raises `RunFailedError`, or `KeyboardInterrupt` with the names of the stages that were interrupted.
        """
        self._report = report
        self._skip_done()
        reacting = interrupts.reacting(self._patience.ask_to_stop, self._patience.end)
        with self._executor.opened(), interrupts.terminable(), reacting:
            try:
                self._work()
            finally:
                self._end_all()
        if self._interrupted or interrupts.came():
            raise KeyboardInterrupt(_where(self._interrupted))
        if self._failure is not None:
            raise self._failure
        return self._journal.entries

    def _skip_done(self) -> None:
        done = [number for number, stage in enumerate(self._planned) if self._journal.has(stage)]
        for number in done:
            self.schedule.end(number)
            self._report(StageSkipped(number, self._planned[number]))

    # -------- starting and ending

    def _work(self) -> None:
        while True:
            if interrupts.came():
                self.schedule.stop()
            if self._patience.is_over():
                self._terminate()
            for number in self.schedule.starting():
                self._start(number)
            if not self._running:
                return
            time.sleep(POLL_SECONDS)
            self._watch()
            self._report_progress()

    def _watch(self) -> None:
        """Note which stages have ended."""
        for number, running in list(self._running.items()):
            code = running.process.poll()
            if code is not None:
                del self._running[number]
                running.servers.close()
                self._ended(number, code, time.monotonic() - running.started)

    def _report_progress(self) -> None:
        if time.monotonic() - self._reported >= progress.SECONDS:
            shares = {each: self._executor.progress(each) for each in self._running}
            waits = {each: why for each in self._running if (why := self._executor.trouble(each))}
            self._report(StagesProgressed(shares, waits))
            self._reported = time.monotonic()

    def _start(self, number: int) -> None:
        stage = self._planned[number]
        self._report(StageStarted(number, stage))
        with contextlib.ExitStack() as needed:
            with interrupts.raised():
                needed.enter_context(self._servers.serving(stage.name, self._report))
                self._probes.ask(stage, self._report)
            stage.output.parent.mkdir(parents=True, exist_ok=True)
            started = time.monotonic()
            self._running[number] = _Running(self._executor.start(number, stage), needed.pop_all(), started)

    def _ended(self, number: int, code: int, seconds: float) -> None:
        stage = self._planned[number]
        # A stage that breaks down may end with 1 too: only its records tell whether it got to its end.
        some_failed = code == 1 and self._allow_failures and is_recorded(stage)
        if code and not some_failed:
            self._report(self._broke_off(number, code))
            return
        self.schedule.end(number)
        self._journal.add(stage, code, seconds)
        self._report(StageFinished(number, stage, seconds, some_failed))

    def _broke_off(self, number: int, code: int) -> Event:
        """Start nothing new; stages that are running finish."""
        stage = self._planned[number]
        self.schedule.stop()
        if code in INTERRUPTED:
            self._interrupted.append(stage.name)
            return StageInterrupted(number, stage)
        self._failure = self._failure or RunFailedError(stage.name, code)
        beside = tuple(self._planned[each].name for each in self._running)
        log, said = self._executor.log(stage), self._executor.said(number, stage)
        return StageFailed(number, stage, code, beside, log, said)

    def _terminate(self) -> None:
        for running in self._running.values():
            running.process.terminate()

    def _end_all(self) -> None:
        """Make sure that nothing is left running."""
        self._terminate()
        for running in self._running.values():
            running.process.wait()
            running.servers.close()
        self._running.clear()
        self._servers.close()


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
        """Whether stages that still run must be ended now; true once per deadline."""
        over = time.monotonic() >= self._deadline
        if over:
            self._deadline = float("inf")
        return over


def _where(names: list[str]) -> str:
    if not names:
        return ""
    return f"in the {'stage' if len(names) == 1 else 'stages'} {', '.join(names)}"
