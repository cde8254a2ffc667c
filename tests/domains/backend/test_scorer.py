"""Verdicts: what passes, what does not, and when there is none."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweetrl.domains.backend.scorer import BackendScorer
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import DataError, SandboxError
from sweetrl.sandbox import Program, Result, Sandbox
from sweetrl.types import Ending, Episode, Failure, Outcome, Task, digest

KNOWN_DEFECTS = {"backend_dev-113", "backend_dev-379"}
"""One writes a database file, the other returns NaN."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=2) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def scorer(sandbox: Sandbox) -> Iterator[BackendScorer]:
    scorer = BackendScorer(sandbox, workers=2)
    yield scorer
    scorer.close()


def make_task(reference: str, *calls: str) -> Task:
    tests = {f"test{number}": call for number, call in enumerate(calls, 1)}
    return Task(
        id="task",
        domain="backend",
        request="def solve(x)",
        secret=BackendSecret(reference=reference, tests=tests),
    )


def make_episode(answer: str | None, **fields: Any) -> Episode:
    known = {"task_id": "task", "attempt": 0, "seed": 0, "agent": "a", "collaborator": "c", "request": "r"}
    known |= {"turns": (), "ending": Ending.ANSWERED, "answer": answer}
    return Episode(**(known | fields))


def outcomes(scorer: BackendScorer, task: Task, answer: str) -> list[Outcome]:
    return [check.outcome for check in scorer.checks(task, answer)]


def returning(expression: str) -> str:
    return f"def solve(x=0):\n    return {expression}\n"


EQUAL = [
    ("1", "True"),
    ("1", "1.0"),
    ("'a'", "'a'"),
    ("{'a': 1, 'b': [2]}", "{'b': [2.0], 'a': True}"),
    ("{1, 2}", "frozenset({2, 1})"),
    ("(1, 2)", "__import__('collections').namedtuple('P', 'x y')(1, 2)"),
    ("{'a': 1}", "__import__('collections').Counter('a')"),
    ("0.5", "__import__('fractions').Fraction(1, 2)"),
    ("10**50", "10**50"),
    ("float('inf')", "float('inf')"),
]
UNEQUAL = [
    ("[1, 2]", "(1, 2)"),
    ("1", "'1'"),
    ("'a'", "b'a'"),
    ("0.1 + 0.2", "0.3"),
    ("1", "None"),
    ("{}", "[]"),
    ("False", "None"),
    ("0", "''"),
]


@pytest.mark.parametrize(("right", "answer"), EQUAL)
def test_what_equals_the_references_value_passes(scorer: BackendScorer, right: str, answer: str) -> None:
    assert outcomes(scorer, make_task(returning(right), "solve()"), returning(answer)) == [Outcome.PASSED]


@pytest.mark.parametrize(("right", "answer"), UNEQUAL)
def test_what_does_not_is_wrong(scorer: BackendScorer, right: str, answer: str) -> None:
    assert outcomes(scorer, make_task(returning(right), "solve()"), returning(answer)) == [Outcome.WRONG]


@pytest.mark.parametrize(
    "nothing",
    [
        *(
            "None",
            "float('nan')",
            "[float('nan')]",
            "{'a': (1, float('nan'))}",
            "1 / 0",
            "object()",
            "lambda: 1",
        ),
        *("(y for y in 'ab')", "[map(int, '12')]", "{'a': 1}.keys()"),
    ],
)
def test_what_earns_nothing_earns_nothing_even_if_the_reference_does_the_same(
    scorer: BackendScorer, nothing: str
) -> None:
    task = make_task(returning(nothing), "solve()")
    (check,) = scorer.checks(task, returning(nothing))
    assert check.outcome is not Outcome.PASSED
    (expected,) = scorer.expected(task)
    assert expected.flaw


