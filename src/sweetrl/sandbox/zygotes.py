"""The parent's side of a zygote: starting it, handing it a job, and telling time.

One `Zygote` runs one job at a time. A job ends in one of four ways, none of which can be mistaken for another:
all results are in; the process died; it overran a call's time; or the sandbox itself failed (`SandboxError`).
"""

import contextlib
import marshal
import os
import select
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from sweetrl.errors import SandboxError
from sweetrl.sandbox import launch
from sweetrl.sandbox.inside.runner import BROKEN, CONFINED, HEADER, LOADED, RAISED, UNUSABLE, VALUE
from sweetrl.sandbox.inside.zygote import ASK, CODE_SIZE, ENDED, NEXT, PROCESS, READY, WAIT
from sweetrl.sandbox.isolation import Isolation

_START_SECONDS = 30.0
_END_SECONDS = 1.0
_RESULTS = (VALUE, RAISED, UNUSABLE)
_LARGEST_DETAIL = 2048
"""Bytes that the description of an error may take, however small the budget of its call."""
_STARVED = 4.0
"""How many times its limit a call may take while the machine keeps it from running."""
_LOOK_AGAIN_SECONDS = 0.05
_STALE_SECONDS = 0.1
"""How old what is known of a process's CPU time may be when a call begins: asking is not free."""


class Limits(Struct, frozen=True, kw_only=True):
    """What untrusted code may use up."""

    call_seconds: float = 1.0
    """Per call, loading the code included."""
    total_seconds: float = 12.0
    """For all calls of a program."""
    memory_bytes: int = 768 << 20
    result_bytes: int = 1 << 20
    """Largest encoded result, where the program does not say less."""


class Run(Struct):
    """How far one process got."""

    frames: list[tuple[bytes, bytes]]
    """Kind and payload of each result, in the order of the calls."""
    confined: bool = False
    """Whether untrusted code may have run."""
    broken: str = ""
    """Why the process could not be confined, as it says: code that runs before its frames are sent can say so too."""
    loaded: bool = False
    overran: bool = False
    exit_code: int | None = None


class Zygote:
    """A warm interpreter that forks a confined process per job."""

    def __init__(
        self,
        isolation: Isolation,
        limits: Limits,
        packages: tuple[str, ...],
        hash_seed: int,
        *,
        preload: bool,
    ) -> None:
        """`preload` for jobs that import something: forks of a zygote that has loaded less are cheaper."""
        self.limits = limits
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            settings = launch.zygote_settings(isolation, packages) | {
                "control": theirs.fileno(),
                "preload": preload,
                "memory_bytes": limits.memory_bytes,
                "cpu_seconds": int(limits.total_seconds * _STARVED) + 1,
            }
            self._process = subprocess.Popen(  # noqa: S603  our own interpreter
                launch.command(isolation, settings),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env=launch.ENVIRONMENT | {"PYTHONHASHSEED": str(hash_seed)},
                start_new_session=True,
            )
        self._control = ours
        self._control.settimeout(_START_SECONDS)
        self._waiting: tuple[int, int] | None = None
        """Where to write the job of the process that waits for one, and where to read its results."""
        self._await_ready()

    def _await_ready(self) -> None:
        try:
            ready = self._control.recv(len(READY)) == READY
        except OSError:
            ready = False
        if not ready:
            self._process.kill()
            _, complaint = self._process.communicate()
            self.close()
            lines = complaint.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
            raise SandboxError(f"the sandbox did not start: {lines[-1][:300]}")
        assert self._process.stderr is not None
        self._process.stderr.close()

    def kill(self) -> None:
        """End the zygote and whatever it runs, from any thread; whoever reads from it finds the end."""
        self._process.kill()

    def close(self) -> None:
        """End the zygote and whatever it runs."""
        self._process.kill()
        self._process.wait()
        self._control.close()
        if self._waiting is not None:
            for descriptor in self._waiting:
                os.close(descriptor)
            self._waiting = None
        if self._process.stderr is not None:
            self._process.stderr.close()

    def run(self, job: dict[str, Any], budgets: list[int], deadline: float) -> Run:
        """Run the job's calls, from its `start` on, in one process."""
        try:
            jobs, results = self._waiting or self._fork()
            self._waiting = None
            try:
                _write_and_close(jobs, marshal.dumps(job))
                run = Watch(self, results).collect(job["start"], budgets, deadline)
            finally:
                os.close(results)
            if job["start"] + len(run.frames) == len(budgets):
                self._waiting = self._fork()  # ends this one, too
            else:
                run.exit_code = self._end(kill=run.overran)
        except (OSError, EOFError) as error:
            raise SandboxError(f"the sandbox broke off: {type(error).__name__}: {error}") from error
        return run

    def _fork(self) -> tuple[int, int]:
        """Have the next process forked; where to write its job, and where to read its results."""
        jobs_theirs, jobs = os.pipe2(os.O_CLOEXEC)
        results, results_theirs = os.pipe2(os.O_CLOEXEC)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            socket.send_fds(self._control, [NEXT], [jobs_theirs, results_theirs, null])
        except OSError:
            os.close(jobs)
            os.close(results)
            raise
        finally:
            os.close(jobs_theirs)
            os.close(results_theirs)
            os.close(null)
        return jobs, results

    def ask_process(self) -> int:
        """A pidfd of the process that runs, or has just ended, for the caller to close."""
        self._control.send(ASK)
        message, descriptors, _, _ = socket.recv_fds(self._control, len(PROCESS), 1)
        if message != PROCESS or not descriptors:
            raise EOFError("the zygote is gone")
        return descriptors[0]

    def _end(self, *, kill: bool) -> int:
        """Wait for the process to be gone, killing it if it lingers; its exit code."""
        process = self.ask_process()
        try:
            if kill or not _readable(process, _END_SECONDS):
                with contextlib.suppress(ProcessLookupError):  # it may end by itself at this very moment
                    signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)
        self._control.send(WAIT)
        message = self._control.recv(len(ENDED) + CODE_SIZE)
        if not message.startswith(ENDED):
            raise EOFError("the zygote is gone")
        return int.from_bytes(message[len(ENDED) :], "little", signed=True)


