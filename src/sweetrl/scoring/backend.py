"""Scoring Python answers: hidden calls, run in the sandbox, compared here with the reference's results.

The reference runs once per task in processes of its own; an answer's process knows neither its source nor its
results. A call passes if the answer's value equals the reference's as `==` has it on plain values. None and
errors earn nothing, even where the reference does the same.
"""

import asyncio
import functools
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any

from msgspec import Struct

from sweetrl.errors import DataError, SandboxError
from sweetrl.sandbox import (
    BadValue,
    Program,
    Raised,
    Result,
    Returned,
    Sandbox,
    TimedOut,
    Unusable,
    decode,
    same,
)
from sweetrl.scoring import official
from sweetrl.scoring.answers import MAX_ANSWER_CHARACTERS, readings
from sweetrl.scoring.calls import HiddenCall, main_function, split_calls
from sweetrl.types import BackendSecret, Check, Ending, Episode, Failure, Outcome, Task, Verdict, digest

_REFERENCES_KEPT = 4096
_SMALLEST_BUDGET = 4096


class Mode(StrEnum):
    """How an answer is read and run."""

    MODULE = "module"
    """As a module: helpers, classes and imports work."""
    OFFICIAL = "official"
    """As the paper's scorer does, with its scope and word filters."""


class Expected(Struct, frozen=True):
    """What the reference makes of one hidden call."""

    call: HiddenCall
    result: Result
    value: Any = None
    """Decoded, if the reference returned something usable."""
    other: Any = None
    """The other side of a comparison, decoded."""
    flaw: str = ""
    """Why nothing can pass this call; empty if something can."""

    @property
    def budget(self) -> int:
        """Bytes beyond which an answer's result cannot be the right one."""
        size = len(self.result.encoded) if isinstance(self.result, Returned) else 0
        return max(_SMALLEST_BUDGET, 4 * size)


class BackendScorer:
    """A `Scorer` for backend tasks. Close the sandbox after it."""

    def __init__(self, sandbox: Sandbox, *, mode: Mode = Mode.MODULE, workers: int = 1) -> None:
        self._sandbox = sandbox
        self._mode = mode
        self._references: OrderedDict[tuple[str, ...], tuple[Expected, ...]] = OrderedDict()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="score")

    @property
    def name(self) -> str:
        """Name and version; the version changes whenever a verdict could."""
        return f"backend-{self._mode}/1"

    async def score(self, task: Task, episode: Episode) -> Verdict:
        """Judge the episode's answer; unscored if it failed for reasons of ours, or the sandbox does."""
        judge = functools.partial(self.judge, task, episode)
        return await asyncio.get_running_loop().run_in_executor(self._threads, judge)

    def judge(self, task: Task, episode: Episode) -> Verdict:
        """`score` for callers without an event loop."""
        failure = episode.failure if episode.ending is Ending.FAILED else None
        if failure is None:
            try:
                return self._verdict(task, episode, self.checks(task, episode.answer))
            except SandboxError as error:
                failure = Failure("score", type(error).__name__, str(error))
        return self._verdict(task, episode, (), failure)

    def checks(self, task: Task, answer: str | None) -> tuple[Check, ...]:
        """The outcome of each hidden test. `SandboxError` if the sandbox fails."""
        expected = self.expected(task)
        refusal = self._refusal(answer)
        if refusal or answer is None:
            return tuple(Check(item.call.name, Outcome.UNUSABLE, refusal) for item in expected)
        results = self._sandbox.run(self._program(task, answer, expected))
        return tuple(_check(item, result) for item, result in zip(expected, results, strict=True))

    def expected(self, task: Task) -> tuple[Expected, ...]:
        """The reference's results, computed once per task."""
        secret = backend_secret(task)
        key = (secret.reference, *secret.tests, *secret.tests.values())
        if (known := self._references.get(key)) is not None:
            return known
        expected = self.run_reference(task, self._sandbox)
        self._references[key] = expected
        if len(self._references) > _REFERENCES_KEPT:
            self._references.popitem(last=False)
        return expected

    def run_reference(self, task: Task, sandbox: Sandbox, *, seed: int = 0) -> tuple[Expected, ...]:
        """The reference's results in the given sandbox."""
        secret = backend_secret(task)
        calls = split_calls(secret.tests)
        program = Program(
            sources=(secret.reference,),
            calls=(*(call.subject for call in calls), *(call.other or "None" for call in calls)),
            scope=self._mode.value,
            seed=seed,
        )
        results = sandbox.run(program)
        return tuple(map(_expect, calls, results[: len(calls)], results[len(calls) :]))

    def close(self) -> None:
        """End the threads; the sandbox is its owner's."""
        self._threads.shutdown(cancel_futures=True)

    def _refusal(self, answer: str | None) -> str:
        if answer is None or not answer.strip():
            return "no answer"
        if len(answer) > MAX_ANSWER_CHARACTERS:
            return f"the answer is longer than {MAX_ANSWER_CHARACTERS} characters"
        if self._mode is Mode.OFFICIAL and (word := official.forbidden_word(answer)):
            return f"official mode gives nothing to answers with {word!r} in them"
        return ""

    def _program(self, task: Task, answer: str, expected: Sequence[Expected]) -> Program:
        function = main_function(task.request, backend_secret(task).tests)
        sources = (official.reading(answer),) if self._mode is Mode.OFFICIAL else readings(answer, function)
        return Program(
            sources=sources,
            defines=function,
            calls=tuple(item.call.subject for item in expected),
            scope=self._mode.value,
            budgets=tuple(item.budget for item in expected),
        )

    def _verdict(
        self, task: Task, episode: Episode, checks: tuple[Check, ...], failure: Failure | None = None
    ) -> Verdict:
        passed = sum(check.outcome is Outcome.PASSED for check in checks)
        return Verdict(
            task_id=task.id,
            episode_id=episode.id,
            scorer=self.name,
            answer_digest=digest(episode.answer),
            reward=passed / len(checks) if failure is None else None,
            success=failure is None and passed == len(checks),
            checks=checks,
            failure=failure,
        )


