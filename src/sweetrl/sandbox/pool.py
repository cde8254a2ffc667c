"""`Sandbox`: run programs that nobody trusts, many at a time."""

import functools
import queue
import time
from types import CodeType
from typing import Any, Literal, Self

from msgspec import Struct

from sweetrl.errors import SandboxError, UsageError
from sweetrl.sandbox.inside.runner import RAISED, VALUE
from sweetrl.sandbox.isolation import Isolation, choose_isolation
from sweetrl.sandbox.values import decode
from sweetrl.sandbox.zygotes import Limits, Run, Zygote

_MAX_DETAIL = 400
"""Characters of what a process says about a failure; it may lie about their number, too."""


class Program(Struct, frozen=True, kw_only=True):
    """Untrusted code and the calls to make of it."""

    sources: tuple[str, ...]
    """Readings of the same answer, best first; the first one that compiles and defines `defines` is run."""
    defines: str = ""
    calls: tuple[str, ...]
    """Expressions, each evaluated after running the source anew."""
    scope: Literal["module", "official"] = "module"
    """`official` runs the source as the paper's scorer does: inside a function."""
    seed: int = 0
    """What `random` is seeded with before each call."""
    values: tuple[dict[str, bytes], ...] = ()
    """For each call the encoded values that it finds under these names, as if the source had set them."""
    budgets: tuple[int, ...] = ()
    """Largest encoded result of each call in bytes; empty for the limit's."""

    def __post_init__(self) -> None:
        """Refuse one text where several belong, whose characters would be run one by one."""
        texts = (self.sources, self.calls)
        if any(isinstance(each, str) or not all(isinstance(text, str) for text in each) for each in texts):
            raise UsageError(
                "a program's sources and calls are tuples of texts: Program(sources=(code,), calls=('f(1)',)); "
                "run_code takes one call after the other: run_code(code, 'f(1)', 'f(2)')"
            )


class Returned(Struct, frozen=True):
    """The call returned."""

    encoded: bytes

    @property
    def value(self) -> Any:
        """The result, as a plain value; `BadValue` where it is none."""
        return decode(self.encoded)


class Raised(Struct, frozen=True):
    """The call raised, or took its process down."""

    error: str


class TimedOut(Struct, frozen=True):
    """The call took too long."""

    detail: str


class Unusable(Struct, frozen=True):
    """The call returned something that has no plain form or is too large."""

    reason: str


Result = Returned | Raised | TimedOut | Unusable
NOT_RUN = TimedOut("not run: the time for all calls was used up")


_Kind = tuple[Isolation, Limits, tuple[str, ...], int, bool]
"""All that zygotes differ by."""


class _Warm:
    """Zygotes of closed sandboxes, if this process keeps them: the next sandbox starts none."""

    def __init__(self) -> None:
        self.kept: dict[_Kind, list[Zygote]] | None = None

    def take(self, kind: _Kind) -> Zygote:
        """A zygote that was kept, or a new one."""
        if idle := (self.kept or {}).get(kind):
            return idle.pop()
        isolation, limits, packages, hash_seed, preload = kind
        return Zygote(isolation, limits, packages, hash_seed, preload=preload)

    def put(self, kind: _Kind, zygote: Zygote) -> None:
        """Keep a zygote that runs nothing."""
        assert self.kept is not None
        self.kept.setdefault(kind, []).append(zygote)


_warm = _Warm()


def keep_warm() -> None:
    """From now on, sandboxes that are closed leave their processes to the next ones. They end with this process."""
    _warm.kept = _warm.kept or {}


class _Worker:
    """What runs one program at a time; its processes are started when first needed."""

    def __init__(self) -> None:
        self.zygotes: dict[_Kind, Zygote] = {}

    def kill(self) -> None:
        """End the processes under whoever waits for them; may be called from any thread."""
        for zygote in list(self.zygotes.values()):
            zygote.kill()

    def close(self) -> None:
        """Also release what they held; only for the thread that has the worker."""
        while self.zygotes:
            self.zygotes.popitem()[1].close()


