"""What the reference makes of a test decides how much of it the answer's process evaluates."""

from collections.abc import Iterator

import pytest

from sweetrl.domains.backend.references import Expected, Rest, evaluate_rests, readable, run_reference
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.errors import SandboxError
from sweetrl.sandbox import NOT_RUN, Limits, Program, Result, Sandbox, TimedOut, decode


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def expected(sandbox: Sandbox, reference: str, test: str, *, request: str = "def f(x)") -> Expected:
    secret = BackendSecret(reference=reference, tests={"test1": test})
    (found,) = run_reference(request, secret, sandbox, scope="module")
    return found


CHOSEN = {
    "plain": ("def f(x): return [x, 2]", "f(1)[0] == 1", "f(1)", False),
    "a generator": ("def f(x): yield x", "list(f(1)) == [1]", "f(1)", False),
    "a generator in a loop": ("def f(x): yield x", "[y for y in f(1)] == [1]", "f(1)", False),
    "a generator without an end": (
        "def f(x):\n    while True: yield x",
        "next(f(1)) == 1",
        "next(f(1))",
        True,
    ),
    "views": (
        "def f(x): return {x: 2}.items()",
        "len(f(1)) == 1 and dict(f(1)) == {1: 2}",
        "(f(1), f(1))",
        False,
    ),
    "a closure": ("def f(x): return lambda y: x + y", "f(1)(2) == 3", "f(1)(2)", True),
    "a method": (
        "class S:\n    def go(self, x): return x\n",
        "S().go(3) == 3",
        "S().go(3)",
        True,
    ),
    "a function as an argument": (
        "def f(x): return -x",
        "sorted([1, 2], key=f) == [2, 1]",
        "sorted([1, 2], key=f)",
        True,
    ),
    "more than its plain form": (
        "from collections import Counter\ndef f(x): return Counter(x)",
        "f('aab').most_common(1) == [('a', 2)]",
        "f('aab').most_common(1)",
        True,
    ),
    "a default that the plain form lacks": (
        "from collections import defaultdict\ndef f(x): return defaultdict(int, {x: 1})",
        "f(1)[7] == 0",
        "f(1)[7]",
        True,
    ),
    "a type of its own": (
        "class A: pass\ndef f(x): return A()",
        "isinstance(f(1), A)",
        "isinstance(f(1), A)",
        True,
    ),
    "state between calls": (
        "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)",
        "f(0) + 10 * f(0) == 21",
        "(f(0), f(0))",
        False,
    ),
    "a condition that guards a call": (
        "def f(x): return 1 / x",
        "f(1) == 1 or f(0)",
        "f(1) == 1 or f(0)",
        True,
    ),
    "a call that changes its argument": (
        "def f(x): x.sort()",
        "(lambda x: f(x) is None and x == [1, 2])([2, 1])",
        "((x := [2, 1]), f(x), x)",
        True,
    ),
    "an assertion": ("def f(x): return [x]", "assert f(1) == [1], 'one'", "f(1)", False),
    "several assertions": ("def f(x): return [x]", "assert f(1)\nassert f(2) == [2]", "(f(1), f(2))", False),
    "helpers of the reference": (
        "def f(x): return x / 3\ndef close(a, b): return abs(a - b) < 1e-9",
        "close(f(3), 1) and close(f(6), 2)",
        "(f(3), f(6))",
        False,
    ),
    "a class of the reference that compares": (
        "class Near:\n    def __init__(self, x): self.x = x\n    def __eq__(self, y): return abs(self.x - y) < 1\n"
        "def f(x): return x / 3",
        "f(3) == Near(1)",
        "f(3)",
        False,
    ),
    "a helper that might run an answer's text": (
        "def f(x): return str(x)\ndef run(text): return eval(text)",
        "run(f(3)) == 3",
        "run(f(3))",
        True,
    ),
    "a module that is imported in the test": (
        "def f(x): return x / 3",
        "__import__('math').isclose(f(3), 1)",
        "f(3)",
        False,
    ),
    "a module that is imported in the test and may do anything": (
        "def f(x): return str(x)",
        "__import__('pickle').loads(__import__('pickle').dumps(f(3))) == '3'",
        "__import__('pickle').loads(__import__('pickle').dumps(f(3)))",
        True,
    ),
    "what the reference imports for an argument": (
        "from datetime import date as day\nimport os.path as p, decimal\ndef f(x): return [x.year, 1]",
        "f(day(2024, 1, p.sep == '/')) == [2024, decimal.Decimal(1)]",
        "f(__import__('datetime', None, None, ['date'])"
        ".date(2024, 1, __import__('os.path', None, None, ['']).sep == '/'))",
        False,
    ),
    "modules": (
        "import math\ndef f(x): return x / 3",
        "math.isclose(f(1), 0.3333333333333)",
        "f(1)",
        False,
    ),
}


@pytest.mark.parametrize("case", CHOSEN)
def test_the_smallest_subject_that_keeps_the_result_is_chosen(sandbox: Sandbox, case: str) -> None:
    reference, test, subject, widened = CHOSEN[case]
    found = expected(sandbox, reference, test, request="" if "S()" in test else "def f(x)")
    assert (found.flaw, found.split.subject, found.widened) == ("", subject, widened)


