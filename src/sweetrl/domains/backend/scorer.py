"""Scoring Python answers: hidden tests, run in the sandbox, compared here with the reference's results.

An answer's process knows neither the reference nor its results. It evaluates the calls of its own functions; what a
test does with their values is evaluated in another process, on decoded values. A test passes if its result equals that
of the reference, as `==` has it on plain values. None and errors earn nothing, even where the reference does the same.
"""

import asyncio
import functools
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum

from msgspec import Struct

from sweetrl.domains.backend import official
from sweetrl.domains.backend.answers import MAX_ANSWER_CHARACTERS, readings
from sweetrl.domains.backend.calls import main_function
from sweetrl.domains.backend.references import Expected, Rest, evaluate_rests, readable, run_reference
from sweetrl.domains.backend.secret import backend_secret
from sweetrl.errors import SandboxError
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
from sweetrl.types import Check, Ending, Episode, Failure, Outcome, Task, Verdict, digest

_REFERENCES_KEPT = 4096


class Mode(StrEnum):
    """How an answer is read and run."""

    MODULE = "module"
    """As a module: helpers, classes and imports work."""
    OFFICIAL = "official"
    """As the paper's scorer does, with its scope and word filters."""


class _Prepared(Struct, frozen=True):
    """Everything that all answers to a task share."""

    function: str
    expected: tuple[Expected, ...]
    calls: tuple[str, ...]
    budgets: tuple[int, ...]


class BackendScorer:
    """A `Scorer` for backend tasks. Close the sandbox after it."""

    def __init__(self, sandbox: Sandbox, *, mode: Mode = Mode.MODULE, workers: int = 1) -> None:
        self._sandbox = sandbox
        self._mode = mode
        self._prepared: OrderedDict[tuple[str, ...], _Prepared] = OrderedDict()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="score")

    @property
    def name(self) -> str:
        """Name and version; the version changes whenever a verdict could."""
        return f"backend-{self._mode}/2"

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
        prepared = self._prepare(task)
        refusal = self._refusal(answer)
        if refusal or answer is None:
            return tuple(Check(item.name, Outcome.UNUSABLE, refusal) for item in prepared.expected)
        results = self._sandbox.run(self._program(answer, prepared))
        return self.compare(task, prepared.expected, results)

    def compare(
        self, task: Task, expected: Sequence[Expected], results: Sequence[Result]
    ) -> tuple[Check, ...]:
        """The outcome of each hidden test whose subject had this result."""
        return tuple(map(_check, expected, results, self._outcomes(task, expected, results)))

    def expected(self, task: Task) -> tuple[Expected, ...]:
        """The reference's results, computed once per task."""
        return self._prepare(task).expected

    def _prepare(self, task: Task) -> _Prepared:
        secret = backend_secret(task)
        key = (task.request, secret.reference, *secret.tests, *secret.tests.values())
        if (known := self._prepared.get(key)) is not None:
            return known
        expected = self.run_reference(task, self._sandbox)
        self._prepared[key] = prepared = _Prepared(
            function=main_function(task.request, secret.tests),
            expected=expected,
            calls=tuple(item.split.subject for item in expected),
            budgets=tuple(item.budget for item in expected),
        )
        if len(self._prepared) > _REFERENCES_KEPT:
            self._prepared.popitem(last=False)
        return prepared

    def run_reference(self, task: Task, sandbox: Sandbox, *, seed: int = 0) -> tuple[Expected, ...]:
        """The reference's results in the given sandbox."""
        return run_reference(task.request, backend_secret(task), sandbox, scope=self._mode.value, seed=seed)

    def _outcomes(self, task: Task, expected: Sequence[Expected], results: Sequence[Result]) -> list[Result]:
        """The result of each whole test: the subject's result where there is no more to it, or nothing to evaluate."""
        outcomes = list(results)
        rests = {
            index: Rest(item.split.rest, result.encoded, item.known)
            for index, (item, result) in enumerate(zip(expected, results, strict=True))
            if item.split.rest is not None and result != item.result and readable(result)
        }
        evaluated = evaluate_rests(backend_secret(task), self._sandbox, list(rests.values()))
        for index, outcome in zip(rests, evaluated, strict=True):
            outcomes[index] = outcome
        return outcomes

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

    def _program(self, answer: str, prepared: _Prepared) -> Program:
        official_rules = self._mode is Mode.OFFICIAL
        return Program(
            sources=(official.reading(answer),) if official_rules else readings(answer, prepared.function),
            defines=prepared.function,
            calls=prepared.calls,
            scope=self._mode.value,
            budgets=prepared.budgets,
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


def _check(expected: Expected, result: Result, outcome: Result) -> Check:
    """The verdict on one test, by the results of its subject and of the whole test."""
    if expected.flaw and isinstance(result, Returned):
        return Check(expected.name, Outcome.UNUSABLE, expected.flaw)
    if result == expected.result and isinstance(result, Returned):
        return Check(expected.name, Outcome.PASSED)  # the same bytes decode to the same value
    match outcome if isinstance(result, Returned) else result:
        case Raised(error):
            return Check(expected.name, Outcome.RAISED, error)
        case TimedOut(detail):
            return Check(expected.name, Outcome.TIMED_OUT, detail)
        case Unusable(reason):
            return Check(expected.name, Outcome.UNUSABLE, reason)
        case Returned(encoded):
            return _compare(expected, encoded)


def _compare(expected: Expected, encoded: bytes) -> Check:
    try:
        value = decode(encoded)
    except BadValue as error:
        return Check(expected.name, Outcome.UNUSABLE, f"unreadable result: {error}")
    equal = value is not None and same(value, expected.outcome)
    return Check(expected.name, Outcome.PASSED if equal else Outcome.WRONG)
