"""The parent's side of a zygote: starting it, handing it a job, and telling time.

One `Zygote` runs one job at a time. A job ends in one of four ways, none of which can be mistaken for another:
all results are in; the process died; it overran a call's time; or the sandbox itself failed (`SandboxError`).
"""

import contextlib
import json
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from sweetrl.errors import SandboxError
from sweetrl.sandbox.inside.runner import BROKEN, CONFINED, HEADER, LOADED, RAISED, UNUSABLE, VALUE
from sweetrl.sandbox.inside.zygote import ASK, ENDED, JOB, MESSAGE, READY
from sweetrl.sandbox.isolation import Isolation, available_isolation

HOME = Path(__file__).parent
"""The folder that holds the package `inside`."""
_ENVIRONMENT = {"PYTHONPATH": str(HOME), "LC_ALL": "C.UTF-8", "TZ": "UTC", "OPENBLAS_NUM_THREADS": "1"}
# Asked for here, once: `sysconfig` gives threads that ask first, and at the same time, half an answer.
_MULTIARCH, _LIBRARY_FOLDER, _SHARED_LIBRARY = sysconfig.get_config_vars("MULTIARCH", "LIBDIR", "INSTSONAME")
_START_SECONDS = 30.0
_END_SECONDS = 1.0
_LARGEST_DETAIL = 2048
"""Bytes that the description of an error may take, however small the budget of its call."""
_STARVED = 4.0
"""How many times its limit a call may take while the machine keeps it from running."""
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
        self, isolation: Isolation, limits: Limits, packages: tuple[str, ...], hash_seed: int
    ) -> None:
        self.limits = limits
        self.unfiltered = isolation is Isolation.UNSAFE
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            settings = _settings(isolation, limits, packages, theirs.fileno())
            self._process = subprocess.Popen(  # noqa: S603  our own interpreter
                _command(isolation, settings),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env=_ENVIRONMENT | {"PYTHONHASHSEED": str(hash_seed)},
                start_new_session=True,
            )
        self._control = ours
        self._early_end: int | None = None
        self._await_ready()

    def _await_ready(self) -> None:
        try:
            kind, *_ = self._receive(_START_SECONDS)
        except (OSError, EOFError):
            kind = b""
        if kind != READY:
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
        if self._process.stderr is not None:
            self._process.stderr.close()

    def run(self, job: dict[str, Any], budgets: list[int], deadline: float) -> Run:
        """Run the job's calls, from its `start` on, in one process."""
        try:
            jobs, results = self.fork(JOB)
            try:
                _write_and_close(jobs, marshal.dumps(job | {"unfiltered": self.unfiltered}))
                run = Watch(self, results).collect(job["start"], budgets, deadline)
                run.exit_code = self.end(kill=run.overran)
            finally:
                os.close(results)
        except (OSError, EOFError) as error:
            raise SandboxError(f"the sandbox broke off: {type(error).__name__}: {error}") from error
        return run

    def fork(self, kind: bytes) -> tuple[int, int]:
        """Start a process; where to write its jobs, and where to read their results."""
        jobs_theirs, jobs = os.pipe2(os.O_CLOEXEC)
        results, results_theirs = os.pipe2(os.O_CLOEXEC)
        try:
            socket.send_fds(self._control, [kind], [jobs_theirs, results_theirs])
        except OSError:
            os.close(jobs)
            os.close(results)
            raise
        finally:
            os.close(jobs_theirs)
            os.close(results_theirs)
        return jobs, results

    def ask_process(self) -> int | None:
        """A pidfd of the running process, for the caller to close; None if it has just ended."""
        self._control.sendall(ASK)
        self._control.settimeout(_START_SECONDS)
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE.size, 1)
            if not message:
                raise EOFError("the zygote is gone")
            if message[:1] == ENDED:
                self._early_end = MESSAGE.unpack(message)[1]
            else:
                return descriptors[0] if descriptors else None

    def end(self, *, kill: bool) -> int:
        """Wait for the process to be gone, killing it if it lingers; its exit code."""
        if not kill:
            try:
                return self._exit_code(_END_SECONDS)
            except TimeoutError:
                pass
        process = self.ask_process()
        if process is not None:
            with contextlib.suppress(ProcessLookupError):  # it may end by itself at this very moment
                signal.pidfd_send_signal(process, signal.SIGKILL)
            os.close(process)
        return self._exit_code(_START_SECONDS)

    def _exit_code(self, timeout: float) -> int:
        if self._early_end is None:
            kind, self._early_end, *_ = self._receive(timeout)
            if kind != ENDED:
                raise EOFError("the zygote speaks out of turn")
        exit_code, self._early_end = self._early_end, None
        return exit_code

    def _receive(self, timeout: float) -> tuple[bytes, int, int, int]:
        self._control.settimeout(timeout)
        message = self._control.recv(MESSAGE.size)
        if len(message) != MESSAGE.size:
            raise EOFError("the zygote is gone")
        kind, exit_code, microseconds, peak = MESSAGE.unpack(message)
        return kind, exit_code, microseconds, peak


