"""Finding tasks that cannot measure what they should.

A published benchmark has references that do not run, results that change from run to run, and tests that a
constant passes. Each is named with its reason, so that figures can be given with and without them.
"""

import ast
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

from sweetrl.domains.backend.calls import called_names, main_function
from sweetrl.domains.backend.references import Expected
from sweetrl.domains.backend.scorer import BackendScorer
from sweetrl.domains.backend.secret import backend_secret
from sweetrl.domains.scoring import Defect
from sweetrl.sandbox import Program, Raised, Returned, Sandbox, TimedOut, Unusable, same
from sweetrl.sandbox.inside.encoding import LAZY, encode
from sweetrl.syntax import parse
from sweetrl.types import Outcome, Task


class Reason(StrEnum):
    """Defects of a task."""

    MISSING_MODULE = "missing_module"
    """The reference imports a package that the sandbox does not have."""
    DOES_NOT_RUN = "does_not_run"
    TOO_SLOW = "too_slow"
    UNUSABLE_RESULT = "unusable_result"
    """The reference returns something that has no plain form (a generator, an object of its own class)."""
    RETURNS_NONE = "returns_none"
    RETURNS_NAN = "returns_nan"
    RANDOM = "random"
    """The result depends on random numbers."""
    HASH_SEED = "hash_seed"
    """The result depends on the order of a set, which changes from one interpreter to the next."""
    NONDETERMINISTIC = "nondeterministic"
    """The result changes for another reason: the clock, an object's address."""
    HELPER_ONLY = "helper_only"
    """A test calls a helper that only the reference has."""
    ANY_OBJECT_PASSES = "any_object_passes"
    """A test is passed by values that have nothing to do with the right one."""
    ANSWER_DECIDES = "answer_decides"
    """A test asks yes or no about objects without a plain form, so the answer's own methods decide."""
    CONSTANT_PASSES = "constant_passes"
    """A function that always returns the same value passes every test."""


class DefectFinder:
    """Looks for defects of backend tasks, with the scorer's own runs of the references and a few more."""

    def __init__(self, scorer: BackendScorer, sandbox: Sandbox, other_hash_seed: Sandbox) -> None:
        """`other_hash_seed` is a sandbox like `sandbox` but for its `hash_seed`."""
        self._scorer = scorer
        self._sandbox = sandbox
        self._other = other_hash_seed

    def find(self, task: Task) -> list[Defect]:
        """The task's defects, each reason once. `SandboxError` if the sandbox fails."""
        expected = self._scorer.expected(task)
        found: dict[Reason, Defect] = {}
        for reason, test, detail in self._complaints(task, expected):
            found.setdefault(reason, Defect(task.id, reason, test, detail))
        return list(found.values())

    def _complaints(self, task: Task, expected: Sequence[Expected]) -> Iterator[tuple[Reason, str, str]]:
        for item in expected:
            if item.flaw:
                yield _reason_of(item), item.name, item.flaw
        yield from self._changing_results(task, expected)
        yield from _helper_tests(task)
        yield from self._empty_tests(task, expected)
        yield from self._credulous_tests(task, expected)
        if (constant := self._passing_constant(task, expected)) is not None:
            yield Reason.CONSTANT_PASSES, "", f"always returning {constant} passes every test"

    def _changing_results(
        self, task: Task, expected: Sequence[Expected]
    ) -> Iterator[tuple[Reason, str, str]]:
        changed = self._first_change(expected, self._scorer.run_reference(task, self._other, seed=1))
        if changed is None:
            return
        again = self._first_change(expected, self._scorer.run_reference(task, self._sandbox))
        reseeded = self._first_change(expected, self._scorer.run_reference(task, self._sandbox, seed=1))
        if again is not None:
            yield Reason.NONDETERMINISTIC, again, "the reference's result changes from run to run"
        elif any(_shows_address(item) for item in expected):
            yield Reason.NONDETERMINISTIC, changed, "the reference's result shows an object's address"
        elif reseeded is not None:
            yield Reason.RANDOM, reseeded, "the reference's result depends on random numbers"
        else:
            yield Reason.HASH_SEED, changed, "the reference's result depends on the order of a set"

    @staticmethod
    def _first_change(before: Sequence[Expected], after: Sequence[Expected]) -> str | None:
        """The first test whose sound result is another one now."""
        for old, new in zip(before, after, strict=True):
            if not old.flaw and (new.flaw or old.split != new.split or not same(old.value, new.value)):
                return old.name
        return None

    def _empty_tests(self, task: Task, expected: Sequence[Expected]) -> Iterator[tuple[Reason, str, str]]:
        """Tests that tell the right value from none of a few that have nothing to do with it."""
        if all(item.split.rest is None for item in expected):
            return
        passing = [self._passes(task, expected, value) for value in _UNRELATED]
        for item, *passes in zip(expected, *passing, strict=True):
            if item.split.rest is not None and all(passes):
                detail = f"{item.split.rest} is {item.outcome} for the reference, as for any other value"
                yield Reason.ANY_OBJECT_PASSES, item.name, detail[:300]

    def _credulous_tests(self, task: Task, expected: Sequence[Expected]) -> Iterator[tuple[Reason, str, str]]:
        """Tests of which the answer's process evaluates more than a call."""
        widened = [item for item in expected if not item.flaw and item.widened]
        if not widened:
            return
        for item in widened:
            if _yes_or_no(item.value):
                yield (
                    Reason.ANSWER_DECIDES,
                    item.name,
                    f"the answer's own methods decide {item.split.subject}"[:300],
                )
        probe = _CHAMELEON.format(function=main_function(task.request, backend_secret(task).tests))
        program = Program(sources=(probe,), calls=tuple(item.split.subject for item in widened))
        for item, result in zip(widened, self._sandbox.run(program), strict=True):
            if isinstance(result, Returned) and result == item.result:
                yield Reason.ANY_OBJECT_PASSES, item.name, "an object that agrees to everything passes"

    def _passing_constant(self, task: Task, expected: Sequence[Expected]) -> str | None:
        """A value that passes every test whatever the arguments, as text; None if no value does."""
        if any(item.flaw for item in expected):
            return None
        for constant in (False, 0, "", [], {}, *(item.value for item in expected[:2])):
            if all(self._passes(task, expected, constant)):
                return repr(constant)[:80]
        return None

    def _passes(self, task: Task, expected: Sequence[Expected], value: Any) -> list[bool]:
        """For each test, whether functions that always return the value pass it."""
        if all(item.split.rest is None and not item.widened for item in expected):
            return [same(value, item.outcome) for item in expected]
        names = called_names(backend_secret(task).tests)
        source = "".join(f"def {name}(*a, **k): return constant\n" for name in names)
        found = {"constant": encode(value, _LARGEST_CONSTANT)}
        calls = tuple(item.split.subject for item in expected)
        results = self._sandbox.run(Program(sources=(source,), calls=calls, values=(found,) * len(calls)))
        return [check.outcome is Outcome.PASSED for check in self._scorer.compare(task, expected, results)]


