"""What a forked process does: read one job, run its calls, send one frame per result.

Frames are `kind (1 byte), index (2), length (4), payload`, in order. The process holds the untrusted code, the
calls, and nothing else: neither the reference nor what is expected. A forged frame therefore gains nothing.
"""

from __future__ import annotations

import builtins
import gc
import marshal
import os
import struct
import sys
import time

from . import confinement
from .decoding import decode_again
from .encoding import Unusable, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Callable
    from typing import Any

HEADER = struct.Struct("<cHI")
CONFINED, BROKEN, LOADED = b"C", b"B", b"L"
"""Rights are gone; they could not be given up; the code has been run once without a call."""
VALUE, RAISED, UNUSABLE = b"V", b"R", b"U"
MODULE_NAME = "answer"
_MAX_DETAIL = 300
_GATHER_SECONDS = 0.02

# Untrusted code may replace these names in their modules; this process then still ends as it should.
_write, _exit, _clock = os.write, os._exit, time.monotonic


def run_job(job_fd: int, result_fd: int, rules: confinement.ForkRules) -> None:
    """Give up the remaining rights, wait for a job, run it. Never returns."""
    results = Results(result_fd, at_once=True)
    try:
        rules.apply()
        job = marshal.loads(_read_all(job_fd))  # noqa: S302  the parent wrote it
        gc.enable()
    except BaseException as error:
        results.add(BROKEN, 0, _describe(error))
        _exit(1)
    try:
        results.at_once = job["careful"]
        # Up to this frame only trusted code has run: what fails before it is never the answer's fault, and
        # what fails after it always is.
        results.add(CONFINED, 0, b"")
        run_source(job, results)
        results.flush()
    finally:
        _exit(0)


def run_source(job: dict[str, Any], results: Results) -> None:
    """Compile the job's code and make its calls; one result for each."""
    try:
        code = _compile_first(job["sources"], job["defines"])
    except BaseException as error:
        for index in range(job["start"], len(job["calls"])):
            results.add(RAISED, index, _describe(error))
    else:
        _run_calls(code, job, results)


def _run_calls(code: types.CodeType, job: dict[str, Any], results: Results) -> None:
    """Evaluate the calls, each in a fresh load of the code."""
    start, calls = job["start"], job["calls"]
    load = _load_official if job["scope"] == "official" else _load_module
    seed = _seed_function(job["sources"])
    for index in range(start, len(calls)):
        try:
            if seed is not None:
                seed(job["seed"])
            scopes = load(code)
            if job["values"]:
                scopes[0].update({name: decode_again(value) for name, value in job["values"][index].items()})
            if index == start:
                results.add(LOADED, index, b"")
            value = eval(calls[index], *scopes)  # noqa: S307  that is what the sandbox is for
            kind, payload = VALUE, encode(value, job["budgets"][index])
        except Unusable as error:
            kind, payload = UNUSABLE, str(error).encode("utf-8", "replace")
        except BaseException as error:
            kind, payload = RAISED, _describe(error)
        results.add(kind, index, payload)


def _seed_function(sources: list[str]) -> Callable[[int], None] | None:
    """What seeds `random`, for code that mentions it; the others need not load it."""
    if not any("random" in source for source in sources):
        return None
    import random

    return random.seed


class Results:
    """The way back. Unless told to send at once, it gathers frames: each sent one wakes the parent."""

    def __init__(self, descriptor: int, *, at_once: bool) -> None:
        self.at_once = at_once
        self._descriptor = descriptor
        self._gathered = bytearray()
        self._flushed = _clock()

    def add(self, kind: bytes, index: int, payload: bytes) -> None:
        """Send a frame, now or soon."""
        self._gathered += HEADER.pack(kind, index, len(payload)) + payload
        if self.at_once or _clock() - self._flushed > _GATHER_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send what was gathered."""
        view = memoryview(bytes(self._gathered))
        self._gathered.clear()
        while view:
            view = view[_write(self._descriptor, view) :]
        self._flushed = _clock()


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts)


def _compile_first(sources: list[str], defines: str) -> types.CodeType:
    """The first source that compiles and mentions the function; failing that, the first that compiles."""
    fallback: types.CodeType | None = None
    complaint: BaseException = SyntaxError("empty answer")
    for position, source in enumerate(sources):
        try:
            code = compile(source, "<answer>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            complaint = error if position == 0 else complaint
            continue
        if not defines or defines in code.co_names:  # the names that the module's top level binds or uses
            return code
        fallback = fallback or code
    if fallback is None:
        raise complaint
    return fallback


def _load_module(code: types.CodeType) -> tuple[dict[str, Any], ...]:
    """Run the code as a module of its own, anew for each call."""
    module = type(sys)(MODULE_NAME)
    sys.modules[MODULE_NAME] = module
    module.__dict__["__builtins__"] = builtins
    exec(code, module.__dict__)  # noqa: S102
    return (module.__dict__,)


def _load_official(code: types.CodeType) -> tuple[dict[str, Any], ...]:
    """Run the code as the paper's scorer does: in a function's local scope, where its names are locals.

    Functions so defined do not see each other, nor top-level imports.
    """
    scope: dict[str, Any] = {"__builtins__": builtins, "__name__": MODULE_NAME}
    names: dict[str, Any] = {}
    exec(code, scope, names)  # noqa: S102
    return scope, names


def _describe(error: BaseException) -> bytes:
    kind = type(error).__name__[:80]
    try:
        return f"{kind}: {str(error)[:_MAX_DETAIL]}".encode("utf-8", "replace")
    except BaseException:  # the error's own __str__ is untrusted too
        return kind.encode("utf-8", "replace")