COMPARISONS = {
    "equality": ("x + 1", "solve(1) == 2", "3 == solve(2)", "solve(1) != 5", "0 != solve(1) == 2"),
    "order": ("x + 1", "solve(1) < 3", "1 < solve(1) <= 2", "not solve(1) > 2", "max(1, solve(1))"),
    "membership": ("[x, 'a']", "'a' in solve(1)", "solve(1)[1] in ('a', 'b')", "3 not in solve(1)"),
    "identity": ("x > 0", "solve(1) is True", "(solve(0)) is False", "solve(1) is not None"),
    "truth": ("[x]", "bool(solve(1) == [1])", "not solve(1) != [1]", "solve(1) == [1] and solve(2)"),
    "length": ("'abc'[:x]", "len(solve(2)) == 2", "len(solve(3))", "not len(solve(0))"),
    "items": ("{'k': [x]}", "solve(1)['k']", "solve(2)['k'][0] + 1", "list(solve(1).items())", "[*solve(1)]"),
    "sorting": ("[3, x, 2]", "sorted(solve(1))", "sum(solve(1)) == 6", "max(solve(9))", "list(reversed(solve(1)))"),
    "types": ("str(x)", "isinstance(solve(1), str)", "type(solve(1)) == str", "type(solve(1)).__name__"),
    "text": ("'a%d' % x", "solve(1).upper()", "f'{solve(1)}!'", "'%s' % solve(1)", "str(solve(1))", "repr(solve(2))"),
    "loops": ("x * 2", "all(solve(i) == i * 2 for i in range(4))", "any(solve(i) > 5 for i in range(4))",
              "[solve(i) for i in (1, 2)] == [2, 4]", "{i: solve(i) for i in (1, 2)}", "sum(map(solve, [1, 2]))"),
    "names": ("x * 2", "solve(n := 5) == n * 2", "(n := 5) and solve(n) == 10", "(lambda n=2: solve(n) == n * 2)()",
              "all((v := i) is not None and solve(v) == v * 2 for i in range(3))"),
    "functions": ("x * 2", "(lambda f: f(2) == 4)(solve)", "(lambda f: (lambda g, n: g(n) == 6)(f, 3))(solve)",
                  "callable(solve) and solve(1) == 2", "(lambda v=solve(1): v == 2)()"),
    "several calls": ("x * 2", "solve(1) + solve(2)", "solve(1) == 2 and solve(2) == 4", "(solve(1), solve(2))"),
    "rounding": ("x / 3", "round(solve(1), 2)", "abs(solve(1) - 0.3333) < 0.001", "int(solve(3))"),
}  # fmt: skip
"""A reference, and tests that do something with its value."""

AGREEING = """
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = lambda s, *a: True
    __bool__ = __hash__ = lambda s: True
    __len__ = __index__ = __int__ = __abs__ = lambda s: 2
    __iter__ = lambda s: iter([s, s])
    __reversed__ = __iter__
    __getitem__ = __call__ = __add__ = __radd__ = __sub__ = __rsub__ = __mod__ = __round__ = lambda s, *a: s
    __str__ = __repr__ = __format__ = lambda s, *a: 'a1'
    upper = items = lambda s: s
    __class__ = property(lambda s: {kind})
"""
OBJECTS = {
    "an object": "class Agreeing:" + AGREEING.format(kind="str") + "def solve(x):\n    return Agreeing()\n",
    "an int": (
        "class Agreeing(int):" + AGREEING.format(kind="bool") + "def solve(x):\n    return Agreeing(987654)\n"
    ),
    "a str": (
        "class Agreeing(str):"
        + AGREEING.format(kind="bool")
        + "def solve(x):\n    return Agreeing('wrong')\n"
    ),
    "a list": (
        "class Agreeing(list):"
        + AGREEING.format(kind="str")
        + "def solve(x):\n    return Agreeing(['wrong'])\n"
    ),
    "shadowed builtins": (
        "import builtins\nfor name in ('len', 'sorted', 'isinstance', 'all', 'any', 'max', 'sum', 'round', 'type',\n"
        "             'bool', 'str', 'repr', 'list', 'reversed', 'int', 'abs', 'divmod'):\n"
        "    globals()[name] = lambda *a, **k: True\n    setattr(builtins, name, globals()[name])\n"
        "def solve(x):\n    return -98765\n"
    ),
}


PLAIN = {"an int": 987654, "a str": "wrong", "a list": ["wrong"], "shadowed builtins": -98765}
"""What is left of the objects when they are decoded."""


