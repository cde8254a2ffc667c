"""The win rate of one run against another."""

import pytest

from sweetrl.errors import DataError
from sweetrl.evaluation.wins import win_rate
from sweetrl.types import Failure, Verdict


def verdicts(scorer="frontend-layout/1", **rewards):
    """Each keyword is a task with the rewards of its answers; None is unscored."""
    return [
        Verdict(
            task_id=task,
            episode_id=f"{task}#{attempt}",
            scorer=scorer,
            answer_digest="-",
            reward=reward,
            success=False,
            failure=Failure("score", "x", "y") if reward is None else None,
        )
        for task, given in rewards.items()
        for attempt, reward in enumerate(given)
    ]


def test_tasks_are_compared_one_by_one_by_their_means_and_a_tie_is_half_a_win():
    ours = verdicts(a=[0.9, 0.1], b=[0.8], c=[0.3], d=[0.7])
    theirs = verdicts(a=[0.4], b=[0.2, 0.4], c=[0.3], d=[0.8])
    metric = win_rate(ours, theirs)
    assert (metric.name, metric.value, metric.count) == ("win_rate", (1 + 1 + 0.5 + 0) / 4, 4)
    assert metric.low <= metric.value <= metric.high


def test_the_other_side_wins_what_is_left():
    ours, theirs = verdicts(a=[0.9], b=[0.1], c=[0.2]), verdicts(a=[0.2], b=[0.3], c=[0.2])
    assert win_rate(ours, theirs).value == pytest.approx(1 - win_rate(theirs, ours).value)


def test_only_scored_answers_to_common_tasks_count():
    metric = win_rate(verdicts(a=[None], b=[0.9], x=[1.0]), verdicts(a=[0.1], b=[0.2], y=[1.0]))
    assert (metric.value, metric.count, metric.unscored) == (1.0, 1, 1)
    assert win_rate(verdicts(a=[0.1]), verdicts(b=[0.1])).value is None


def test_two_scorers_cannot_be_compared():
    with pytest.raises(DataError, match="frontend-clip/1, frontend-layout/1"):
        win_rate(verdicts(a=[0.1]), verdicts("frontend-clip/1", a=[0.1]))
