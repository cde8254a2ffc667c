"""The zygote: a warm, confined interpreter that forks one process per job and does nothing else.

It never sees a job's data: each job is two pipe ends handed over the control socket, which the forked process
reads and writes. Its own memory, which that process inherits, holds only the standard library.
"""

import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location

from . import confinement, runner

PRELOADED = (
    *("bisect", "collections", "copy", "datetime", "functools", "heapq", "itertools", "json", "math"),
    *("operator", "random", "re", "string", "time", "typing"),
)
"""What answers import most, so that they find it ready. Each costs memory that every fork must map."""

# Not os.fork, which runs the interpreter's hooks in the new process (a new random seed, new locks): 0.4 ms for
# things that a process with one thread, about to be confined, does not need.
_fork = ctypes.PyDLL(None).fork

_FORK_ATTEMPTS, _FORK_PAUSE = 200, 0.05

READY, ENDED, PROCESS = b"R", b"E", b"P"
MESSAGE = struct.Struct("<ciqq")
"""To the parent: what happened; exit code, CPU microseconds and peak bytes of memory of the ended process."""
JOB, ASK = b"J", b"A"
"""From the parent: run this; hand me the running process."""


class NamedPackages:
    """Finds the few third-party packages that answers may import, without a path that shows all of them."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: object = None, _target: object = None) -> ModuleSpec | None:
        """The package's location, for the import system."""
        folder = self._folders.get(name) if path is None else None
        if folder is None:
            return None
        return spec_from_file_location(name, f"{folder}/__init__.py", submodule_search_locations=[folder])


def main() -> None:
    """Confine this process as told on the command line, then serve jobs until the parent goes away."""
    settings = json.loads(sys.argv[1])
    control = socket.socket(fileno=settings["control"])
    sys.argv[:] = [runner.MODULE_NAME]
    sys.path[:] = [entry for entry in sys.path if entry != settings["home"]]
    sys.meta_path.append(NamedPackages(settings["packages"]))
    for name in (*PRELOADED, *settings["packages"]):
        importlib.import_module(name)
    os.environ.clear()  # not earlier: some of it is for the packages
    os.chdir("/")
    confinement.volunteer_for_the_oom_killer()
    confinement.limit_resources(settings["memory_bytes"])
    confinement.drop_privileges(settings["library"])
    confinement.refuse_inspection()
    if settings["landlock"]:
        confinement.confine_files(settings["readable"])
    if settings["filter"]:
        confinement.filter_system_calls()
    _warm_up()
    os.dup2(0, 2)  # complaints until here went to the parent, from here on to /dev/null
    gc.collect()
    gc.freeze()  # keeps the collector from touching, and so copying, the pages shared with forks
    gc.disable()
    control.sendall(MESSAGE.pack(READY, 0, 0, 0))
    while _serve_one(control, settings["cpu_seconds"]):
        pass


def _warm_up() -> None:
    """Run a job here, so that what Python sets up on first use is there before every fork."""
    code = compile("def f(x):\n    return [x, {'a': (1.5, 'b')}]\n", "<warm-up>", "exec")
    job = {
        "sources": [],
        "calls": ["f(1)"] * 3,
        "budgets": [4096] * 3,
        "values": (),
        "scope": "module",
        "seed": 0,
        "start": 0,
    }
    runner.run_calls(code, job, runner.Results(1, at_once=False))


def _serve_one(control: socket.socket, cpu_seconds: int) -> bool:
    """Fork a process for one job and wait for its end. False when the parent is gone."""
    message, descriptors, _, _ = socket.recv_fds(control, 1, 2)
    if message == ASK:  # for a process that has ended in the meantime
        control.sendall(MESSAGE.pack(PROCESS, 0, 0, 0))
        return True
    if message != JOB:
        return False
    job_fd, result_fd = descriptors
    parent = os.getpid()
    pid = _fork_patiently()
    if pid == 0:
        control.close()
        runner.run_job(job_fd, result_fd, cpu_seconds, parent)
    os.close(job_fd)
    os.close(result_fd)
    process = os.pidfd_open(pid)
    alive = _watch(control, process)
    os.close(process)
    _, status, usage = os.wait4(pid, 0)
    if alive:
        microseconds = int((usage.ru_utime + usage.ru_stime) * 1e6)
        exit_code = os.waitstatus_to_exitcode(status)
        control.sendall(MESSAGE.pack(ENDED, exit_code, microseconds, usage.ru_maxrss * 1024))
    return alive


def _fork_patiently() -> int:
    """Fork, waiting for room where other processes have used up what the machine allows."""
    for _ in range(_FORK_ATTEMPTS):
        pid: int = _fork()
        if pid >= 0:
            return pid
        time.sleep(_FORK_PAUSE)
    raise OSError("cannot fork")


def _watch(control: socket.socket, process: int) -> bool:
    """Wait until the process has ended. Kill it, and return False, if the parent goes away before."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.register(control, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if process in ready:
            return True
        if control.recv(1) != ASK:
            signal.pidfd_send_signal(process, signal.SIGKILL)
            return False
        socket.send_fds(control, [MESSAGE.pack(PROCESS, 0, 0, 0)], [process])