_UNRELATED = ("no such value", -98765.4321, ["no such value"])
_LARGEST_CONSTANT = 1 << 20


def _yes_or_no(value: Any) -> bool:
    """Whether a value consists of truth values only."""
    return isinstance(value, bool) or (
        isinstance(value, (list, tuple)) and bool(value) and all(map(_yes_or_no, value))
    )


_CHAMELEON = """
class Chameleon:
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __bool__(self): return True
    def __eq__(self, other): return True
    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
    def __len__(self): return 1
    def __iter__(self): return iter(())
    def __getitem__(self, key): return self
    def __round__(self, digits=None): return self
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __abs__ = __call__
    def __hash__(self): return 0
def {function}(*arguments, **options):
    return Chameleon()
"""
"""An answer that solves nothing, but passes any test that its result can influence."""


def _reason_of(item: Expected) -> Reason:
    match item.result:
        case Raised(error):
            missing = error.startswith(("ModuleNotFoundError", "ImportError"))
            return Reason.MISSING_MODULE if missing else Reason.DOES_NOT_RUN
        case TimedOut():
            return Reason.TOO_SLOW
        case Unusable():
            return Reason.UNUSABLE_RESULT
        case Returned(encoded) if LAZY in encoded:
            return Reason.UNUSABLE_RESULT
        case Returned(encoded):
            return Reason.RETURNS_NONE if encoded == b"null" else Reason.RETURNS_NAN


def _shows_address(item: Expected) -> bool:
    return isinstance(item.result, Returned) and b" at 0x" in item.result.encoded


def _helper_tests(task: Task) -> Iterator[tuple[Reason, str, str]]:
    secret = backend_secret(task)
    main = main_function(task.request, secret.tests)
    helpers = _defined_names(secret.reference) - {main}
    for name, expression in secret.tests.items():
        called = set(called_names({name: expression}))
        if main not in called and (only := sorted(called & helpers)):
            yield Reason.HELPER_ONLY, name, f"calls {only[0]}, which only the reference has"


def _defined_names(source: str) -> set[str]:
    tree = parse(source)
    return {
        item.name
        for item in (tree.body if tree else ())
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