class Watch:
    """Collects the frames of one process and keeps its time."""

    def __init__(self, zygote: Zygote, results: int) -> None:
        self._zygote = zygote
        self._results = results
        self._limits = zygote.limits
        self._buffer = bytearray()
        self._at = 0
        """Where in the buffer the next frame begins."""
        self._ended = False
        """Whether the process has closed its end, or has sent what no runner sends."""
        self._cpu = 0.0
        """That the process had used at `_cpu_read`."""
        self._cpu_read = self._started = time.monotonic()
        self._next_call = False
        """Whether a call has begun since the clock was last restarted."""

    def collect(self, start: int, budgets: list[int], deadline: float) -> Run:
        """The frames of a job's calls from `start` on, as far as they come."""
        run = Run(frames=[])
        self._deadline = deadline
        for index in range(start, len(budgets)):
            frame = self._next_result(run, index, max(budgets[index], _LARGEST_DETAIL))
            if frame is None:
                run.overran = not self._ended and not run.broken
                break
            run.frames.append(frame)
            self._next_call = True
        return run

    def _next_result(self, run: Run, index: int, largest: int) -> tuple[bytes, bytes] | None:
        """The result of the call; None if it does not come. Notes in `run` what else is said before it."""
        while (frame := self._next_frame(largest)) is not None:
            kind, at, payload = frame
            if at == index and kind in _RESULTS:
                return kind, payload
            if kind == CONFINED and not run.confined:
                run.confined = True
            elif kind == LOADED and not run.loaded and not run.frames:
                run.loaded = True
            else:
                self._ended = True  # not what the runner sends: the answer has tampered with it, and is done
                if kind == BROKEN and not run.confined:
                    run.broken = payload.decode("utf-8", "replace")
                return None
        return None

    def _next_frame(self, largest: int) -> tuple[bytes, int, bytes] | None:
        """The next frame; None when time is up or the process has closed its end."""
        buffer = self._buffer
        while True:
            begin = self._at + HEADER.size
            if len(buffer) >= begin:
                kind, index, length = HEADER.unpack_from(buffer, self._at)
                if length > largest:
                    self._ended = True
                    return None
                if len(buffer) >= begin + length:
                    self._at = begin + length
                    return kind, index, bytes(buffer[begin : self._at])
            if not self._read_more():
                return None

    def _read_more(self) -> bool:
        """Wait for data and add it to the buffer; False when time is up or the process has closed its end."""
        if self._next_call:
            self._restart_clock()
        if not self._wait():
            return False
        part = os.read(self._results, 1 << 16)
        self._ended = not part
        del self._buffer[: self._at]
        self._at = 0
        self._buffer += part
        return bool(part)

    def _restart_clock(self) -> None:
        self._next_call = False
        self._started = time.monotonic()
        if self._started - self._cpu_read > _STALE_SECONDS:
            _, self._cpu = self._look()
            self._cpu_read = self._started

    def _wait(self) -> bool:
        """Wait for data; False when the call has had its time, which data that trickles in does not prolong."""
        limits = self._limits
        ends = min(self._started + limits.call_seconds, self._deadline)
        latest = min(
            self._started + _STARVED * limits.call_seconds,
            self._deadline + (_STARVED - 1) * limits.total_seconds,
        )
        now = time.monotonic()
        if now >= latest:
            return False
        if _readable(self._results, max(ends - now, 0)):
            return True
        while time.monotonic() < latest and self._starved():
            if _readable(self._results, _LOOK_AGAIN_SECONDS):
                return True
        return _readable(self._results, 0)  # it may have ended while it was looked at

    def _starved(self) -> bool:
        """Whether the machine, not the code, is why the call takes so long."""
        state, cpu = self._look()
        in_call = cpu - self._cpu
        return state == "R" and in_call < self._limits.call_seconds and cpu < self._limits.total_seconds

    def _look(self) -> tuple[str, float]:
        """The scheduler's letter for the process, and the CPU seconds it has used."""
        process = self._zygote.ask_process()
        try:
            return _process_state(process)
        finally:
            os.close(process)


def _readable(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read within the time; the end of a process, in the case of a pidfd."""
    poll = select.poll()  # not `select`, which knows the first 1024 descriptors only
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _process_state(process: int) -> tuple[str, float]:
    """The scheduler's letter for the process behind a pidfd, and the CPU seconds it has used."""
    try:
        info = Path(f"/proc/self/fdinfo/{process}").read_text()
        pid = next(line.split()[1] for line in info.splitlines() if line.startswith("Pid:"))
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, StopIteration):
        return "?", 0.0
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _write_and_close(descriptor: int, content: bytes) -> None:
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError:
        pass  # the process is gone already; reading its results will tell
    finally:
        os.close(descriptor)
