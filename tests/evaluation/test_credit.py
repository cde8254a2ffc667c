"""Credit quality: 1 for who knows the truth, nothing for who guesses, and the statistics against scipy."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy.stats import rankdata, spearmanr

from evaluation import toy_dialogue as toy
from sweetrl.errors import DataError
from sweetrl.evaluation import intervals
from sweetrl.evaluation.credit import (
    Estimates,
    average_ranks,
    correlation,
    credit_quality,
    estimates,
    halves,
    pooled_correlation,
    ranked_by_values,
    turn_agreement,
)
from sweetrl.types import CandidateSet, Metric, OutputValue, TurnValues


def exact(number: int, turn: int) -> TurnValues:
    """The true values of a turn's candidates, by enumeration."""
    held = toy.episode(number, "abc")
    drawn = toy.candidates(held, turn)
    before = [past.said for past in held.turns[:turn]]
    truth = [toy.true_value(toy.task(number), before, output) for output in drawn.outputs]
    return valued([[value] for value in truth], drawn)


def valued(replays, drawn: CandidateSet | None = None) -> TurnValues:
    outputs = drawn.outputs if drawn else tuple(f"o{each}" for each in range(len(replays)))
    return TurnValues(
        episode_id=drawn.episode_id if drawn else "t#0",
        task_id=drawn.task_id if drawn else "t",
        turn=drawn.turn if drawn else 0,
        outputs=outputs,
        values=tuple(OutputValue(tuple(each), tuple(one > 0.5 for one in each)) for each in replays),
        agent="a",
        collaborator="c",
        scorer="s/1",
    )


def ranked(turn: TurnValues, advantages, critic: str = "critic") -> CandidateSet:
    return CandidateSet(
        episode_id=turn.episode_id,
        task_id=turn.task_id,
        turn=turn.turn,
        outputs=turn.outputs,
        advantages=tuple(advantages),
        critic=critic,
    )


def noisy(turn: TurnValues, replays: int, draw: random.Random) -> TurnValues:
    """Successes drawn with the true values as their chances, in place of the values."""
    chances = dict(zip(turn.outputs, estimates(turn).values, strict=True))
    drawn = {
        output: [float(draw.random() < chance) for _ in range(replays)] for output, chance in chances.items()
    }
    return replace(turn, values=valued([drawn[output] for output in turn.outputs]).values)


TURNS = [exact(number, turn) for number in range(60) for turn in range(4)]


def figures(quality) -> list[float]:
    return [getattr(quality, name).value for name in ("spearman", "pooled_spearman", "auc", "gain", "top1")]


def test_the_true_values_have_full_credit_quality():
    quality = credit_quality((turn, ranked(turn, estimates(turn).values)) for turn in TURNS)
    assert [getattr(quality, name).value for name in ("spearman", "auc", "gain", "top1")] == pytest.approx(
        [1] * 4
    )
    assert quality.turns + quality.undecided == len(TURNS)
    assert quality.turns > 200


def test_an_oracle_has_full_credit_quality_over_all_turns_as_well():
    quality = credit_quality((turn, ranked_by_values(turn)) for turn in TURNS)
    assert figures(quality) == pytest.approx([1] * 5)


def test_random_advantages_have_none():
    draw = random.Random(1)
    quality = credit_quality((turn, ranked(turn, [draw.random() for _ in turn.outputs])) for turn in TURNS)
    assert figures(quality)[:4] == pytest.approx([0, 0, 0.5, 0], abs=0.06)
    assert quality.top1.value < 0.4
    for name, chance in (("spearman", 0), ("pooled_spearman", 0), ("auc", 0.5), ("gain", 0)):
        metric = getattr(quality, name)
        assert metric.low <= chance <= metric.high


def test_the_opposite_of_the_truth_is_worse_than_nothing():
    quality = credit_quality((turn, ranked(turn, -estimates(turn).values)) for turn in TURNS)
    assert figures(quality)[0] == pytest.approx(-1)
    assert quality.auc.value == 0
    assert quality.gain.value < -0.4
    assert quality.top1.value == 0


def test_a_critic_that_says_the_same_of_everything_is_no_better_than_chance():
    quality = credit_quality((turn, ranked(turn, [0.3] * 16)) for turn in TURNS)
    assert figures(quality)[:4] == pytest.approx([0, 0, 0.5, 0])


def test_noise_in_the_truth_hides_less_from_clear_pairs_than_from_ranks():
    draw = random.Random(2)
    turns = [(turn, noisy(turn, 16, draw)) for turn in TURNS]
    quality = credit_quality((rough, ranked(turn, estimates(turn).values)) for turn, rough in turns)
    assert quality.spearman.value < 0.95
    assert quality.auc.value > 0.97


def test_half_of_the_replays_agrees_with_the_other_the_better_the_more_there_are():
    draw = random.Random(3)
    few, many = (credit_quality(halves(noisy(turn, replays, draw)) for turn in TURNS) for replays in (8, 64))
    assert 0.2 < few.spearman.value < many.spearman.value < 1
    assert many.critic == "replays, half against half"


def test_the_halves_share_no_replay_and_certainty_is_in_both():
    truth, critic = halves(valued([[0.1, 0.2, 0.3, 0.4], [0.7]]))
    assert [each.rewards for each in truth.values] == [(0.2, 0.4), (0.7,)]
    assert critic.advantages == pytest.approx([0.2, 0.7])
    truth, critic = halves(valued([[1.0, 0.0, 0.9, 0.0], [0.7]]), "success")
    assert [each.successes for each in truth.values] == [(False, False), (True,)]
    assert critic.advantages == (1.0, 1.0)


