"""Comparisons against scipy, sums done by hand, and laws that any comparison must obey."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import bootstrap, permutation_test

from sweetrl.errors import DataError
from sweetrl.evaluation import compare, intervals
from sweetrl.evaluation.compare import compare_runs, paired_difference, sign_flip_test
from sweetrl.evaluation.scores import TaskTally
from sweetrl.types import Failure, Verdict


def tally(scorer="backend-module/1", **rewards):
    """Each keyword is a task with the rewards of its answers; None is unscored."""
    return TaskTally(
        Verdict(
            task_id=task,
            episode_id=f"{task}#{attempt}",
            scorer=scorer,
            answer_digest="-",
            reward=reward,
            success=reward == 1,
            failure=Failure("score", "x", "y") if reward is None else None,
        )
        for task, given in rewards.items()
        for attempt, reward in enumerate(given)
    )


def scipy_p(first, second, resamples=np.inf):
    return permutation_test(
        (first, second),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        rng=0,
    ).pvalue


# ---------------------------------------------------------------- the test

rewards = st.integers(0, 10).map(lambda passed: passed / 10)
# Eighths are exact: with tenths, scipy takes the rounding of sums such as 0.1 + 0.2 - 0.3 for a difference.
eighths = st.integers(0, 8).map(lambda passed: passed / 8)
pairs = st.lists(st.tuples(eighths, eighths), min_size=2, max_size=9).map(lambda rows: np.array(rows).T)


@settings(max_examples=25)
@given(pairs)
def test_the_exact_p_value_is_scipy_s(pair):
    assert sign_flip_test(pair[1] - pair[0]) == pytest.approx(scipy_p(pair[1], pair[0]), abs=1e-12)


def test_the_exact_p_value_by_hand():
    # Of the 8 ways to flip 1, 1 and 1, two give a sum of 3 or -3.
    assert sign_flip_test(np.array([1.0, 1.0, 1.0, 0.0])) == 2 / 8
    assert sign_flip_test(np.array([1.0, -1.0])) == 1.0
    assert sign_flip_test(np.zeros(5)) == 1.0


def test_rounding_does_not_decide_what_is_as_extreme():
    differences = np.array([0.1, 0.2, -0.3, 0.3])
    assert sign_flip_test(differences) == scipy_p(differences, np.zeros(4)) == 12 / 16
    assert sign_flip_test(np.array([0.1, 0.2, -0.3])) == 1.0


def simulated_runs(generator, tasks, gain=0.0):
    """One answer to each task by two runs, on tasks of unequal difficulty."""
    difficulty = generator.beta(0.8, 1.2, size=tasks) * (1 - gain)
    return tuple(generator.binomial(1, difficulty + extra).astype(float) for extra in (0, gain))


def test_the_random_p_value_is_the_exact_one_up_to_chance():
    first, second = simulated_runs(np.random.default_rng(4), 300, gain=0.05)
    assert sign_flip_test(second - first, seed=1) == pytest.approx(scipy_p(second, first, 9_999), abs=0.02)


def test_random_flips_agree_with_all_of_them(monkeypatch):
    differences = np.random.default_rng(8).normal(0.3, 1, size=12)
    exact = sign_flip_test(differences)
    monkeypatch.setattr(compare, "EXACT_TASKS", 0)
    assert sign_flip_test(differences) == pytest.approx(exact, abs=0.015)
    monkeypatch.setattr(compare, "BATCH_ENTRIES", 1000)
    assert sign_flip_test(differences) == pytest.approx(exact, abs=0.015)


def test_a_random_p_value_is_never_zero():
    assert sign_flip_test(np.ones(200)) == 1 / 10_001


def test_equal_runs_differ_significantly_no_more_often_than_promised(monkeypatch):
    monkeypatch.setattr(compare, "FLIPS", 500)
    generator = np.random.default_rng(5)
    runs = [simulated_runs(generator, 60) for _ in range(1500)]
    p = np.array([sign_flip_test(second - first, seed=each) for each, (first, second) in enumerate(runs)])
    assert np.mean(p <= 0.05) < 0.065
    assert np.mean(p <= 0.5) < 0.54


# ---------------------------------------------------------------- the interval


def test_the_interval_is_scipy_s_paired_bootstrap():
    first, second = simulated_runs(np.random.default_rng(6), 200, gain=0.1)
    expected = bootstrap(
        (second, first),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        paired=True,
        method="percentile",
        n_resamples=20_000,
        rng=1,
    ).confidence_interval
    found = paired_difference("success", first, second)
    tolerance = 0.05 * (expected.high - expected.low)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=tolerance)


@pytest.mark.parametrize("tasks", [25, 150])
def test_the_interval_covers_the_true_difference_95_times_of_100(tasks, monkeypatch):
    monkeypatch.setattr(intervals, "RESAMPLES", 400)
    monkeypatch.setattr(compare, "sign_flip_test", lambda *_, **__: 1.0)
    generator = np.random.default_rng(7)
    runs = [simulated_runs(generator, tasks, gain=0.1) for _ in range(1000)]
    found = [paired_difference("success", *run, seed=each) for each, run in enumerate(runs)]
    assert 0.93 < np.mean([each.low <= 0.1 <= each.high for each in found]) < 0.97


def test_pairing_tells_apart_what_two_intervals_cannot():
    generator = np.random.default_rng(9)
    first = generator.uniform(0, 0.9, size=100)
    found = paired_difference("reward", first, first + 0.05 + generator.normal(0, 0.02, size=100))
    assert (found.low > 0.04, found.p < 0.001) == (True, True)
    assert np.std(first) / np.sqrt(100) > 0.02


values = arrays.arrays(np.float64, st.integers(2, 30), elements=rewards)


@settings(max_examples=50)
@given(values, st.randoms(use_true_random=False))
def test_swapping_the_runs_changes_the_sign_and_nothing_else(first, shuffle):
    second = first.copy()
    shuffle.shuffle(second)
    one, other = paired_difference("r", first, second), paired_difference("r", second, first)
    assert one.value == pytest.approx(-other.value, abs=1e-12)
    assert one.p == pytest.approx(other.p, abs=1e-12)
    # The same draws are not made of mirrored values: the ends agree up to the chance of the bootstrap.
    width = one.high - one.low
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=0.12 * width + 1e-9)


@given(values, st.integers(-5, 5))
def test_a_constant_gain_on_every_task_is_that_gain(first, tenths):
    found = paired_difference("r", first, first + tenths / 10)
    assert found.value == pytest.approx(tenths / 10)
    assert found.low <= found.value <= found.high


@given(values, st.integers(1, 4))
def test_a_common_shift_of_both_runs_changes_nothing(first, tenths):
    second = first[::-1]
    plain, shifted = (paired_difference("r", first + by, second + by) for by in (0.0, tenths / 10))
    assert (shifted.value, shifted.p) == pytest.approx((plain.value, plain.p), abs=1e-9)
    assert (shifted.low, shifted.high) == pytest.approx((plain.low, plain.high), abs=1e-9)


# ---------------------------------------------------------------- two runs


def test_two_runs_by_hand():
    first = tally(a=[1.0, 0.0], b=[0.5], c=[0.0], x=[1.0], v=[0.2])
    second = tally(a=[1.0], b=[1.0], c=[0.0, None], y=[1.0])
    found = compare_runs(first, second)
    assert (found.tasks, found.only_first, found.only_second) == (3, ("v", "x"), ("y",))
    assert found.success.value == pytest.approx((0.5 + 1 + 0) / 3)
    assert found.reward.value == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert found.reward.p == 2 / 4
    assert found.win_rate.value == pytest.approx((1 + 1 + 0.5) / 3)
    assert found.success.low <= found.success.value <= found.success.high


def test_a_difference_in_points_lies_within_its_interval_and_is_as_wide_as_points_are():
    points = paired_difference("reward", [3.0] * 6, [15.0] * 6)
    shares = paired_difference("reward", [0.0] * 6, [1.0] * 6)
    assert points.low == pytest.approx(12 * shares.low)
    assert points.value == points.high == 12.0


def test_a_task_that_only_one_run_could_be_scored_on_is_named():
    found = compare_runs(tally(a=[1.0], b=[None]), tally(a=[1.0], b=[0.5]))
    assert (found.tasks, found.only_first, found.only_second) == (1, (), ("b",))


def test_a_run_equals_itself_but_a_few_tasks_prove_little():
    run = tally(a=[1.0], b=[0.5], c=[0.0])
    found = compare_runs(run, run)
    assert (found.success.value, found.success.p, found.win_rate.value) == (0.0, 1.0, 0.5)
    assert found.success.low < -0.5 < 0.5 < found.success.high


def test_two_scorers_cannot_be_compared():
    with pytest.raises(
        DataError, match=r"only verdicts of one scorer .* backend-module/1, backend-official/1"
    ):
        compare_runs(tally(a=[1.0]), tally("backend-official/1", a=[1.0]))


def test_runs_without_a_common_task_cannot_be_compared():
    with pytest.raises(DataError, match="no scored task in common"):
        compare_runs(tally(a=[1.0]), tally(b=[1.0]))


def test_losing_the_hard_tasks_helps_success_but_not_with_failures_as_zero():
    honest = tally(a=[1.0], b=[0.0], c=[1.0], d=[0.0])
    lossy = tally(a=[1.0], b=[None], c=[1.0, None], d=[None])
    found = compare_runs(honest, lossy)
    assert (found.success.value, found.tasks) == (0.0, 2)
    strict = found.success_failures_as_zero
    assert (strict.value, strict.count) == (pytest.approx((0 + 0 - 0.5 + 0) / 4), 4)
    assert lossy.success_metric().value == 1.0
    assert lossy.failures_as_zero_metric().value == pytest.approx(2 / 5)
