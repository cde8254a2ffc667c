"""Summaries against sums done by hand."""

import pytest

from sweetrl.evaluation.scores import summarise
from sweetrl.types import Check, Failure, Outcome, Verdict


def verdict(task: str, attempt: int, passed: int, *, failed: bool = False) -> Verdict:
    checks = [Check(f"t{i}", Outcome.PASSED if i < passed else Outcome.WRONG) for i in range(4)]
    return Verdict(
        task_id=task,
        episode_id=f"{task}#{attempt}",
        scorer="s/1",
        answer_digest="-",
        reward=None if failed else passed / 4,
        success=passed == 4 and not failed,
        checks=() if failed else tuple(checks),
        failure=Failure("score", "SandboxError", "gone") if failed else None,
    )


def test_one_answer_a_task_gives_proportions():
    summary = summarise([verdict("a", 0, 4), verdict("b", 0, 1), verdict("c", 0, 0)])
    assert summary.success.value == pytest.approx(1 / 3)
    assert summary.tests_passed.value == pytest.approx(5 / 12)
    assert summary.outcomes[Outcome.PASSED] == 5
    assert summary.outcomes[Outcome.WRONG] == 7
    assert (summary.tasks, summary.success.count, summary.unscored) == (3, 3, 0)


def test_unscored_answers_count_for_nothing_but_themselves():
    summary = summarise([verdict("a", 0, 4), verdict("b", 0, 0, failed=True)])
    assert (summary.success.value, summary.success.count, summary.unscored) == (1.0, 1, 1)
    assert summary.success.unscored == 1
    strict = summary.success_failures_as_zero
    assert (strict.value, strict.count) == (0.5, 2)


def test_failures_as_zero_have_the_interval_of_any_share():
    rows = [verdict(task, 0, 4) for task in "abc"] + [verdict("d", 0, 4, failed=True)]
    strict, plain = (
        summarise(rows).success_failures_as_zero,
        summarise([*rows[:3], verdict("d", 0, 0)]).success,
    )
    assert (strict.value, strict.low, strict.high) == (plain.value, plain.low, plain.high)


def test_several_answers_a_task_are_one_cluster():
    rows = [verdict(task, attempt, 4 if task == "a" else 0) for task in "ab" for attempt in range(50)]
    clustered = summarise(rows).success
    assert clustered.value == 0.5
    assert clustered.high - clustered.low > 0.9  # two tasks say little, however many answers they have


def test_defective_tasks_can_be_left_out():
    summary = summarise([verdict("a", 0, 4), verdict("b", 0, 0)], without={"b"})
    assert (summary.success.value, summary.tasks) == (1.0, 1)


def test_no_verdict_at_all_has_no_figure():
    summary = summarise([])
    assert (summary.success.value, summary.success.count) == (None, 0)