class Watch:
    """Collects the frames of one process, of one job after another, and keeps its time."""

    def __init__(self, zygote: Zygote, results: int) -> None:
        self._zygote = zygote
        self.results = results
        self._limits = zygote.limits
        self._buffer = bytearray()
        self._cpu = 0.0
        """That the process had used at `_cpu_read`."""
        self._cpu_read = time.monotonic()

    def collect(self, start: int, budgets: list[int], deadline: float) -> Run:
        """The frames of a job's calls from `start` on, as far as they come."""
        run = Run(frames=[])
        self._deadline = deadline
        self._buffer.clear()
        self._restart_clock()
        self._cpu_before_job = self._cpu
        while start + len(run.frames) < len(budgets):
            index = start + len(run.frames)
            frame = self._next_frame(largest=max(budgets[index], _LARGEST_DETAIL))
            if frame is None:
                run.overran = not self._ended
                break
            kind, at, payload = frame
            if kind == CONFINED and not run.confined:
                run.confined = True
            elif kind == BROKEN and not run.confined:
                run.broken = payload.decode("utf-8", "replace")
                break
            elif kind == LOADED and not run.loaded and not run.frames:
                run.loaded = True
            elif kind in (VALUE, RAISED, UNUSABLE) and at == index:
                run.frames.append((kind, payload))
                self._restart_clock()
            else:
                break  # not what the runner sends: the answer has tampered with it, and is done
        return run

    def _restart_clock(self) -> None:
        self._started = time.monotonic()
        self._ended = False
        if self._started - self._cpu_read > _STALE_SECONDS:
            _, self._cpu = self._look()
            self._cpu_read = self._started

    def _next_frame(self, largest: int) -> tuple[bytes, int, bytes] | None:
        """The next frame; None when time is up or the process has closed its end."""
        while True:
            if len(self._buffer) >= HEADER.size:
                kind, index, length = HEADER.unpack_from(self._buffer)
                if length > largest:
                    self._ended = True
                    return None
                if len(self._buffer) >= HEADER.size + length:
                    payload = bytes(self._buffer[HEADER.size : HEADER.size + length])
                    del self._buffer[: HEADER.size + length]
                    return kind, index, payload
            if not self._wait():
                return None
            part = os.read(self.results, 1 << 16)
            if not part:
                self._ended = True
                return None
            self._buffer += part

    def _wait(self) -> bool:
        """Wait for data; False when the call has had its time."""
        poll = select.poll()
        poll.register(self.results, select.POLLIN)
        while True:
            now = time.monotonic()
            ends = min(self._started + self._limits.call_seconds, self._deadline)
            if poll.poll(max(0.0, ends - now) * 1000 if now < ends else 50):
                return True
            if time.monotonic() >= ends and not self._starved():
                return False

    def _starved(self) -> bool:
        """Whether the machine, not the code, is why the call takes so long."""
        spent = time.monotonic() - self._started
        if spent >= _STARVED * self._limits.call_seconds:
            return False
        state, cpu = self._look()
        in_call, in_job = cpu - self._cpu, cpu - self._cpu_before_job
        return state == "R" and in_call < self._limits.call_seconds and in_job < self._limits.total_seconds

    def _look(self) -> tuple[str, float]:
        """The scheduler's letter for the process, and the CPU seconds it has used."""
        process = self._zygote.ask_process()
        if process is None:
            return "", self._cpu
        try:
            return _process_state(process)
        finally:
            os.close(process)


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


def _command(isolation: Isolation, settings: dict[str, Any]) -> list[str]:
    # -s -S: no site-packages; -P: no working directory on the path; -B: nothing written.
    # Not -I, which would ignore PYTHONHASHSEED: sets must come out in one order everywhere.
    python = [sys.executable, "-s", "-S", "-P", "-B", "-m", "inside", json.dumps(settings)]
    if isolation is not Isolation.BUBBLEWRAP:
        return python
    wrapper = [str(available_isolation().bubblewrap), "--unshare-all", "--new-session", "--dev", "/dev"]
    for path in [*_interpreter_paths(), *settings["readable"]]:
        wrapper += ["--ro-bind-try", path, path]
    return [*wrapper, *python]


def _settings(
    isolation: Isolation, limits: Limits, packages: tuple[str, ...], control: int
) -> dict[str, Any]:
    folders = _package_folders(packages)
    return {
        "control": control,
        "home": str(HOME),
        "library": sysconfig.get_path("stdlib"),
        "landlock": isolation is Isolation.LANDLOCK,
        "filter": isolation is not Isolation.UNSAFE,
        "readable": [*_library_paths(), *folders.values(), *(f"{path}.libs" for path in folders.values())],
        "packages": folders,
        "memory_bytes": limits.memory_bytes,
        "cpu_seconds": int(limits.total_seconds * _STARVED) + 1,
    }


def _package_folders(packages: tuple[str, ...]) -> dict[str, str]:
    """Where the named packages lie, those that are installed."""
    found = {}
    for name in packages:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found[name] = spec.submodule_search_locations[0]
    return found


def _library_paths() -> list[str]:
    """What the standard library consists of: its entries, never the site-packages below it."""
    library = Path(sysconfig.get_path("stdlib")).resolve()
    entries = [
        str(entry) for entry in library.iterdir() if entry.name not in ("site-packages", "dist-packages")
    ]
    # Interpreters that bring their own libraries (conda's, for example) keep them next to the standard library.
    brought = map(str, Path(str(_LIBRARY_FOLDER)).glob("lib*.so*"))
    shared = [f"/usr/lib/{_MULTIARCH}", f"/lib/{_MULTIARCH}", *brought]
    return [
        *entries,
        *shared,
        "/lib64",
        "/etc/ld.so.cache",
        "/usr/share/zoneinfo",
        "/dev/null",
        "/dev/urandom",
    ]


def _interpreter_paths() -> list[str]:
    """What else starting the interpreter takes, inside namespaces that hold nothing."""
    executable = Path(sys.executable)
    paths = [executable, executable.resolve(), executable.parent.parent / "pyvenv.cfg", HOME]
    return [*(str(path) for path in paths), f"{_LIBRARY_FOLDER}/{_SHARED_LIBRARY}"]