def test_the_outcome_is_that_of_the_whole_test(sandbox: Sandbox) -> None:
    found = expected(sandbox, "def f(x): return x * 2", "(f(1), f(2) > 3)")
    assert (found.value, found.outcome) == ((2, 4), (2, True))


def test_what_the_reference_alone_has_is_kept_for_the_rest(sandbox: Sandbox) -> None:
    found = expected(sandbox, "def f(x): return x\ndef g(x): return [x, (1,)]", "f(3) in g(3)")
    assert (found.split.rest, decode(found.known)) == ("answer_value in known_value", [3, (1,)])


def test_rests_are_evaluated_on_decoded_values_without_reference_or_answer(sandbox: Sandbox) -> None:
    reference = "import math\ndef f(x): return eval('1')"
    secret = BackendSecret(reference=reference, tests={"test1": "f(1)"})
    rests = [
        Rest("answer_value + (known_value,)", b'{"tuple": [1]}', b'{"decimal": "0.5"}'),
        Rest("math.floor(answer_value)", b"2.5", b"null"),
        Rest("f(answer_value)", b"1", b"null"),
    ]
    first, second, third = evaluate_rests(secret, sandbox, rests)
    assert readable(first)
    assert first.encoded == b'{"tuple":[1,{"decimal":"0.5"}]}'
    assert readable(second)
    assert second.encoded == b"2"
    assert "NameError" in str(third)


def test_parts_of_tests_that_never_end_cost_no_whole_test_its_time() -> None:
    reference = "import itertools\ndef f(x): return 2 * x"
    tests = {f"test{least}": f"next(i for i in itertools.count() if f(i) > {least})" for least in range(5)}
    with Sandbox(limits=Limits(call_seconds=0.2, total_seconds=1.2)) as sandbox:
        secret = BackendSecret(reference=reference, tests=tests)
        found = run_reference("def f(x)", secret, sandbox, scope="module")
    assert [(each.flaw, each.outcome) for each in found] == [("", least // 2 + 1) for least in range(5)]


def test_parts_that_never_end_leave_the_other_parts_their_time() -> None:
    endless = {f"test{least}": f"next(i for i in itertools.count() if f(i) > {least})" for least in range(3)}
    secret = BackendSecret(
        reference="import itertools\ndef f(x): return 2 * x", tests=endless | {"last": "f(1) == 2"}
    )
    with Sandbox(limits=Limits(call_seconds=0.2, total_seconds=1.2)) as sandbox:
        *_, last = run_reference("def f(x)", secret, sandbox, scope="module")
    assert (last.split.subject, last.widened) == ("f(1)", False)


def test_a_part_that_a_busy_machine_delays_is_tried_again(sandbox: Sandbox) -> None:
    class Busy:
        """Has no time for parts and rests of tests when they are first run."""

        def __init__(self) -> None:
            self.seen: set[str] = set()

        def run(self, program: Program) -> list[Result]:
            late = [call for call in program.calls if "==" not in call or "answer_value" in call]
            delayed = {*late} - self.seen
            self.seen |= delayed
            delays = (TimedOut("more than 1 s"), NOT_RUN)
            return [
                delays[at % 2] if call in delayed else result
                for at, (call, result) in enumerate(zip(program.calls, sandbox.run(program), strict=True))
            ]

    for test in ("f(1) == 2", "f(1) == 2 == f(1)", "f(3) == 6"):
        found = expected(Busy(), "def f(x): return 2 * x", test)  # type: ignore[arg-type]
        assert (found.widened, found.flaw) == (False, "")


def test_a_machine_that_never_has_time_leaves_the_reference_unjudged() -> None:
    class Overloaded:
        def run(self, program: Program) -> list[Result]:
            return [NOT_RUN] * len(program.calls)

    with pytest.raises(SandboxError, match="too busy"):
        expected(Overloaded(), "def f(x): return x", "f(1) == 1")  # type: ignore[arg-type]


def test_a_helper_of_the_reference_judges_values_without_the_answer(sandbox: Sandbox) -> None:
    reference = "def close(a, b): return abs(a - b) < 1e-9\ndef f(x): return x / 3"
    found = expected(sandbox, reference, "close(f(3), 1)")
    assert (found.split.rest, found.outcome) == ("close(answer_value, 1)", True)
    secret = BackendSecret(reference=reference, tests={"test1": "close(f(3), 1)"})
    right, wrong = evaluate_rests(
        secret, sandbox, [Rest(str(found.split.rest), value, b"null") for value in (b"1.0", b"2.0")]
    )
    assert readable(right)
    assert readable(wrong)
    assert (right.encoded, wrong.encoded) == (b"true", b"false")


def test_official_rules_leave_the_imports_to_the_answer(sandbox: Sandbox) -> None:
    secret = BackendSecret(
        reference="import math\ndef f(x): return x", tests={"test1": "f(math.floor(2.5)) == 2"}
    )
    (found,) = run_reference("def f(x)", secret, sandbox, scope="official")
    assert found.split.subject == "f(math.floor(2.5))"
