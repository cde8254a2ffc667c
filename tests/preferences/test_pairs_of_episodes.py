import random
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sweetrl.errors import DataError
from sweetrl.preferences.episodes import (
    all_pairs,
    best_against_lower,
    pair_episodes,
    reason_for_no_pairs,
    successes_against_lower,
)
from sweetrl.types import Ending, Episode, EpisodePair, Failure, Reply, Turn, Verdict, digest


def episode(task: str, attempt: int, *, failed: bool = False) -> Episode:
    return Episode(
        task_id=task,
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request="Do it.",
        turns=(Turn("out", "out"),),
        ending=Ending.FAILED if failed else Ending.ANSWERED,
        answer=None if failed else f"answer {attempt}",
        failure=Failure("agent", "timeout", "slow") if failed else None,
    )


def verdict(of: Episode, reward: float | None, *, success: bool | None = None) -> Verdict:
    won = reward == 1 if success is None else success
    return Verdict(
        task_id=of.task_id,
        episode_id=of.id,
        scorer="s/1",
        answer_digest=digest(of.answer),
        reward=reward,
        success=won,
    )


def pairs_of(rewards: list[float | None], rule=best_against_lower) -> list[tuple[str, str]]:
    episodes = [episode("t", attempt) for attempt in range(len(rewards))]
    verdicts = [verdict(each, reward) for each, reward in zip(episodes, rewards, strict=True)]
    return [(pair.chosen, pair.rejected) for pair in pair_episodes(episodes, verdicts, rule)]


def test_the_best_program_is_paired_with_each_one_that_earned_less():
    assert pairs_of([0.5, 1.0, 0.0]) == [("t#1", "t#0"), ("t#1", "t#2")]


@pytest.mark.parametrize("rule", [best_against_lower, successes_against_lower, all_pairs(0.1)])
def test_what_the_agent_broke_itself_is_rejected_like_any_other_zero(rule):
    good, cut, excused = (episode("t", attempt) for attempt in range(3))
    silent = Turn("", "", unfinished=True, trouble="agent: context_length")
    cut = replace(cut, turns=(silent,), ending=Ending.BROKE_OFF, answer=None)
    unread = Turn("x" * 3000, "x" * 3000, Reply("I could not read that.", excuse="context_length"))
    excused = replace(excused, turns=(unread, *excused.turns))
    verdicts = [verdict(good, 1.0), verdict(cut, 0.0), verdict(excused, 0.0)]
    found = pair_episodes([good, cut, excused], verdicts, rule)
    assert [(pair.chosen, pair.rejected) for pair in found] == [("t#0", "t#1"), ("t#0", "t#2")]


def test_a_best_program_that_did_not_succeed_is_paired_with_none():
    assert pairs_of([0.5, 0.9, 0.0]) == []


def test_equally_good_programs_are_not_paired():
    assert pairs_of([1.0, 1.0, 0.2]) == [("t#0", "t#2")]


def test_every_success_can_be_paired_with_each_program_that_earned_less():
    found = pairs_of([1.0, 0.9, 1.0, 0.0], successes_against_lower)
    assert found == [("t#0", "t#1"), ("t#0", "t#3"), ("t#2", "t#1"), ("t#2", "t#3")]
    assert pairs_of([0.5, 0.9, 0.0], successes_against_lower) == []


def test_designs_are_paired_when_they_differ_by_more_than_a_tenth():
    assert pairs_of([0.8, 0.75, 0.6], all_pairs(0.1)) == [("t#0", "t#2"), ("t#1", "t#2")]


def test_a_difference_of_exactly_the_margin_is_not_enough():
    assert 0.4 - 0.3 > 0.1  # which is why rewards are not compared naively
    assert pairs_of([0.4, 0.3], all_pairs(0.1)) == []
    assert pairs_of([0.4, 0.29], all_pairs(0.1)) == [("t#0", "t#1")]


def test_the_margin_is_the_difference_of_the_rewards():
    episodes = [episode("t", 0), episode("t", 1)]
    verdicts = [verdict(episodes[0], 0.25), verdict(episodes[1], 1.0)]
    [pair] = pair_episodes(episodes, verdicts, best_against_lower)
    assert pair == EpisodePair(task_id="t", chosen="t#1", rejected="t#0", margin=0.75)


