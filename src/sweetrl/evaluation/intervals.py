"""95 % intervals: Wilson's for proportions, the bootstrap over tasks for means.

Answers to one task resemble each other, so the tasks, not the answers, are what a mean was sampled from. A
metric that rests on nothing has count 0 and `nan` for its figures.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sweetrl.types import Metric

Z = 1.959963984540054
"""The standard normal's 97.5 % point."""
RESAMPLES = 2000
BATCH_ENTRIES = 1 << 20
"""How many drawn tasks are held at a time: 8 MB."""


def proportion(name: str, successes: int, count: int, *, unscored: int = 0) -> Metric:
    """`successes` of `count` independent items, with Wilson's score interval.

    Unlike the usual p +- 2s it stays within 0..1, and it has a width even at 0 and at `count` successes.
    """
    if not 0 <= successes <= count:
        raise ValueError(f"{successes} of {count} is no proportion")
    if count == 0:
        return Metric(name, math.nan, math.nan, math.nan, 0, unscored)
    share = successes / count
    return Metric(name, share, *_wilson(share, count), count, unscored)


def _wilson(share: float, count: int) -> tuple[float, float]:
    shrink = 1 + Z**2 / count
    centre = (share + Z**2 / (2 * count)) / shrink
    reach = Z / shrink * math.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    # At the ends rounding would leave the share just outside of its own interval.
    return min(share, max(0.0, centre - reach)), max(share, min(1.0, centre + reach))


def clustered_mean(
    name: str,
    sums: Sequence[float] | NDArray[np.float64],
    counts: Sequence[int] | NDArray[np.int64],
    *,
    seed: int = 0,
    unscored: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Metric:
    """The mean over all items, with a percentile bootstrap that draws whole tasks.

    `sums[i]` and `counts[i]` are the total and the number of task i's items. One task shows nothing of the
    spread between tasks: its interval is all that is possible, `bounds`. Where all tasks have the same mean, a
    share between 0 and 1 gets Wilson's interval for as many items as there are tasks.
    """
    totals, sizes = np.asarray(sums, np.float64), np.asarray(counts, np.int64)
    if totals.shape != sizes.shape or totals.ndim != 1:
        raise ValueError(f"one sum and one count per task, not {totals.shape} and {sizes.shape}")
    totals, sizes = totals[sizes > 0], sizes[sizes > 0]
    count = int(sizes.sum())
    if count == 0:
        return Metric(name, math.nan, math.nan, math.nan, 0, unscored)
    mean = float(totals.sum() / count)
    if len(sizes) == 1:
        return Metric(name, mean, *bounds, count, unscored)
    if bounds == (0.0, 1.0) and np.ptp(totals / sizes) == 0:
        # All tasks agree, and so would all draws: the bootstrap would claim certainty.
        low, high = _wilson(mean, len(sizes))
        return Metric(name, mean, low, high, count, unscored)
    low, high = np.quantile(_resampled_means(totals, sizes, seed), [0.025, 0.975])
    return Metric(name, mean, float(low), float(high), count, unscored)


def _resampled_means(totals: NDArray[np.float64], sizes: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    tasks = len(sizes)
    batch = max(1, min(RESAMPLES, BATCH_ENTRIES // tasks))
    means = []
    for start in range(0, RESAMPLES, batch):
        drawn = generator.integers(tasks, size=(min(batch, RESAMPLES - start), tasks))
        means.append(totals[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    return np.concatenate(means)
