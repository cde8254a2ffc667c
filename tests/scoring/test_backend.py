"""Verdicts: what passes, what does not, and when there is none."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweetrl.errors import DataError, SandboxError
from sweetrl.sandbox import Program, Result, Sandbox
from sweetrl.scoring.backend import BackendScorer
from sweetrl.tasks.sources import load_tasks
from sweetrl.types import (
    BackendSecret,
    Ending,
    Episode,
    Failure,
    FrontendSecret,
    Kind,
    Outcome,
    Task,
    digest,
)

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
        kind=Kind.BACKEND,
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
    ["None", "float('nan')", "[float('nan')]", "{'a': (1, float('nan'))}", "1 / 0", "object()", "lambda: 1"],
)
def test_what_earns_nothing_earns_nothing_even_if_the_reference_does_the_same(
    scorer: BackendScorer, nothing: str
) -> None:
    task = make_task(returning(nothing), "solve()")
    (check,) = scorer.checks(task, returning(nothing))
    assert check.outcome is not Outcome.PASSED
    (expected,) = scorer.expected(task)
    assert expected.flaw


def test_a_comparison_in_a_test_is_made_here(scorer: BackendScorer) -> None:
    task = make_task(returning("x + 1"), "solve(1) == 2", "3 == solve(2)", "solve(1) != 5")
    assert outcomes(scorer, task, returning("x + 1")) == [Outcome.PASSED] * 3
    assert outcomes(scorer, task, returning("5")) == [Outcome.WRONG] * 3
    liar = "class E:\n    __eq__ = lambda s, o: True\n    __ne__ = __eq__\ndef solve(x):\n    return E()\n"
    assert outcomes(scorer, task, liar) == [Outcome.UNUSABLE] * 3


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
    task = Task(id="page", kind=Kind.FRONTEND, request="r", secret=FrontendSecret(page="<html>"))
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
        task = make_task("def solve(x):\n    return x * 41\n", "solve(1)", "solve(2) == 82")
        for _ in range(3):
            scorer.checks(task, returning("x * 41"))
        scorer.close()
    _, *answers = programs
    assert len(answers) == 3
    for program in answers:
        sent = repr(program)
        assert "82" not in sent  # what is expected never leaves this process
        assert "def solve(x):\n    return x * 41" not in program.sources


def test_real_references_pass_their_own_tests(
    colbench_dir: Path, sandbox: Sandbox, scorer: BackendScorer
) -> None:
    tasks = load_tasks(colbench_dir / "backend_dev.jsonl")
    failing = set()
    for task in tasks.values():
        assert isinstance(task.secret, BackendSecret)
        expected = scorer.expected(task)
        program = scorer._program(task, task.secret.reference, expected)
        results = sandbox.run(program)
        checks = scorer.checks(task, task.secret.reference)
        if any(check.outcome is not Outcome.PASSED for check in checks):
            failing.add(task.id)
        if task.id not in KNOWN_DEFECTS:
            assert results == [item.result for item in expected], task.id
    assert len(tasks) - len(failing) >= 495
    assert failing == KNOWN_DEFECTS
