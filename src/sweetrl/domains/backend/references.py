"""The reference's results on the hidden tests, and how each test is split between the answer's process and ours.

The reference runs once per task, in processes of its own. Of the ways to split a test the first one is taken that
gives the reference the result of the whole test: where that fails (the reference returns an object that is more than
its plain form, or one without any) the answer's process has to evaluate more of the test.
"""

import ast
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeGuard

import msgspec
from msgspec import Struct

from sweetrl.domains.backend.calls import as_expression, functions_of, task_functions
from sweetrl.domains.backend.helpers import harmless_helpers, mentions, with_imports
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.backend.splits import ANSWER, KNOWN, Split, harmless_imports, ways_to_split
from sweetrl.errors import SandboxError
from sweetrl.sandbox import (
    NOT_RUN,
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
from sweetrl.sandbox.inside.encoding import LAZY
from sweetrl.syntax import parse_expression

_SMALLEST_BUDGET = 4096
_ROUNDS = 3
"""How often a part of a test may take too long before it counts as one that never ends."""


class Expected(Struct, frozen=True):
    """The reference's result on one hidden test."""

    name: str
    split: Split
    result: Result
    """What the subject of the split returned."""
    value: Any = None
    """The subject's value, decoded, if the reference returned something usable."""
    outcome: Any = None
    """The value of the whole test for the reference: what the answer must reach."""
    known: bytes = b"null"
    """Values of the reference that the rest of the test uses, encoded."""
    widened: bool = False
    """Whether the answer's process evaluates more than a call of its functions."""
    flaw: str = ""
    """Why nothing can pass this test; empty if something can."""

    @property
    def budget(self) -> int:
        """Bytes beyond which an answer's result cannot be the right one."""
        size = len(self.result.encoded) if isinstance(self.result, Returned) else 0
        return max(_SMALLEST_BUDGET, 4 * size)


class Rest(Struct, frozen=True):
    """The part of a test that is evaluated out of the answer's reach, with the values that it is about."""

    expression: str
    answer: bytes
    known: bytes


class _Test(Struct, frozen=True):
    """A hidden test, the functions that it asks the answer for, and the ways to split it, the whole test last."""

    name: str
    functions: frozenset[str]
    splits: tuple[Split, ...]

    @property
    def is_call(self) -> bool:
        """Whether it is a plain call of one of the functions by its name."""
        tree = parse_expression(self.splits[-1].subject)
        return (
            isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in self.functions
        )


class _Tried(Struct, frozen=True):
    """The result of the rest of a split for the reference."""

    known: bytes
    outcome: Result


def run_reference(
    request: str,
    secret: BackendSecret,
    sandbox: Sandbox,
    *,
    scope: Literal["module", "official"],
    seed: int = 0,
) -> tuple[Expected, ...]:
    """The reference's results, one per test. `SandboxError` if the sandbox fails."""
    tests = _tests(request, secret, scope)
    splits = dict.fromkeys(split for test in tests for split in test.splits)
    whole = dict.fromkeys(test.splits[-1].subject for test in tests)
    parts = dict.fromkeys(part for split in splits for part in (split.subject, split.known) if part)
    # Separately, as some parts never end (`f(i) for i in count()`) and may use up their own time only.
    found: dict[str, Result] = {}
    for calls in (tuple(whole), tuple(part for part in parts if part not in whole)):
        program = Program(sources=(secret.reference,), calls=calls, scope=scope, seed=seed)
        found |= zip(calls, _run_patiently(program, sandbox), strict=True)
    tried = _try(secret, sandbox, splits, found)
    return tuple(_expect(test, tried, found) for test in tests)


def _run_patiently(program: Program, sandbox: Sandbox) -> list[Result]:
    """The results of the calls of trusted code. Calls that took too long are tried again: the machine may be busy.

    A part that seems to fail makes the answer's process evaluate more of the test, so load must not decide.
    """
    results: list[Result] = [NOT_RUN] * len(program.calls)
    for _ in range(_ROUNDS):
        left = [at for at, result in enumerate(results) if isinstance(result, TimedOut)]
        for _ in results:
            if not left:
                break
            found = sandbox.run(_selected(program, left))
            for at, result in zip(left, found, strict=True):
                results[at] = result
            left = [at for at in left if results[at] == NOT_RUN]
    if NOT_RUN in results:
        raise SandboxError("this machine is too busy to run a reference")
    return results


def _selected(program: Program, indices: list[int]) -> Program:
    values = tuple(program.values[at] for at in indices) if program.values else ()
    return msgspec.structs.replace(program, calls=tuple(program.calls[at] for at in indices), values=values)


def _tests(request: str, secret: BackendSecret, scope: Literal["module", "official"]) -> list[_Test]:
    wanted = frozenset(task_functions(request, secret.tests))
    imported = frozenset(harmless_imports(secret.reference))
    helpers = harmless_helpers(secret.reference) - wanted
    # In the paper's scorer, tests have the imports of the answer alone.
    source = "" if scope == "official" else secret.reference
    return [
        _Test(name, functions, tuple(_with_imports(split, source) for split in ways))
        for name, test in secret.tests.items()
        for expression in [as_expression(test)]
        for functions in [functions_of(expression, wanted)]
        for ways in [ways_to_split(expression, functions, imported, helpers)]
    ]


def _with_imports(split: Split, source: str) -> Split:
    return msgspec.structs.replace(split, subject=with_imports(split.subject, source))


def evaluate_rests(secret: BackendSecret, sandbox: Sandbox, rests: Sequence[Rest]) -> list[Result]:
    """Evaluate the rests of tests in a process without the answer: nor with the reference, but for its helpers."""
    return sandbox.run(_program(secret, rests)) if rests else []


def _program(secret: BackendSecret, rests: Sequence[Rest]) -> Program:
    imports = harmless_imports(secret.reference)
    used = [line for name, line in imports.items() if any(name in rest.expression for rest in rests)]
    helped = any(mentions(rest.expression, harmless_helpers(secret.reference)) for rest in rests)
    return Program(
        sources=(secret.reference if helped else "\n".join(used),),
        calls=tuple(rest.expression for rest in rests),
        values=tuple({ANSWER: rest.answer, KNOWN: rest.known} for rest in rests),
    )


def readable(result: Result) -> TypeGuard[Returned]:
    """Whether a call returned something that can be decoded."""
    if not isinstance(result, Returned):
        return False
    try:
        decode(result.encoded)
    except BadValue:
        return False
    return True


def _comes_to(result: Result, outcome: Any) -> bool:
    """Whether a call returned a value that equals the decoded one."""
    return readable(result) and same(decode(result.encoded), outcome)


def _try(
    secret: BackendSecret, sandbox: Sandbox, splits: Iterable[Split], found: dict[str, Result]
) -> dict[Split, _Tried]:
    """Evaluate the rest of every split whose parts have plain forms."""
    rests = {}
    for split in splits:
        subject, known = found[split.subject], found.get(split.known, _NOTHING)
        if split.rest is not None and readable(subject) and readable(known):
            rests[split] = Rest(split.rest, subject.encoded, known.encoded)
    outcomes = _run_patiently(_program(secret, list(rests.values())), sandbox) if rests else []
    return {
        split: _Tried(rest.known, outcome)
        for (split, rest), outcome in zip(rests.items(), outcomes, strict=True)
    }


_NOTHING = Returned(b"null")


def _expect(test: _Test, tried: dict[Split, _Tried], found: dict[str, Result]) -> Expected:
    whole = test.splits[-1]
    result = found[whole.subject]
    if flaw := _flaw(result):
        return Expected(test.name, whole, result, flaw=flaw)
    assert isinstance(result, Returned)
    outcome = decode(result.encoded)
    for split in test.splits[:-1]:
        attempt, subject = tried.get(split), found[split.subject]
        if attempt is not None and _comes_to(attempt.outcome, outcome) and readable(subject):
            value = decode(subject.encoded)
            return Expected(
                test.name,
                split,
                subject,
                value,
                outcome,
                attempt.known,
                widened=split.subject != test.splits[0].subject,
            )
    return Expected(test.name, whole, result, outcome, outcome, widened=not test.is_call)


def _flaw(result: Result) -> str:
    """Why a test with this result for the reference is passed by nothing; empty if something can pass it."""
    if not readable(result):
        return f"the reference {_trouble(result)}"
    if LAZY in result.encoded:
        return "the reference is no use: it returns an iterator or a view, which equals nothing"
    outcome = decode(result.encoded)
    if outcome is None:
        return "the reference returns None, which earns nothing"
    # Decoded twice: a list that holds NaN equals itself, but no other list.
    return "" if same(outcome, decode(result.encoded)) else "the reference returns NaN, which equals nothing"


def _trouble(result: Result) -> str:
    match result:
        case Raised(error):
            return f"raises {error}"
        case TimedOut(detail):
            return f"takes too long: {detail}"
        case Unusable(reason):
            return f"is no use: {reason}"
        case Returned():
            return "returns an unreadable value"
