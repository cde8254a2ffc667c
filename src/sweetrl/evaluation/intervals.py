"""95 % intervals: Wilson's for proportions, the bootstrap over tasks for means.

Answers to one task resemble each other, so the tasks, not the answers, are what a mean was sampled from. A
metric without items has count 0 and None for its numbers.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sweetrl.types import Metric

UPPER = 0.975
Z = NormalDist().inv_cdf(UPPER)
"""The standard normal's 97.5 % point."""
RESAMPLES = 2000
SAME = 1e-12
"""Means of tasks that differ by no more, as a share of what is possible, differ by rounding."""
BATCH_ENTRIES = 1 << 20
"""Limit on the drawn tasks in memory at a time: 8 MB."""


def proportion(name: str, successes: int, count: int, *, unscored: int = 0) -> Metric:
    """`successes` of `count` independent items, with Wilson's score interval.

    Unlike the usual p +- 2s it stays within 0..1, and it has a width even at 0 and at `count` successes.
    """
    if not 0 <= successes <= count:
        raise ValueError(f"{successes} of {count} is no proportion")
    if count == 0:
        return Metric(name, None, None, None, 0, unscored)
    share = successes / count
    return Metric(name, share, *_wilson(share, count), count, unscored)


def _wilson(share: float, count: int) -> tuple[float, float]:
    shrink = 1 + Z**2 / count
    centre = (share + Z**2 / (2 * count)) / shrink
    reach = Z / shrink * math.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    # At the ends rounding would leave the share just outside of its own interval.
    return min(share, max(0.0, centre - reach)), max(share, min(1.0, centre + reach))


def clustered_share(
    name: str, successes: Sequence[int], counts: Sequence[int], *, unscored: int = 0
) -> Metric:
    """The share of successes among items that come in tasks: `successes[i]` of `counts[i]` in task i.

    With one item a task they are independent trials, for which Wilson's interval is the better one.
    """
    if all(count <= 1 for count in counts):
        return proportion(name, sum(successes), sum(counts), unscored=unscored)
    return clustered_mean(name, successes, counts, unscored=unscored)


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

    `sums[i]` and `counts[i]` are the total and the number of task i's items, and `bounds` what an item can be; a
    mean outside of them widens them. One task reveals nothing about the spread between tasks: its interval is the whole
    range.
    """
    totals, sizes = np.asarray(sums, np.float64), np.asarray(counts, np.int64)
    if totals.shape != sizes.shape or totals.ndim != 1:
        raise ValueError(f"one sum and one count per task, not {totals.shape} and {sizes.shape}")
    return ratio_of_sums(
        name,
        totals,
        sizes.astype(np.float64),
        count=int(sizes.sum()),
        seed=seed,
        unscored=unscored,
        bounds=bounds,
    )


def ratio_of_sums(
    name: str,
    tops: NDArray[np.float64],
    bottoms: NDArray[np.float64],
    *,
    count: int,
    seed: int = 0,
    unscored: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Metric:
    """The sum of `tops` by that of `bottoms`, one of each for a task, with the bootstrap over tasks.

    A mean whose weights are any numbers from 0 on; `count` is how many items it rests on.
    """
    tops, bottoms = _in_order(tops[bottoms > 0], bottoms[bottoms > 0])
    tasks = len(bottoms)
    if tasks == 0:
        return Metric(name, None, None, None, 0, unscored)
    ratio = float(tops.sum() / bottoms.sum())
    bounds = min(ratio, bounds[0]), max(ratio, bounds[1])
    if tasks == 1:
        low, high = bounds
    elif np.ptp(tops / bottoms) <= SAME * (bounds[1] - bounds[0]):
        low, high = _unanimous(ratio, tasks, bounds)
    else:
        low, high = middle(_resampled_ratios(tops, bottoms, seed), tasks)
    return Metric(name, ratio, low, high, count, unscored)


def _in_order(
    tops: NDArray[np.float64], bottoms: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The tasks sorted, and sums without what depends on the order of their terms.

    Dialogues end in any order. The same ones must give the same metrics in any order.
    """
    tops, bottoms = np.round(tops, 14), np.round(bottoms, 14)
    order = np.lexsort((bottoms, tops))
    return tops[order], bottoms[order]


def middle(draws: NDArray[np.float64], tasks: int) -> tuple[float, float]:
    """The ends of the 95 % interval from the draws of a bootstrap over this many tasks."""
    tail = tail_share(tasks)
    low, high = np.quantile(draws, [tail, 1 - tail])
    return float(low), float(high)


def tail_share(tasks: int) -> float:
    """Which share of the draws to cut off at each end: 2.5 %, less with few tasks.

    Draws from n tasks spread by sqrt((n - 1) / n) too little, and like a normal variable where Student's t is
    due: the expanded percentile interval (Hesterberg, 2015).
    """
    free = tasks - 1
    return NormalDist().cdf(-student(free) * math.sqrt(tasks / free))


def student(freedom: float) -> float:
    """The 97.5 % point of Student's t."""
    # Takes a third of a second to import, so only when an interval is needed.
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    return float(stdtrit(freedom, UPPER))


def _unanimous(mean: float, tasks: int, bounds: tuple[float, float]) -> tuple[float, float]:
    """Where all tasks agree, all draws would too, and the bootstrap would claim certainty.

    Wilson's interval says how many tasks of another kind there may be all the same, and `bounds` how far off
    those are. At both ends of 0..1 this is Wilson's own interval.
    """
    others = _wilson(0.0, tasks)[1]
    return mean - others * (mean - bounds[0]), mean + others * (bounds[1] - mean)


def _resampled_ratios(
    tops: NDArray[np.float64], bottoms: NDArray[np.float64], seed: int
) -> NDArray[np.float64]:
    return np.concatenate(
        [tops[drawn].sum(axis=1) / bottoms[drawn].sum(axis=1) for drawn in drawn_tasks(len(tops), seed)]
    )


def drawn_tasks(tasks: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Which tasks each resample is made of, one row each, in batches that bound memory."""
    generator = np.random.default_rng(seed)
    batch = max(1, min(RESAMPLES, BATCH_ENTRIES // tasks))
    for start in range(0, RESAMPLES, batch):
        yield generator.integers(tasks, size=(min(batch, RESAMPLES - start), tasks))


def area_under_curve(scores: Sequence[float] | NDArray[np.float64], success: Sequence[bool]) -> Metric:
    """How often a success scores higher than a failure, ties counting half; 95 % bootstrap over both kinds."""
    given, good = np.asarray(scores, np.float64), np.asarray(success, np.bool_)
    if not good.any() or good.all():
        return Metric("auc", None, None, None, 0)
    wins = 0.5 + 0.5 * np.sign(given[good][:, None] - given[~good][None, :])
    rng = np.random.default_rng(0)
    drawn = [
        wins[
            np.ix_(
                rng.integers(0, wins.shape[0], wins.shape[0]), rng.integers(0, wins.shape[1], wins.shape[1])
            )
        ]
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile([each.mean() for each in drawn], [1 - UPPER, UPPER])
    return Metric("auc", float(wins.mean()), float(low), float(high), len(given))
