"""Two runs compared on the tasks of both: by how much they differ, and whether chance would do as much.

Both runs have the same tasks, hard and easy ones, so the difference between the means of the attempts is taken on
each task. This detects smaller differences than two intervals side by side.
"""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sweetrl.errors import DataError
from sweetrl.evaluation.intervals import BATCH_ENTRIES, clustered_mean
from sweetrl.evaluation.scores import FAILURES_AS_ZERO, TaskTally
from sweetrl.evaluation.wins import refuse_other_scorers, tallied_win_rate
from sweetrl.types import Metric

EXACT_TASKS = 18
"""If up to this many tasks differ, all ways to flip their signs are tried."""
FLIPS = 10_000
"""Random ways to flip the signs where there are more."""
ROUNDING = 1e-9
"""Sums that differ by this share of what is possible are equal."""


class Difference(Struct, frozen=True):
    """How much more the second run has of something, per task, with a 95 % interval."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    p: float
    """Two-sided, of the sign-flip test: how likely so large a difference is if it is a matter of chance
    which run is which."""
    count: int
    """Tasks of both runs."""


class Comparison(Struct, frozen=True, kw_only=True):
    """A second run against a first."""

    tasks: int
    """Tasks with scored answers in both runs; all others are left out."""
    only_first: tuple[str, ...]
    """Ids of the tasks that only the first run has scored answers to."""
    only_second: tuple[str, ...]
    success: Difference
    success_failures_as_zero: Difference
    """Success with failed and unscored dialogues counted as zero, on all tasks of both runs."""
    reward: Difference
    win_rate: Metric
    """Share of tasks on which the second run earned more; a tie is half a win."""


def compare_runs(first: TaskTally, second: TaskTally) -> Comparison:
    """The second run less the first."""
    refuse_other_scorers(first, second)
    common = sorted(first.answers.keys() & second.answers.keys())
    if not common:
        raise DataError("the runs have no scored task in common; only runs on the same tasks can be compared")

    def difference(
        name: str, figure: Callable[[TaskTally, str], float], tasks: Sequence[str] = common
    ) -> Difference:
        return paired_difference(
            name, [figure(first, task) for task in tasks], [figure(second, task) for task in tasks]
        )

    return Comparison(
        tasks=len(common),
        only_first=tuple(sorted(first.answers.keys() - second.answers.keys())),
        only_second=tuple(sorted(second.answers.keys() - first.answers.keys())),
        success=difference("success", TaskTally.success),
        success_failures_as_zero=difference(
            FAILURES_AS_ZERO, TaskTally.success_failures_as_zero, sorted(first.attempted & second.attempted)
        ),
        reward=difference("reward", TaskTally.reward),
        win_rate=tallied_win_rate(second, first),
    )


def paired_difference(
    name: str, first: Sequence[float], second: Sequence[float], seed: int = 0
) -> Difference:
    """The mean of `second[i] - first[i]` over tasks i, with a bootstrap over tasks.

    A value of any task is taken to lie within 1 of the others, or within as much as those of both runs do.
    """
    differences = np.subtract(second, first, dtype=np.float64)
    widest = max(1.0, float(np.ptp((first, second))) if len(differences) else 0.0)
    mean = clustered_mean(name, differences, [1] * len(differences), bounds=(-widest, widest), seed=seed)
    p = sign_flip_test(differences, seed=seed)
    return Difference(name, mean.value, mean.low, mean.high, p, mean.count)


def sign_flip_test(differences: NDArray[np.float64], *, seed: int = 0) -> float:
    """How likely a mean at least so far from zero is, if each difference could as well have the other sign.

    Exact where few tasks differ; otherwise from random flips, of which the observed one counts as one: such a p
    is never zero and, as a test, not too small.
    """
    sizes = np.sort(np.abs(differences[differences != 0]))
    enough = abs(differences.sum()) - ROUNDING * sizes.sum()
    if len(sizes) <= EXACT_TASKS:
        return float(np.mean(np.abs(_all_flips(sizes)) >= enough))
    hits = sum(int(np.sum(np.abs(sums) >= enough)) for sums in _random_flips(sizes, seed))
    return (1 + hits) / (1 + FLIPS)


def _all_flips(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums under every choice of signs."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate((sums - size, sums + size))
    return sums


def _random_flips(sizes: NDArray[np.float64], seed: int) -> list[NDArray[np.float64]]:
    """The sums under random choices of signs, in batches that bound memory."""
    generator = np.random.default_rng(seed)
    batch = max(1, min(FLIPS, BATCH_ENTRIES // len(sizes)))
    counts = [min(batch, FLIPS - start) for start in range(0, FLIPS, batch)]
    return [generator.choice((-1.0, 1.0), size=(count, len(sizes))) @ sizes for count in counts]
