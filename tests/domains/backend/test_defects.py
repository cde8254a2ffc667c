"""Every kind of defect is found in a task that has it, named truly, and not in a sound one."""

from collections.abc import Iterator

import pytest

from sweetrl.domains.backend.defects import DefectFinder, Reason
from sweetrl.domains.backend.scorer import BackendScorer
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.sandbox import Limits, Sandbox
from sweetrl.types import Task

SOUND = ("def f(x):\n    return x + 1", {"t1": "f(1)", "t2": "f(2)"})
DEFECTIVE = {
    "missing module": (Reason.MISSING_MODULE, "import bs4\ndef f(x): return x", {"t1": "f(1)", "t2": "f(2)"}),
    "raises": (Reason.DOES_NOT_RUN, "def f(x): return 1 / x", {"t1": "f(1)", "t2": "f(0)"}),
    "syntax": (Reason.DOES_NOT_RUN, "def f(x: return", {"t1": "f(1)", "t2": "f(2)"}),
    "unknown name": (Reason.DOES_NOT_RUN, "def f(x): return x", {"t1": "f(1)", "t2": "g(2)"}),
    "writes a file": (Reason.DOES_NOT_RUN, "def f(x): return open('x', 'w').write(x)", {"t1": "f('a')"}),
    "loops": (Reason.TOO_SLOW, "def f(x):\n    while x: pass\n    return x", {"t1": "f(0)", "t2": "f(1)"}),
    "generator": (Reason.UNUSABLE_RESULT, "def f(x): return (i for i in x)", {"t1": "f([1])", "t2": "f([])"}),
    "none": (Reason.RETURNS_NONE, "def f(x): print(x)", {"t1": "f(1)", "t2": "f(2)"}),
    "nan": (Reason.RETURNS_NAN, "def f(x): return [x, float('nan')]", {"t1": "f(1)", "t2": "f(2)"}),
    "random": (
        Reason.RANDOM,
        "import random\ndef f(x): return random.randint(0, 10**9) + x",
        {"t1": "f(1)", "t2": "f(2)"},
    ),
    "set order": (
        Reason.HASH_SEED,
        "def f(x): return list({w + x for w in ('a', 'b', 'c', 'd', 'e', 'f')})",
        {"t1": "f('1')", "t2": "f('2')"},
    ),
    "clock": (
        Reason.NONDETERMINISTIC,
        "import time\ndef f(x): return x + time.perf_counter_ns()",
        {"t1": "f(1)", "t2": "f(2)"},
    ),
    "address": (Reason.NONDETERMINISTIC, "def f(x): return [x, str(object())]", {"t1": "f(1)", "t2": "f(2)"}),
    "helper": (
        Reason.HELPER_ONLY,
        "def helper(x): return x\ndef f(x): return helper(x) + 1",
        {"t1": "f(1)", "t2": "f(2)", "t3": "helper(5)"},
    ),
    "comparison": (
        Reason.ANY_OBJECT_PASSES,
        "def f(x): return x",
        {"t1": "f(1) == 1", "t2": "f(2) == 3", "t3": "f(5) == 5"},
    ),
    "wrapped": (
        Reason.ANY_OBJECT_PASSES,
        "def f(x): return [x]",
        {"t1": "f(1)", "t2": "f(3)", "t3": "bool(f(2))"},
    ),
    "answer decides": (
        Reason.ANSWER_DECIDES,
        "class A: pass\ndef f(x): return A() if x else [x]",
        {"t1": "f(0)", "t2": "isinstance(f(2), A)", "t3": "f(0)"},
    ),
    "answer decides in a loop": (
        Reason.ANSWER_DECIDES,
        "class A: pass\ndef f(x): return A() if x else [x]",
        {"t1": "f(0)[0] + 5", "t2": "all([isinstance(f(i), A) for i in (1, 2)])"},
    ),
    "constant": (Reason.CONSTANT_PASSES, "def f(x): return x > 100", {"t1": "f(1)", "t2": "f(2)"}),
    "constant in order": (
        Reason.CONSTANT_PASSES,
        "def f(x): return x",
        {"t1": "f(8) > 3", "t2": "len([f(9)]) == 1 and f(9) >= 8"},
    ),
    "constant text": (Reason.CONSTANT_PASSES, "def f(x): return 'ok'", {"t1": "f(1)", "t2": "f(2)"}),
}


@pytest.fixture(scope="module")
def finder() -> Iterator[DefectFinder]:
    limits = Limits(call_seconds=0.5)
    with Sandbox(workers=1, limits=limits) as main, Sandbox(workers=1, limits=limits, hash_seed=1) as other:
        scorer = BackendScorer(main)
        yield DefectFinder(scorer, main, other)
        scorer.close()


def make_task(source: str, tests: dict[str, str]) -> Task:
    request = "Do it. The signature of the function is: def f(x)"
    return Task(id="t", domain="backend", request=request, secret=BackendSecret(source, tests))


@pytest.mark.parametrize("case", DEFECTIVE)
def test_a_defect_is_named(case, finder):
    reason, source, tests = DEFECTIVE[case]
    found = finder.find(make_task(source, tests))
    assert reason in [defect.reason for defect in found], found
    assert all(defect.detail and defect.task_id == "t" for defect in found)


@pytest.mark.parametrize("case", [name for name in DEFECTIVE if name != "syntax"])
def test_only_the_true_reason_is_given(case, finder):
    reason, source, tests = DEFECTIVE[case]
    assert {defect.reason for defect in finder.find(make_task(source, tests))} == {reason}


def test_a_sound_task_has_no_defect(finder):
    assert finder.find(make_task(*SOUND)) == []


def test_sound_comparisons_are_no_defect(finder):
    assert finder.find(make_task("def f(x): return x + 1", {"t1": "f(1) == 2", "t2": "f(2) == 3"})) == []


def test_the_first_test_concerned_is_named(finder):
    tests = {"t1": "f(1)", "t2": "f(0)", "t3": "f(0)"}
    [defect] = finder.find(make_task("def f(x): return 1 / x", tests))
    assert (defect.test, "ZeroDivisionError" in defect.detail) == ("t2", True)


def test_a_seeded_random_reference_still_passes_itself(finder):
    _, source, tests = DEFECTIVE["random"]
    checks = finder._scorer.checks(make_task(source, tests), source)
    assert [check.outcome for check in checks] == ["passed", "passed"]