@pytest.mark.parametrize("rule", [best_against_lower, successes_against_lower, all_pairs(0)])
def test_an_unscored_dialogue_is_in_no_pair(rule):
    assert pairs_of([None, 1.0, 0.0], rule) == [("t#1", "t#2")]
    assert pairs_of([None, None], rule) == []


@pytest.mark.parametrize("rule", [best_against_lower, successes_against_lower, all_pairs(0)])
def test_a_failed_dialogue_is_in_no_pair_even_if_someone_scored_it(rule):
    episodes = [episode("t", 0), episode("t", 1, failed=True)]
    verdicts = [verdict(episodes[0], 1.0), verdict(episodes[1], 0.0)]
    assert list(pair_episodes(episodes, verdicts, rule)) == []


def test_dialogues_on_different_tasks_are_never_paired():
    episodes = [episode("t", 0), episode("u", 0)]
    verdicts = [verdict(episodes[0], 1.0), verdict(episodes[1], 0.0)]
    assert list(pair_episodes(episodes, verdicts, all_pairs(0))) == []


@given(
    rewards=st.lists(st.lists(st.sampled_from([None, 0.0, 0.3, 1.0]), max_size=5), max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_pairs_do_not_depend_on_the_order_of_the_files(
    rewards: list[list[float | None]], order: random.Random
):
    episodes = [episode(f"t{task}", n) for task, row in enumerate(rewards) for n in range(len(row))]
    verdicts = [
        verdict(each, reward)
        for each, reward in zip(episodes, [reward for row in rewards for reward in row], strict=True)
    ]
    plain = list(pair_episodes(episodes, verdicts, all_pairs(0.1)))
    order.shuffle(episodes)
    order.shuffle(verdicts)
    assert list(pair_episodes(episodes, verdicts, all_pairs(0.1))) == plain
    assert len({pair.id for pair in plain}) == len(plain)
    assert all(pair.margin > 0.1 for pair in plain)


def test_a_verdict_without_its_episode_is_refused():
    with pytest.raises(DataError, match="t#0 has no episode"):
        list(pair_episodes([], [verdict(episode("t", 0), 1.0)], best_against_lower))


def test_two_verdicts_on_one_episode_are_refused():
    one = episode("t", 0)
    with pytest.raises(DataError, match="two verdicts on t#0"):
        list(pair_episodes([one], [verdict(one, 1.0), verdict(one, 0.0)], best_against_lower))


def test_a_verdict_on_another_answer_is_refused():
    judged = verdict(episode("t", 1), 1.0)
    stale = Verdict(
        task_id="t",
        episode_id="t#0",
        scorer="s/1",
        answer_digest=judged.answer_digest,
        reward=1.0,
        success=True,
    )
    with pytest.raises(DataError, match="t#0 judges another answer"):
        list(pair_episodes([episode("t", 0)], [stale], best_against_lower))


@pytest.mark.parametrize(
    ("rewards", "rule", "reason"),
    [
        ([[None, None]], best_against_lower, "no dialogue was scored"),
        ([[1.0], [0.0]], best_against_lower, "no task has two scored dialogues"),
        ([[0.0, 0.0], [0.0]], best_against_lower, "on each of 2 tasks all dialogues earned the same (0)"),
        ([[1.0, 1.0], [0.5]], all_pairs(), "all dialogues earned the same (from 0.5 to 1)"),
        ([[0.2, 0.9]], best_against_lower, "no task has a success and a dialogue that earned less"),
        ([[0.2, 0.9]], successes_against_lower, "no task has a success and a dialogue that earned less"),
        ([[0.2, 0.25], [0.1, 0.0]], all_pairs(0.3), "rewards on one task differ by 0.1 at most"),
    ],
)
def test_that_there_are_no_pairs_has_a_reason(rewards, rule, reason):
    episodes = [episode(f"t{task}", n) for task, of in enumerate(rewards) for n in range(len(of))]
    verdicts = [verdict(*each) for each in zip(episodes, chain(*rewards), strict=True)]
    assert list(pair_episodes(episodes, verdicts, rule)) == []
    assert reason in reason_for_no_pairs(verdicts, rule)
