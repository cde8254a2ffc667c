import math

import numpy as np
import pytest
from scipy import stats

from sweetrl.evaluation.two_way_intervals import common_cells, half_width, two_way_mean, two_way_ratio


def rows(cells: np.ndarray) -> list[dict[str, float]]:
    return [{f"t{task}": float(value) for task, value in enumerate(row)} for row in cells]


def test_tasks_that_a_seed_lacks_are_left_out() -> None:
    cells = common_cells([{"a": 1.0, "b": 2.0}, {"b": 3.0, "c": 4.0}])
    assert cells.tolist() == [[2.0], [3.0]]


def test_without_any_effect_of_tasks_it_is_the_t_interval_over_seeds() -> None:
    seeds = np.array([0.2, 0.5, 0.4, 0.3, 0.6])
    cells = np.tile(seeds[:, None], (1, 7))
    expected = stats.t.ppf(0.975, 4) * seeds.std(ddof=1) / math.sqrt(5)
    assert half_width(cells) == pytest.approx(expected, rel=1e-3)


def test_without_any_effect_of_seeds_it_is_the_t_interval_over_tasks() -> None:
    tasks = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.5])
    cells = np.tile(tasks, (4, 1))
    expected = stats.t.ppf(0.975, 5) * tasks.std(ddof=1) / math.sqrt(6)
    assert half_width(cells) == pytest.approx(expected, rel=1e-3)


def test_hand_arithmetic_of_the_mean_squares() -> None:
    # Means of the rows 2 and 4.5, of the columns 1 and 5.5; each cell is 0.25 off their sum.
    cells = np.array([[0.0, 4.0], [2.0, 7.0]])
    seed_square, task_square, noise = 2 * 2.5**2 / 2, 2 * 4.5**2 / 2, 4 * 0.25**2
    total = seed_square + task_square - noise
    freedom = total**2 / (seed_square**2 + task_square**2 + noise**2)
    assert half_width(cells) == pytest.approx(
        stats.t.ppf(0.975, max(1.0, freedom)) * math.sqrt(total / 4), rel=1e-3
    )


def test_one_seed_is_the_bootstrap_over_tasks() -> None:
    row = {f"t{n}": float(n % 3 == 0) for n in range(50)}
    metric = two_way_mean("success", [row])
    assert metric.value == pytest.approx(17 / 50)
    assert metric.low is not None
    assert metric.high is not None
    assert 0.18 < metric.low < 0.28 < 0.42 < metric.high < 0.5


def test_the_interval_stays_within_what_is_possible() -> None:
    cells = np.zeros((3, 10))
    cells[0, 0] = 1.0
    metric = two_way_mean("success", rows(cells))
    assert metric.low == 0.0
    assert metric.count == 30


def test_nothing_in_common_rests_on_nothing() -> None:
    assert two_way_mean("success", [{"a": 1.0}, {"b": 1.0}]).value is None


@pytest.mark.parametrize(("seed_spread", "task_spread"), [(0.0, 1.0), (0.3, 1.0), (1.0, 0.3), (0.3, 0.0)])
def test_the_interval_holds_the_truth_as_often_as_it_says(seed_spread: float, task_spread: float) -> None:
    random = np.random.default_rng(5)
    runs, seeds, tasks = 500, 5, 60
    hits = 0
    for _ in range(runs):
        level = random.normal(0, seed_spread, (seeds, 1)) + random.normal(0, task_spread, (1, tasks))
        cells = level + random.normal(0, 1, (seeds, tasks))
        hits += abs(cells.mean()) <= half_width(cells)
    assert 0.93 <= hits / runs <= 0.99


@pytest.mark.parametrize(("seeds", "tasks"), [(5, 60), (1, 60), (5, 400)])
def test_the_interval_of_a_ratio_holds_the_truth_as_often_as_it_says(seeds: int, tasks: int) -> None:
    random = np.random.default_rng(7)
    held = 0
    for _ in range(150):
        by_seed, by_task = random.normal(0, 0.1 * (seeds > 1), (seeds, 1)), random.normal(0, 0.3, (1, tasks))
        bottoms = 1.0 + by_seed + by_task + random.normal(0, 0.3, (seeds, tasks))
        tops = 0.6 * bottoms + random.normal(0, 0.1 * (seeds > 1), (seeds, 1))
        tops = tops + random.normal(0, 0.3, (seeds, tasks))
        found = two_way_ratio("share", rows(tops), rows(bottoms))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.6 <= found.high
    assert held >= 0.9 * 150


def test_a_ratio_to_nothing_is_none() -> None:
    assert two_way_ratio("share", [{"a": 1.0}], [{"a": 0.0}]).value is None
    assert two_way_ratio("share", [{"a": 1.0}], [{"b": 1.0}]).value is None