def test_turns_whose_candidates_are_worth_the_same_tell_nothing():
    flat, steep = valued([[0.5, 0.5]] * 3), replace(valued([[1.0], [0.0]]), task_id="other")
    quality = credit_quality([(flat, ranked(flat, [1, 2, 3])), (steep, ranked(steep, [1, 0]))])
    assert (quality.turns, quality.undecided, quality.spearman.value) == (1, 1, pytest.approx(1.0))


def test_no_turn_at_all_has_no_figure():
    quality = credit_quality([])
    assert quality.spearman == Metric("spearman", None, None, None, 0)
    assert (quality.gain.value, quality.pooled_spearman.value, quality.turns) == (None, None, 0)


# ---------------------------------------------------------------- one turn by hand


def test_an_oracle_by_hand():
    found = ranked_by_values(valued([[1.0, 0.0], [0.3, 0.1]]))
    assert (found.id, found.outputs, found.critic) == ("t#0@0", ("o0", "o1"), "oracle: replays")
    assert found.advantages == pytest.approx((0.15, -0.15))
    assert ranked_by_values(valued([[1.0, 0.0], [0.3, 0.1]]), "success").advantages == (0.25, -0.25)


def test_values_and_their_errors_by_hand():
    found = estimates(valued([[1.0, 0.0, 1.0, 0.6], [0.25]]))
    assert found.values == pytest.approx([0.65, 0.25])
    assert found.errors == pytest.approx([np.std([1, 0, 1, 0.6], ddof=1) / 2, 0])
    assert estimates(valued([[1.0, 0.0, 1.0, 0.6]]), "success").values == pytest.approx([0.75])


def test_one_turn_by_hand():
    truth = Estimates(np.array([0.0, 0.4, 0.8, 0.8]), np.array([0.0, 0.1, 0.25, 0.0]))
    found = turn_agreement(truth, [0.1, 0.3, 0.2, 0.3])
    # Clear pairs: all with the first; the second with the fourth. The third is within noise of the others.
    assert found.auc == pytest.approx((1 + 1 + 1 + 0.5) / 4)
    # The critic likes two best; one of them is among the best.
    assert (found.gained, found.possible, found.top1) == pytest.approx((0.6 - 0.5, 0.8 - 0.5, 0.5))
    assert found.spearman == pytest.approx(spearmanr([0, 0.4, 0.8, 0.8], [0.1, 0.3, 0.2, 0.3]).statistic)


def test_the_gain_counts_turns_by_what_is_at_stake():
    big, small = valued([[1.0], [0.0]]), replace(valued([[0.1], [0.0]]), task_id="other")
    quality = credit_quality([(big, ranked(big, [1, 0])), (small, ranked(small, [0, 1]))])
    assert quality.gain.value == pytest.approx((0.5 - 0.05) / (0.5 + 0.05))
    assert quality.spearman.value == 0


# ---------------------------------------------------------------- statistics

numbers = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=20)


@given(numbers)
def test_ranks_and_their_correlation_are_scipy_s(rows):
    one, other = np.array(rows, float).T
    assert average_ranks(one) + 1 == pytest.approx(rankdata(one))
    if len(set(one)) > 1 and len(set(other)) > 1:
        expected = spearmanr(one, other).statistic
        assert correlation(average_ranks(one), average_ranks(other)) == pytest.approx(expected, abs=1e-12)


def test_the_pooled_interval_is_that_of_ranking_each_resample_anew():
    generator = np.random.default_rng(4)
    given_ = [generator.normal(generator.normal(), 1, size=16) for _ in range(60)]
    values = [each + generator.normal(generator.normal(), 1, size=16) for each in given_]
    found = pooled_correlation("s", given_, values)
    assert found.value == pytest.approx(spearmanr(np.concatenate(given_), np.concatenate(values)).statistic)
    draws = []
    for row in next(intervals.drawn_tasks(60, seed=0))[:1000]:
        pooled = [np.concatenate([side[task] for task in row]) for side in (given_, values)]
        draws.append(spearmanr(*pooled).statistic)
    low, high = intervals.middle(np.array(draws), 60)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.1 * (high - low))
    assert found.low < found.value < found.high


# ---------------------------------------------------------------- what does not fit together


def test_advantages_of_other_candidates_are_refused():
    turn = valued([[1.0], [0.0]])
    with pytest.raises(DataError, match="t#0@0 are not those that were valued"):
        credit_quality([(turn, replace(ranked(turn, [1, 0]), outputs=("x", "y")))])


def test_candidates_must_be_ranked_and_turns_valued():
    turn = valued([[1.0], [0.0]])
    with pytest.raises(DataError, match="t#0@0 are not ranked"):
        credit_quality([(turn, replace(ranked(turn, [1, 0]), advantages=None))])
    with pytest.raises(DataError, match="the values of t#0@0 are missing"):
        credit_quality([(replace(turn, values=None), ranked(turn, [1, 0]))])


def test_two_critics_are_judged_one_after_the_other():
    turn = valued([[1.0], [0.0]])
    with pytest.raises(DataError, match="one critic at a time, not one and two"):
        credit_quality([(turn, ranked(turn, [1, 0], "one")), (turn, ranked(turn, [1, 0], "two"))])
