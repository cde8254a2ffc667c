"""Means over crossed tasks and seeds: every run of a study has the same tasks.

Both are samples. Another seed would train another policy, other tasks would be harder or easier, so the spread of
either counts: the two-way analysis of variance, with the degrees of freedom of Satterthwaite.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sweetrl.evaluation.intervals import RESAMPLES, clustered_mean, middle, student
from sweetrl.types import Metric

Table = Sequence[Mapping[str, float]]
"""For each seed, a value for each task."""


def two_way_mean(name: str, table: Table, *, bounds: tuple[float, float] = (0.0, 1.0)) -> Metric:
    """The mean over all seeds and the tasks that all of them have; with one seed, over tasks alone."""
    cells = common_cells(table)
    seeds, tasks = cells.shape
    if seeds == 1 or tasks <= 1 or np.ptp(cells) == 0:
        sums = cells.sum(axis=0)
        return clustered_mean(name, sums, [seeds] * tasks, bounds=bounds)
    mean, reach = float(cells.mean()), half_width(cells)
    return Metric(name, mean, max(bounds[0], mean - reach), min(bounds[1], mean + reach), cells.size)


def common_cells(table: Table) -> NDArray[np.float64]:
    """The values as (seeds, tasks), of the tasks that every seed has, in the order of their names."""
    shared = sorted(set.intersection(*(set(row) for row in table)))
    return np.array([[row[task] for task in shared] for row in table], np.float64).reshape(len(table), -1)


def half_width(cells: NDArray[np.float64]) -> float:
    """How far the 95 % interval reaches to each side of the mean of (seeds, tasks)."""
    seeds, tasks = cells.shape
    by_seed, by_task = cells.mean(axis=1), cells.mean(axis=0)
    rest = cells - by_seed[:, None] - by_task[None, :] + cells.mean()
    freedom = (seeds - 1) * (tasks - 1)
    noise = float((rest**2).sum() / freedom)
    # Mean squares; seeds or tasks whose differences do not exceed the noise are no source of variance.
    sources = [
        (square, count - 1)
        for square, count in (
            (tasks * float(by_seed.var(ddof=1)), seeds),
            (seeds * float(by_task.var(ddof=1)), tasks),
        )
        if square > noise
    ]
    if len(sources) != 1:
        sources.append((noise if not sources else -noise, freedom))
    total = sum(square for square, _ in sources)
    effective = total**2 / sum(square**2 / free for square, free in sources)
    return student(max(1.0, effective)) * math.sqrt(total / cells.size)


def two_way_ratio(name: str, tops: Table, bottoms: Table) -> Metric:
    """The mean of `tops` by that of `bottoms`, with a bootstrap that draws both seeds and tasks.

    The interval is that of the fewer of the two, seeds or tasks (see `intervals.tail_share`).
    """
    cells = common_cells([*tops, *bottoms])
    above, below = cells[: len(tops)], cells[len(tops) :]
    seeds, tasks = above.shape
    if tasks == 0 or below.sum() == 0:
        return Metric(name, None, None, None, 0)
    generator = np.random.default_rng(0)
    by_seed = generator.multinomial(seeds, [1 / seeds] * seeds, size=RESAMPLES)
    by_task = generator.multinomial(tasks, [1 / tasks] * tasks, size=RESAMPLES)
    drawn = [((by_seed @ cells) * by_task).sum(axis=1) for cells in (above, below)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = drawn[0] / drawn[1]
    fewest = min(size for size in (seeds, tasks) if size > 1 or seeds == tasks == 1)
    low, high = middle(ratios[np.isfinite(ratios)], max(2, fewest))
    return Metric(name, float(above.sum() / below.sum()), low, high, above.size)
