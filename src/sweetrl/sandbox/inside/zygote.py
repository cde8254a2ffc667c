"""The zygote: a warm, confined interpreter that forks one process per job and does nothing else.

The process of the next job is forked as soon as the one before is gone, and waits for its job. The zygote never sees a
job's data: each job is two pipe ends handed over the control socket, which the forked process reads and writes. Its own
memory, which that process inherits, holds only the standard library.

Every page of memory that a forked process writes to has to be copied for it first, and a count of references is
written whenever an object is used. So the zygote loads little and uses few objects between two forks.
"""

from __future__ import annotations

import _socket
import ctypes
import gc
import marshal
import os
import struct
import sys
import time

from . import confinement, runner, warmth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

PRELOADED = (
    *("bisect", "collections", "copy", "datetime", "functools", "heapq", "itertools", "json", "math"),
    *("operator", "random", "re", "string", "time", "typing"),
)
"""What answers import most, so that those that import anything find it ready."""

# Not os.fork, which runs the interpreter's hooks in the new process (a new random seed, new locks): 0.4 ms for
# things that a process with one thread, about to be confined, does not need.
_fork = ctypes.PyDLL(None).fork

_FORK_ATTEMPTS, _FORK_PAUSE = 200, 0.05
_SIGKILL = 9

READY, ENDED, PROCESS = b"R", b"E", b"P"
"""To the parent: serving; the process has ended, with this exit code; here is the running process."""
CODE_SIZE = 4
NEXT, ASK, WAIT = b"N", b"A", b"W"
"""From the parent: end the process, if there is one, and fork the next; hand me the process; wait for its end."""
_DESCRIPTORS = struct.Struct("@iii")
_ROOM = _socket.CMSG_SPACE(_DESCRIPTORS.size)


class NamedPackages:
    """Finds the few third-party packages that answers may import, without a path that shows all of them."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: object = None, _target: object = None) -> ModuleSpec | None:
        """The package's location, for the import system."""
        folder = self._folders.get(name) if path is None else None
        if folder is None:
            return None
        from importlib.util import spec_from_file_location

        return spec_from_file_location(name, f"{folder}/__init__.py", submodule_search_locations=[folder])


def main() -> None:
    """Confine this process as told on the command line, then serve jobs until the parent goes away."""
    settings = marshal.loads(bytes.fromhex(sys.argv[1]))  # noqa: S302  the parent wrote it
    control = _socket.socket(fileno=settings["control"])
    sys.argv[:] = [runner.MODULE_NAME]
    sys.path[:] = [entry for entry in sys.path if entry != settings["home"]]
    sys.meta_path.append(NamedPackages(settings["packages"]))
    for name in (*(PRELOADED if settings["preload"] else ()), *settings["packages"]):
        __import__(name)
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
    rules = confinement.ForkRules(settings["cpu_seconds"], filtered=settings["filter"])
    warmth.run_sample_jobs()
    os.dup2(0, 2)  # complaints until here went to the parent, from here on to /dev/null
    gc.collect()
    gc.freeze()  # keeps the collector from touching, and so copying, the pages shared with forks
    gc.disable()
    warmth.fill_gaps()
    control.send(READY)
    _serve(control, rules)


def _serve(control: _socket.socket, rules: confinement.ForkRules) -> None:
    """Fork a process for each job, one after the other. Returns when the parent is gone."""
    child = 0
    while True:
        message, passed, _, _ = control.recvmsg(1, _ROOM)
        if message == NEXT:
            if child > 0:
                os.kill(child, _SIGKILL)
                os.waitpid(child, 0)
            child = _start(control, passed[0][2], rules)
        elif message == WAIT:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            child = 0
            control.send(ENDED + code.to_bytes(CODE_SIZE, "little", signed=True))
        elif message == ASK:
            process = os.pidfd_open(child)
            rights = process.to_bytes(4, sys.byteorder)
            control.sendmsg([PROCESS], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
            os.close(process)
        else:
            return  # and the kernel kills the process that may be running


def _start(control: _socket.socket, passed: bytes, rules: confinement.ForkRules) -> int:
    """Fork a process that reads its job from the first of the descriptors passed and writes to the second.

    The third is /dev/null, opened anew: its flags belong to all who share it, and would outlast the process.
    """
    job_fd, result_fd, null_fd = _DESCRIPTORS.unpack(passed)
    child = _fork_patiently()
    if child == 0:
        os.close(control.fileno())
        for descriptor in (0, 1, 2):
            os.dup2(null_fd, descriptor)
        os.close(null_fd)
        runner.run_job(job_fd, result_fd, rules)
    os.close(job_fd)
    os.close(result_fd)
    os.close(null_fd)
    return child


def _fork_patiently() -> int:
    """Fork, waiting for room where other processes have used up what the machine allows."""
    for _ in range(_FORK_ATTEMPTS):
        pid: int = _fork()
        if pid >= 0:
            return pid
        time.sleep(_FORK_PAUSE)
    raise OSError("cannot fork")