class Sandbox:
    """A pool of zygotes. Thread-safe; `run` blocks until a worker is free. Use as a context manager."""

    def __init__(
        self,
        *,
        workers: int = 1,
        limits: Limits | None = None,
        isolation: Isolation | None = None,
        packages: tuple[str, ...] = ("numpy",),
        hash_seed: int = 0,
    ) -> None:
        """`packages` are the third-party packages that code may import, where they are installed.

        `hash_seed` fixes the order of sets of strings, as PYTHONHASHSEED does.
        """
        self.limits = limits or Limits()
        self.isolation = choose_isolation(isolation)
        self._packages = packages
        self._hash_seed = hash_seed
        self._closed = False
        self._free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._workers: list[_Worker] = [_Worker() for _ in range(workers)]
        for worker in self._workers:
            self._free.put(worker)

    def run(self, program: Program) -> list[Result]:
        """One result per call. `SandboxError` if the sandbox, as opposed to the code, fails twice."""
        worker = self._free.get()
        try:
            try:
                return self._attempt(worker, program)
            except SandboxError:
                return self._attempt(worker, program)
        finally:
            self._free.put(worker)

    def close(self) -> None:
        """End all processes, those of running programs included; they end in a `SandboxError`."""
        if self._closed:
            return
        self._closed = True
        if _warm.kept is not None:
            self._leave_warm()
        for worker in self._workers:
            worker.kill()
        # A worker belongs to the thread that runs a program on it, until that thread hands it back.
        idle = [self._free.get() for _ in self._workers]
        for worker in idle:
            worker.close()
            self._free.put(worker)  # for those who still wait for one, to find the sandbox closed

    def _leave_warm(self) -> None:
        """Keep the processes of workers that run nothing."""
        for _ in range(self._free.qsize()):
            worker = self._free.get()
            while worker.zygotes:
                _warm.put(*worker.zygotes.popitem())
            self._free.put(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _attempt(self, worker: _Worker, program: Program) -> list[Result]:
        if self._closed:
            raise SandboxError("the sandbox is closed")
        try:
            return self._run_to_end(self._zygote(worker, program), program)
        except BaseException:
            # Whatever happened, the processes are in an unknown state: the next program gets new ones.
            worker.close()
            raise

    def _zygote(self, worker: _Worker, program: Program) -> Zygote:
        """One that has loaded what the program mentions, and little else: what is loaded makes forks dearer."""
        packages = tuple(name for name in self._packages if any(name in source for source in program.sources))
        preload = any("import" in source for source in program.sources)
        kind = (self.isolation, self.limits, packages, self._hash_seed, preload)
        if kind not in worker.zygotes:
            worker.zygotes[kind] = _warm.take(kind)
        return worker.zygotes[kind]

    def _budgets(self, program: Program) -> list[int]:
        return list(program.budgets) or [self.limits.result_bytes] * len(program.calls)

    def _run_to_end(self, zygote: Zygote, program: Program) -> list[Result]:
        """Run all calls, in as many processes as it takes: one, unless a call kills or overruns its process."""
        careful = False
        results: list[Result] = []
        count = len(program.calls)
        budgets = self._budgets(program)
        deadline = time.monotonic() + self.limits.total_seconds
        while len(results) < count:
            if time.monotonic() >= deadline:
                results += [NOT_RUN] * (count - len(results))
                break
            job = _job(program, budgets, start=len(results), careful=careful)
            run = zygote.run(job, budgets, deadline)
            results += [_result(kind, payload) for kind, payload in run.frames]
            if len(results) < count and careful:
                results += self._unfinished(run, count - len(results))
            # A process that gathers results may take finished ones down with it: from here on, one by one.
            careful = True
        return results

    def _unfinished(self, run: Run, left: int) -> list[Result]:
        """What the process's end means for the call it was at, and perhaps for the rest."""
        if not run.confined:  # its word can be trusted: a careful process says so before it runs the code
            raise SandboxError(f"a process could not be confined: {run.broken or 'it ended early'}")
        if not run.overran:
            return [Raised(_death(run.exit_code))]
        limit = TimedOut(f"more than {self.limits.call_seconds:g} s")
        # Code that does not even load within the limit will not do so for the next call either.
        return [limit] if run.loaded else [limit] * left


def _job(program: Program, budgets: list[int], *, start: int, careful: bool) -> dict[str, Any]:
    return {
        "sources": list(program.sources),
        "defines": program.defines,
        "calls": [_compiled(call) for call in program.calls],
        "scope": program.scope,
        "seed": program.seed,
        "values": program.values,
        "budgets": budgets,
        "start": start,
        "careful": careful,
    }


@functools.lru_cache(maxsize=1 << 15)
def _compiled(call: str) -> CodeType | str:
    """The call as code, which saves compiling it for every answer; as text if the error is to come out there."""
    try:
        return compile(call, "<call>", "eval", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return call


def _result(kind: bytes, payload: bytes) -> Result:
    if kind == VALUE:
        return Returned(payload)
    text = payload.decode("utf-8", "replace")[:_MAX_DETAIL]
    return Raised(text) if kind == RAISED else Unusable(text)


def _death(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"the process was killed by signal {-exit_code}"
    return "the process ended without a result"