@pytest.mark.parametrize("case", COMPARISONS)
def test_what_a_test_does_with_a_value_is_done_out_of_the_answers_reach(
    scorer: BackendScorer, case: str
) -> None:
    reference, *tests = COMPARISONS[case]
    task = make_task(returning(reference), *tests)
    assert outcomes(scorer, task, returning(reference)) == [Outcome.PASSED] * len(tests)
    for name, answer in OBJECTS.items():
        found = zip(tests, outcomes(scorer, task, answer), strict=True)
        paid = {test for test, outcome in found if outcome is Outcome.PASSED}
        assert paid <= {test for test in tests if name in PLAIN and deserves(test, reference, PLAIN[name])}, (
            name
        )


def deserves(test: str, reference: str, value: object) -> bool:
    """Whether a function that always returns the plain value passes the test."""
    scope: dict[str, Any] = {}
    exec(returning(reference), scope)
    try:
        return bool(eval(test, {"solve": lambda _: value}) == eval(test, scope))
    except (TypeError, ValueError, AttributeError, IndexError, KeyError):
        return False


LAZY = [
    *("(y for y in (x, 2))", "map(int, [x, 2])", "iter([x, 2])"),
    *("{x: 1, 2: 1}.keys()", "{0: x, 1: 2}.values()", "{x, 2}"),
]


def test_a_right_value_of_another_type_passes_where_the_test_allows_it(scorer: BackendScorer) -> None:
    task = make_task(
        returning("[x, 2]"), "sorted(solve(1))", "sum(solve(1)) == 3", "len(solve(1))", "solve(1)[0]"
    )
    assert outcomes(scorer, task, returning("(x, 2.0)")) == [Outcome.PASSED] * 4


LAZY = [
    "(y for y in (x, 2))",
    "map(int, [x, 2])",
    "{x: 1, 2: 1}.keys()",
    "{0: x, 1: 2}.values()",
    "{x, 2}",
    "iter([x, 2])",
]


@pytest.mark.parametrize("answer", LAZY)
def test_an_answer_may_be_lazy_where_the_test_uses_its_value_up(scorer: BackendScorer, answer: str) -> None:
    task = make_task(
        returning("[x, 2]"), "sorted(solve(1))", "sum(solve(1)) == 3", "2 in solve(1)", "solve(1)"
    )
    assert outcomes(scorer, task, returning(answer)) == [*[Outcome.PASSED] * 3, Outcome.WRONG]


def test_a_value_on_which_the_rest_of_a_test_fails_has_the_outcome_of_that(scorer: BackendScorer) -> None:
    task = make_task(returning("[x]"), "solve(1)[0]", "'a' * solve(2)[0]", "sum(range(solve(3)[0]))")
    answer = "def solve(x):\n    return {1: 5, 2: [1 << 40], 3: [10 ** 11]}[x]\n"
    assert outcomes(scorer, task, answer) == [Outcome.RAISED, Outcome.RAISED, Outcome.TIMED_OUT]


def test_a_helper_of_the_reference_is_not_asked_of_the_answer(scorer: BackendScorer) -> None:
    reference = "def helper(x):\n    return x * 2\ndef solve(x):\n    return helper(x) + 1\n"
    task = make_task(reference, "solve(1) == helper(1) + 1", "solve(2) - helper(2)")
    assert outcomes(scorer, task, returning("x * 2 + 1")) == [Outcome.PASSED] * 2
    assert outcomes(scorer, task, returning("x")) == [Outcome.WRONG] * 2


def test_each_way_to_fail_has_its_outcome(scorer: BackendScorer) -> None:
    task = make_task(returning("x"), *(f"solve({number})" for number in range(5)))
    answer = (
        "def solve(x):\n    if x == 1: return 7\n    if x == 2: raise KeyError('k')\n"
        "    if x == 3: return solve\n    while x == 4: pass\n    return x\n"
    )
    checks = scorer.checks(task, answer)
    assert [(check.name, check.outcome) for check in checks] == [
        ("test1", Outcome.PASSED),
        ("test2", Outcome.WRONG),
        ("test3", Outcome.RAISED),
        ("test4", Outcome.UNUSABLE),
        ("test5", Outcome.TIMED_OUT),
    ]
    assert checks[2].detail == "KeyError: 'k'"


