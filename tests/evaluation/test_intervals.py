import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from sweetrl.evaluation import intervals
from sweetrl.evaluation.intervals import clustered_mean, proportion
from sweetrl.types import Metric


@given(st.integers(1, 5000).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_the_wilson_interval_is_scipy_s(case):
    successes, count = case
    metric = proportion("success", successes, count)
    expected = binomtest(successes, count).proportion_ci(method="wilson")
    assert (metric.low, metric.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= metric.low <= metric.value <= metric.high <= 1


def test_a_proportion_by_hand():
    # 1 of 1: the lower end is 1 / (1 + z^2).
    assert proportion("success", 1, 1, unscored=2) == Metric(
        "success", 1.0, pytest.approx(1 / (1 + 1.96**2), abs=1e-4), 1.0, 1, 2
    )


def test_never_and_always_still_leave_doubt():
    assert proportion("success", 0, 10).high > 0.2
    assert proportion("success", 10, 10).low < 0.8


def test_a_proportion_of_nothing_is_not_a_number():
    metric = proportion("success", 0, 0, unscored=3)
    assert math.isnan(metric.value)
    assert (metric.count, metric.unscored) == (0, 3)


@pytest.mark.parametrize(("successes", "count"), [(3, 2), (-1, 2), (0, -1)])
def test_an_impossible_proportion_is_refused(successes, count):
    with pytest.raises(ValueError, match="is no proportion"):
        proportion("success", successes, count)


def covered(metric: Metric, truth: float) -> bool:
    return metric.low <= truth <= metric.high


def test_the_wilson_interval_covers_the_truth_95_times_of_100():
    draws = np.random.default_rng(1).binomial(200, 0.3, size=4000)
    assert 0.93 < np.mean([covered(proportion("p", int(k), 200), 0.3) for k in draws]) < 0.97


def simulated_tasks(generator: np.random.Generator, tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """Tasks of unequal difficulty with 1 to 8 answers each; the mean over answers is 0.4."""
    difficulty = generator.beta(0.8, 1.2, size=tasks)
    counts = generator.integers(1, 9, size=tasks)
    return generator.binomial(counts, difficulty).astype(float), counts


def test_the_bootstrap_over_tasks_covers_the_truth_95_times_of_100(monkeypatch):
    monkeypatch.setattr(intervals, "RESAMPLES", 400)
    generator = np.random.default_rng(2)
    hits = [
        covered(clustered_mean("tests", *simulated_tasks(generator, 120), seed=run), 0.4)
        for run in range(1500)
    ]
    assert 0.93 < np.mean(hits) < 0.97


def test_answers_of_one_task_are_not_independent_evidence():
    once = clustered_mean("tests", [1.0, 0.0] * 20, [1] * 40)
    repeated = clustered_mean("tests", [50.0, 0.0] * 20, [50] * 40)
    assert repeated.count == 50 * once.count
    assert (repeated.low, repeated.high) == pytest.approx((once.low, once.high))


def test_a_task_weighs_as_much_as_it_has_answers():
    assert clustered_mean("tests", [3.0, 0.0], [3, 1]).value == 0.75


def test_the_same_seed_gives_the_same_interval_in_batches_of_any_size(monkeypatch):
    sums, counts = simulated_tasks(np.random.default_rng(3), 50)
    whole = clustered_mean("tests", sums, counts, seed=7)
    monkeypatch.setattr(intervals, "BATCH_ENTRIES", 333)
    assert clustered_mean("tests", sums, counts, seed=7) == whole
    assert clustered_mean("tests", sums, counts, seed=8) != whole


def test_the_interval_is_the_naive_bootstrap_s():
    sums, counts = simulated_tasks(np.random.default_rng(4), 30)
    generator = np.random.default_rng(9)
    means = []
    for _ in range(intervals.RESAMPLES):
        drawn = [int(each) for each in generator.integers(30, size=30)]
        means.append(sum(sums[i] for i in drawn) / sum(counts[i] for i in drawn))
    metric = clustered_mean("tests", sums, counts, seed=9)
    assert (metric.low, metric.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))


def test_one_task_could_be_anything():
    assert clustered_mean("tests", [0.5], [1]) == Metric("tests", 0.5, 0.0, 1.0, 1)
    assert clustered_mean("turns", [40.0], [8], bounds=(1, 10)) == Metric("turns", 5.0, 1, 10, 8)


def test_tasks_without_scored_answers_do_not_count():
    assert clustered_mean("tests", [1.0, 0.0, 0.0], [2, 0, 1]) == clustered_mean("tests", [1.0, 0.0], [2, 1])


@pytest.mark.parametrize("counts", [[], [0, 0]])
def test_a_mean_of_nothing_is_not_a_number(counts):
    metric = clustered_mean("tests", [0.0] * len(counts), counts, unscored=4)
    assert math.isnan(metric.value)
    assert (metric.count, metric.unscored) == (0, 4)


def test_sums_and_counts_must_go_together():
    with pytest.raises(ValueError, match="one sum and one count per task"):
        clustered_mean("tests", [1.0], [1, 2])


def test_tasks_that_all_agree_are_not_certainty():
    metric = clustered_mean("success", [5.0] * 6, [10] * 6)
    alike = proportion("success", 3, 6)
    assert (metric.value, metric.low, metric.high) == (0.5, alike.low, alike.high)
    assert metric.low < 0.25 < 0.75 < metric.high
