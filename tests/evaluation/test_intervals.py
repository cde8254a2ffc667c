import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap, norm
from scipy.stats import t as student

from sweetrl.evaluation import intervals
from sweetrl.evaluation.intervals import area_under_curve, clustered_mean, clustered_share, proportion
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


def test_a_proportion_of_nothing_has_no_figure():
    assert proportion("success", 0, 0, unscored=3) == Metric("success", None, None, None, 0, 3)


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


@pytest.mark.parametrize("tasks", [12, 40, 120])
def test_the_bootstrap_over_tasks_covers_the_truth_95_times_of_100(tasks, monkeypatch):
    monkeypatch.setattr(intervals, "RESAMPLES", 400)
    generator = np.random.default_rng(2)
    hits = [
        covered(clustered_mean("tests", *simulated_tasks(generator, tasks), seed=run), 0.4)
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


@given(st.permutations(range(20)))
def test_the_order_of_the_tasks_makes_no_difference(order):
    sums, counts = simulated_tasks(np.random.default_rng(6), 20)
    assert clustered_mean("tests", sums[order], counts[order]) == clustered_mean("tests", sums, counts)


def test_the_order_in_which_rewards_were_added_up_makes_no_difference():
    one, other = 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1
    assert one != other
    assert clustered_mean("tests", [one, 1], [3, 2]) == clustered_mean("tests", [other, 1], [3, 2])


def expanded_tail(tasks: int) -> float:
    return norm.cdf(-np.sqrt(tasks / (tasks - 1)) * student.ppf(0.975, tasks - 1))


@pytest.mark.parametrize("tasks", [10, 30, 100, 1000, 10**6])
def test_few_tasks_have_thinner_tails(tasks):
    assert intervals.tail_share(tasks) == pytest.approx(expanded_tail(tasks), rel=0.02)


def test_the_interval_is_the_naive_bootstrap_s():
    sums, counts = simulated_tasks(np.random.default_rng(4), 30)
    sums, counts = zip(*sorted(zip(sums, counts, strict=True)), strict=True)
    generator = np.random.default_rng(9)
    means = []
    for _ in range(intervals.RESAMPLES):
        drawn = [int(each) for each in generator.integers(30, size=30)]
        means.append(sum(sums[i] for i in drawn) / sum(counts[i] for i in drawn))
    metric = clustered_mean("tests", sums, counts, seed=9)
    tail = expanded_tail(30)
    assert (metric.low, metric.high) == pytest.approx(tuple(np.quantile(means, [tail, 1 - tail])), abs=1e-4)


def test_the_interval_is_scipy_s_bootstrap_over_tasks():
    sums, counts = simulated_tasks(np.random.default_rng(5), 80)

    def mean(sums: np.ndarray, counts: np.ndarray, axis: int) -> np.ndarray:
        return sums.sum(axis=axis) / counts.sum(axis=axis)

    expected = bootstrap(
        (sums, counts), mean, paired=True, method="percentile", n_resamples=20_000, rng=1
    ).confidence_interval
    metric = clustered_mean("tests", sums, counts)
    # Two draws of the ends of one interval: they differ by a twentieth of its width at most.
    tolerance = 0.05 * (expected.high - expected.low)
    assert (metric.low, metric.high) == pytest.approx((expected.low, expected.high), abs=tolerance)


def test_one_task_could_be_anything():
    assert clustered_mean("tests", [0.5], [1]) == Metric("tests", 0.5, 0.0, 1.0, 1)
    assert clustered_mean("turns", [40.0], [8], bounds=(1, 10)) == Metric("turns", 5.0, 1, 10, 8)


def test_tasks_without_scored_answers_do_not_count():
    assert clustered_mean("tests", [1.0, 0.0, 0.0], [2, 0, 1]) == clustered_mean("tests", [1.0, 0.0], [2, 1])


@pytest.mark.parametrize("counts", [[], [0, 0]])
def test_a_mean_of_nothing_has_no_figure(counts):
    metric = clustered_mean("tests", [0.0] * len(counts), counts, unscored=4)
    assert metric == Metric("tests", None, None, None, 0, 4)


def test_a_figure_of_nothing_survives_its_file():
    metric = proportion("success", 0, 0)
    assert msgspec.json.decode(msgspec.json.encode(metric), type=Metric) == metric


def test_sums_and_counts_must_go_together():
    with pytest.raises(ValueError, match="one sum and one count per task"):
        clustered_mean("tests", [1.0], [1, 2])


@pytest.mark.parametrize("successes", [0, 6])
def test_tasks_that_all_fail_or_succeed_leave_the_doubt_of_as_many_single_trials(successes):
    metric = clustered_mean("success", [10.0 * successes / 6] * 6, [10] * 6)
    alike = proportion("success", successes, 6)
    assert (metric.value, metric.low, metric.high) == pytest.approx((alike.value, alike.low, alike.high))


def test_tasks_that_all_agree_are_not_certainty_whatever_is_measured():
    # Of 6 tasks none is otherwise: of all tasks at most z^2 / (6 + z^2) are.
    others = 1.96**2 / (6 + 1.96**2)
    metric = clustered_mean("turns", [15.0] * 6, [5] * 6, bounds=(1, 10))
    assert metric.value == 3.0
    assert (metric.low, metric.high) == pytest.approx((3 - others * 2, 3 + others * 7), abs=1e-4)


def test_a_rounding_error_is_no_spread():
    metric = clustered_mean("tests", [0.1 + 0.1 + 0.1, 0.1], [3, 1])
    assert metric.high - metric.low > 0.5


def test_shares_of_single_items_are_independent_trials_and_others_are_not():
    assert clustered_share("p", [1, 0, 1, 0], [1, 1, 1, 0]) == proportion("p", 2, 3)
    assert clustered_share("p", [2, 0, 1], [2, 2, 2]) == clustered_mean("p", [2, 0, 1], [2, 2, 2])


def test_the_area_under_the_curve_is_the_share_of_pairs_in_order() -> None:
    metric = area_under_curve([0.9, 0.4, 0.4, 0.1], [True, True, False, False])
    assert metric.value == pytest.approx((1 + 1 + 0.5 + 1) / 4)
    assert metric.low is not None
    assert metric.high is not None
    assert metric.low <= metric.value <= metric.high
    assert metric.count == 4


def test_scores_that_mean_nothing_have_an_interval_around_a_half() -> None:
    rng = np.random.default_rng(0)
    metric = area_under_curve(rng.normal(size=200), [each % 2 == 0 for each in range(200)])
    assert metric.low is not None
    assert metric.high is not None
    assert metric.low < 0.5 < metric.high


def test_one_kind_of_outcome_has_no_area() -> None:
    assert area_under_curve([1.0, 2.0], [True, True]).value is None


@pytest.mark.parametrize("points", [15.0, -4.0])
def test_rewards_that_are_no_shares_lie_within_their_own_interval(points) -> None:
    alike = clustered_mean("points", [points] * 6, [1] * 6)
    alone = clustered_mean("points", [points], [1])
    assert alike.low <= points <= alike.high
    assert alike.low < alike.high
    assert alone.low <= points <= alone.high