def backend_secret(task: Task) -> BackendSecret:
    """The task's secret; an error that names the task if it is of the other kind."""
    if not isinstance(task.secret, BackendSecret):
        raise DataError(f"task {task.id} is a {task.kind} task; the backend scorer cannot judge it")
    return task.secret


def _expect(call: HiddenCall, result: Result, other: Result) -> Expected:
    if not isinstance(result, Returned) or not isinstance(other, Returned):
        broken = result if not isinstance(result, Returned) else other
        return Expected(call, result, flaw=f"the reference {_trouble(broken)}")
    try:
        value, right = decode(result.encoded), decode(other.encoded)
    except BadValue as error:
        return Expected(call, result, flaw=f"the reference returns an unreadable value: {error}")
    if call.other is None and value is None:
        return Expected(call, result, flaw="the reference returns None, which earns nothing")
    # Decoded twice: a list that holds NaN equals itself, but no other list.
    if call.other is None and not same(value, decode(result.encoded)):
        return Expected(call, result, flaw="the reference returns NaN, which equals nothing")
    return Expected(call, result, value, right)


def _trouble(result: Result) -> str:
    match result:
        case Raised(error):
            return f"raises {error}"
        case TimedOut(detail):
            return f"takes too long: {detail}"
        case Unusable(reason):
            return f"is no use: {reason}"
        case Returned():
            raise AssertionError("a returned value is no trouble")


def _check(expected: Expected, result: Result) -> Check:
    name = expected.call.name
    match result:
        case Raised(error):
            return Check(name, Outcome.RAISED, error)
        case TimedOut(detail):
            return Check(name, Outcome.TIMED_OUT, detail)
        case Unusable(reason):
            return Check(name, Outcome.UNUSABLE, reason)
        case Returned(encoded):
            return _compare(expected, encoded)


def _compare(expected: Expected, encoded: bytes) -> Check:
    name = expected.call.name
    if expected.flaw:
        return Check(name, Outcome.UNUSABLE, expected.flaw)
    if isinstance(expected.result, Returned) and encoded == expected.result.encoded:
        return Check(name, Outcome.PASSED)  # the same bytes decode to the same value
    try:
        value = decode(encoded)
    except BadValue as error:
        return Check(name, Outcome.UNUSABLE, f"unreadable result: {error}")
    if expected.call.other is None:
        equal = value is not None and same(value, expected.value)
    else:
        equal = same(value, expected.other) == same(expected.value, expected.other)
    return Check(name, Outcome.PASSED if equal else Outcome.WRONG)