@pytest.mark.parametrize("answer", [None, "", " \n\t", "x" * ((1 << 20) + 1)], ids=repr)
def test_an_answer_that_is_none_scores_zero(scorer: BackendScorer, answer: str | None) -> None:
    verdict = scorer.judge(make_task(returning("1"), "solve()"), make_episode(answer))
    assert verdict.reward == 0.0
    assert verdict.failure is None
    assert verdict.answer_digest == digest(answer)


def test_a_verdict_carries_the_share_of_tests_passed(scorer: BackendScorer) -> None:
    task = make_task(returning("x % 2"), "solve(0)", "solve(1)", "solve(2)", "solve(3)")
    verdict = scorer.judge(task, make_episode(returning("0")))
    assert (verdict.reward, verdict.success) == (0.5, False)
    verdict = asyncio.run(scorer.score(task, make_episode(returning("x % 2"))))
    assert (verdict.reward, verdict.success, verdict.episode_id) == (1.0, True, "task#0")


def test_an_episode_that_failed_is_unscored(scorer: BackendScorer) -> None:
    failure = Failure("rollout", "ModelError", "no answer from the endpoint")
    episode = make_episode(None, ending=Ending.FAILED, failure=failure)
    verdict = scorer.judge(make_task(returning("1"), "solve()"), episode)
    assert (verdict.reward, verdict.success, verdict.failure) == (None, False, failure)


def test_a_sandbox_that_fails_leaves_the_answer_unscored() -> None:
    class Broken:
        def run(self, program: Program) -> list[Result]:
            raise SandboxError("no room")

    scorer = BackendScorer(Broken())  # type: ignore[arg-type]
    verdict = scorer.judge(make_task(returning("1"), "solve()"), make_episode(returning("1")))
    scorer.close()
    assert verdict.reward is None
    assert verdict.failure == Failure("score", "SandboxError", "no room")


def test_a_frontend_task_is_refused_by_its_name(scorer: BackendScorer) -> None:
    task = Task(id="page", domain="frontend", request="r", secret=FrontendSecret(page="<html>"))
    with pytest.raises(DataError, match="task page is a frontend task"):
        scorer.checks(task, "x")


def test_the_reference_runs_once_and_what_is_expected_stays_here() -> None:
    programs: list[Program] = []
    with Sandbox() as sandbox:

        class Spy:
            def run(self, program: Program) -> list[Result]:
                programs.append(program)
                return sandbox.run(program)

        scorer = BackendScorer(Spy())  # type: ignore[arg-type]
        task = make_task(
            "def solve(x):\n    return x * 41\n", "solve(1)", "solve(2) == 82", "solve(3) in (5, 123)"
        )
        for _ in range(3):
            scorer.checks(task, returning("x * 41"))
        scorer.close()
    answers = [program for program in programs if program.defines]
    # The reference: its whole tests, then their parts; what the tests do with its values; three answers.
    assert [len(programs), len(answers)] == [6, 3]
    for program in answers:
        sent = repr(program)
        assert "82" not in sent
        assert "123" not in sent  # what is expected never leaves this process
        assert "def solve(x):\n    return x * 41" not in program.sources


def test_real_references_pass_their_own_tests(
    colbench_dir: Path, sandbox: Sandbox, scorer: BackendScorer
) -> None:
    tasks = load_tasks(colbench_dir / "backend_dev.jsonl")
    failing = set()
    for task in tasks.values():
        assert isinstance(task.secret, BackendSecret)
        expected = scorer.expected(task)
        results = sandbox.run(scorer._program(task.secret.reference, scorer._prepare(task)))
        checks = scorer.checks(task, task.secret.reference)
        if any(check.outcome is not Outcome.PASSED for check in checks):
            failing.add(task.id)
        if task.id not in KNOWN_DEFECTS:
            assert results == [item.result for item in expected], task.id
    assert len(tasks) - len(failing) >= 495
    assert failing == KNOWN_DEFECTS
