"""A process that runs plain code, job after job, because it need not fear it.

`inside.plain` says what is plain. Only clean results count: code that raises, overruns or fails in any way in
company is run again in a process of its own, so that no code can spoil another's result by what it leaves behind.
"""

import marshal
import os
import select
import time
from typing import Any

from msgspec import Struct

from sweetrl.errors import SandboxError
from sweetrl.sandbox.inside.runner import FILTERED, LENGTH, UNFILTERED, VALUE
from sweetrl.sandbox.inside.zygote import SERVE
from sweetrl.sandbox.zygotes import Watch, Zygote

_JOBS_PER_PROCESS = 500
"""After that many a fresh one takes over, whatever the old one may have gathered."""


class Company(Struct, frozen=True):
    """What came of a job among others."""

    encoded: list[bytes] | None = None
    """The results; None if the job must have a process of its own."""
    overran: bool = False


class Resident:
    """Runs plain jobs in one process after another, forked from a zygote of its own."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote
        self._serving: tuple[int, Watch] | None = None
        """Where to write jobs, and who collects their results."""
        self._served = 0

    def run(self, job: dict[str, Any], budgets: list[int], deadline: float) -> Company:
        """Run the job if its code is plain."""
        try:
            jobs, watch = self._serving or self._start()
            content = marshal.dumps(job)
            if not _deliver(jobs, LENGTH.pack(len(content)) + content, self._zygote.limits.call_seconds):
                self._stop()
                return Company()
            run = watch.collect(0, budgets, deadline)
            if run.refused:
                return Company()
            self._served += 1
            finished = len(run.frames) == len(budgets)
            if not finished or self._served >= _JOBS_PER_PROCESS:
                self._stop()
        except (OSError, EOFError) as error:
            raise SandboxError(f"the sandbox broke off: {type(error).__name__}: {error}") from error
        clean = finished and all(kind == VALUE for kind, _ in run.frames)
        return Company([payload for _, payload in run.frames] if clean else None, run.overran)

    def kill(self) -> None:
        """End the process and its zygote under whoever waits for them."""
        self._zygote.kill()

    def close(self) -> None:
        """End the process and its zygote."""
        self._zygote.close()
        self._close_pipes()

    def _start(self) -> tuple[int, Watch]:
        jobs, results = self._zygote.fork(SERVE)
        self._serving = jobs, Watch(self._zygote, results)
        self._served = 0
        os.set_blocking(jobs, False)
        os.write(jobs, UNFILTERED if self._zygote.unfiltered else FILTERED)
        return self._serving

    def _stop(self) -> None:
        self._zygote.end(kill=True)
        self._close_pipes()

    def _close_pipes(self) -> None:
        if self._serving is not None:
            jobs, watch = self._serving
            os.close(jobs)
            os.close(watch.results)
        self._serving = None


def _deliver(descriptor: int, content: bytes, seconds: float) -> bool:
    """Write it all; False if the process is gone, or does not come to read it in time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    give_up = time.monotonic() + seconds
    view = memoryview(content)
    while view:
        if not poll.poll(max(0.0, give_up - time.monotonic()) * 1000):
            return False
        try:
            view = view[os.write(descriptor, view) :]
        except BrokenPipeError:
            return False
    return True
