"""Credit quality: how well a critic's advantages agree with what the candidates turned out to be worth.

The truth is estimated by replays (`TurnValues`), so it is noisy: no critic can agree with it fully. The agreement of
one half of the replays with the other shows how much is attainable.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sweetrl.errors import DataError
from sweetrl.evaluation.intervals import Z, clustered_mean, drawn_tasks, middle, ratio_of_sums
from sweetrl.types import CandidateSet, Metric, OutputValue, TurnValues

Outcome = Literal["reward", "success"]
Floats = NDArray[np.float64]

ORACLE = "oracle: replays"
"""Name of the critic that knows all replays."""
MEASURES = {
    "spearman": "Spearman",
    "pooled_spearman": "Spearman, all turns",
    "auc": "AUC, clear pairs",
    "gain": "gain",
    "top1": "top 1",
}
"""The names of the metrics of `CreditQuality` in tables."""
HALVES = "replays, half against half"
"""Name of the critic that knows half of the replays and is measured by the other half."""


class CreditQuality(Struct, frozen=True, kw_only=True):
    """How well one critic agrees with the truth. Intervals are over tasks."""

    critic: str
    turns: int
    """Turns whose candidates differ in value; the others cannot tell a good critic from a bad one."""
    undecided: int
    """Turns whose candidates all have the same value."""
    spearman: Metric
    """Mean over turns of the rank correlation between advantages and values."""
    pooled_spearman: Metric
    """Rank correlation between advantages and values, each value less the mean of its turn, over all turns."""
    auc: Metric
    """Mean over turns of the share of pairs that the critic orders rightly, among pairs of candidates whose
    values differ by more than the noise of the replays; 0.5 is chance."""
    gain: Metric
    """How much the critic's choice is better than a random one, as a share of how much the best one is."""
    top1: Metric
    """Share of turns at which the critic's choice is a candidate of the highest value."""


# ---------------------------------------------------------------- the truth


@dataclass(frozen=True)
class Estimates:
    """The values of a turn's candidates and their standard errors."""

    values: Floats
    errors: Floats


def estimates(turn: TurnValues, outcome: Outcome = "reward") -> Estimates:
    """The mean outcome of each candidate's replays; an outcome that is certain has no error."""
    outcomes = _outcomes(turn, outcome)
    return Estimates(
        np.array([each.mean() for each in outcomes]), np.array([_error(each) for each in outcomes])
    )


def _error(replays: Floats) -> float:
    return float(replays.std(ddof=1)) / len(replays) ** 0.5 if len(replays) > 1 else 0.0


def _outcomes(turn: TurnValues, outcome: Outcome) -> list[Floats]:
    """The outcome of each replay, for each candidate."""
    if turn.values is None:
        raise DataError(f"the values of {turn.id} are missing: its replays failed")
    values = turn.values
    chosen = [each.successes if outcome == "success" else each.rewards for each in values]
    return [np.array(each, np.float64) for each in chosen]


def ranked_by_values(turn: TurnValues, outcome: Outcome = "reward") -> CandidateSet:
    """The candidates as an oracle ranks them: each value less the mean of the turn."""
    values = estimates(turn, outcome).values
    return _ranked(turn, values - values.mean(), ORACLE)


def halves(turn: TurnValues, outcome: Outcome = "reward") -> tuple[TurnValues, CandidateSet]:
    """The truth from every other replay, and from the rest the advantages of a critic that replays."""
    known = np.array([each[::2].mean() for each in _outcomes(turn, outcome)])
    assert turn.values is not None
    others = tuple(_every_other(each) for each in turn.values)
    return replace(turn, values=others), _ranked(turn, known, HALVES)


def _ranked(turn: TurnValues, advantages: Floats, critic: str) -> CandidateSet:
    return CandidateSet(
        episode_id=turn.episode_id,
        task_id=turn.task_id,
        turn=turn.turn,
        outputs=turn.outputs,
        advantages=tuple(advantages.tolist()),
        critic=critic,
    )


def _every_other(value: OutputValue) -> OutputValue:
    """The replays that the critic of `halves` has not seen; what is certain is so for both."""
    if len(value.rewards) == 1:
        return value
    return OutputValue(value.rewards[1::2], value.successes[1::2])


# ---------------------------------------------------------------- one turn


@dataclass(frozen=True)
class TurnAgreement:
    """How a critic's advantages agree with the values at one turn."""

    spearman: float
    auc: float | None
    """None where no two values differ by more than noise."""
    gained: float
    """Value of the critic's choice less the mean value."""
    possible: float
    """The highest value less the mean value."""
    top1: float
    """How likely the critic's choice has the highest value; less than 1 and more than 0 if it has several."""


def turn_agreement(truth: Estimates, advantages: Sequence[float]) -> TurnAgreement | None:
    """The agreement at one turn; None if all values are the same."""
    values, given = truth.values, np.asarray(advantages, np.float64)
    best, mean = float(values.max()), float(values.mean())
    if best - mean <= 1e-12:
        return None
    chosen = given == given.max()
    return TurnAgreement(
        spearman=correlation(average_ranks(values), average_ranks(given)),
        auc=_ordered_share(truth, given),
        gained=float(values[chosen].mean()) - mean,
        possible=best - mean,
        top1=float(np.mean(values[chosen] >= best - 1e-12)),
    )


def _ordered_share(truth: Estimates, given: Floats) -> float | None:
    gaps = truth.values[:, None] - truth.values[None, :]
    noise = Z * np.sqrt(truth.errors[:, None] ** 2 + truth.errors[None, :] ** 2)
    better = gaps > noise + 1e-12
    if not better.any():
        return None
    preferred = given[:, None] - given[None, :]
    return float(np.mean(0.5 * (1 + np.sign(preferred[better]))))


def average_ranks(values: Floats) -> Floats:
    """Ranks from 0 on; equal values share the mean of theirs."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts + 1) / 2)[index]
    return ranks


def correlation(one: Floats, other: Floats) -> float:
    """Pearson's; 0 where one side is constant and so says nothing."""
    one, other = one - one.mean(), other - other.mean()
    scale = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / scale if scale > 0 else 0.0


# ---------------------------------------------------------------- all turns


def credit_quality(
    judged: Iterable[tuple[TurnValues, CandidateSet]], *, outcome: Outcome = "reward"
) -> CreditQuality:
    """How well the advantages of one critic agree with the values of the same candidates."""
    tally = _Tally()
    for turn, ranked in judged:
        tally.add(turn, ranked, outcome)
    return tally.quality()


class _Tally:
    def __init__(self) -> None:
        self._critics: set[str] = set()
        self._agreements: dict[str, list[TurnAgreement]] = {}
        self._pool: dict[str, list[tuple[Floats, Floats]]] = {}
        self._undecided = 0

    def add(self, turn: TurnValues, ranked: CandidateSet, outcome: Outcome) -> None:
        if ranked.advantages is None:
            raise DataError(f"the candidates of {ranked.id} are not ranked; `sweetrl rank` does that")
        if ranked.outputs != turn.outputs:
            raise DataError(f"the candidates of {ranked.id} are not those that were valued")
        self._critics.add(ranked.critic)
        if len(self._critics) > 1:
            raise DataError(f"one critic at a time, not {' and '.join(sorted(self._critics))}")
        truth = estimates(turn, outcome)
        agreement = turn_agreement(truth, ranked.advantages)
        if agreement is None:
            self._undecided += 1
            return
        self._agreements.setdefault(turn.task_id, []).append(agreement)
        relative = truth.values - truth.values.mean()
        self._pool.setdefault(turn.task_id, []).append((np.asarray(ranked.advantages), relative))

    def quality(self) -> CreditQuality:
        turns = sum(map(len, self._agreements.values()))
        return CreditQuality(
            critic="".join(self._critics),
            turns=turns,
            undecided=self._undecided,
            spearman=self._mean("spearman", (-1.0, 1.0)),
            pooled_spearman=self._pooled(),
            auc=self._mean("auc", (0.0, 1.0)),
            gain=ratio_of_sums(
                "gain", self._sums("gained"), self._sums("possible"), count=turns, bounds=(-1.0, 1.0)
            ),
            top1=self._mean("top1", (0.0, 1.0)),
        )

    def _mean(self, name: str, bounds: tuple[float, float]) -> Metric:
        by_task = [
            [figure for each in turns if (figure := getattr(each, name)) is not None]
            for turns in self._agreements.values()
        ]
        sums, counts = [sum(figures) for figures in by_task], [len(figures) for figures in by_task]
        return clustered_mean(name, sums, counts, bounds=bounds)

    def _sums(self, name: str) -> Floats:
        by_task = self._agreements.values()
        return np.array([sum(getattr(each, name) for each in turns) for turns in by_task])

    def _pooled(self) -> Metric:
        tasks = sorted(self._pool)
        given = [np.concatenate([advantages for advantages, _ in self._pool[task]]) for task in tasks]
        values = [np.concatenate([relative for _, relative in self._pool[task]]) for task in tasks]
        return pooled_correlation("pooled_spearman", given, values)


def pooled_correlation(name: str, given: Sequence[Floats], values: Sequence[Floats]) -> Metric:
    """Spearman's correlation over the items of all tasks, with a bootstrap over tasks.

    Resamples are correlated by the ranks of the whole sample: ranking each anew changes little and takes long.
    """
    count = sum(map(len, given))
    if count == 0:
        return Metric(name, None, None, None, 0)
    one, other = average_ranks(np.concatenate(given)), average_ranks(np.concatenate(values))
    whole = correlation(one, other)
    if len(given) == 1:
        return Metric(name, whole, -1.0, 1.0, count)
    # Around their common mean, so that no digits are lost in the sums of squares.
    middle_rank, ends = (count - 1) / 2, np.cumsum([len(each) for each in given])[:-1]
    by_task = zip(np.split(one - middle_rank, ends), np.split(other - middle_rank, ends), strict=True)
    moments = np.array([(len(x), x.sum(), y.sum(), x @ y, x @ x, y @ y) for x, y in by_task])
    draws = [_correlations(moments[drawn].sum(axis=1)) for drawn in drawn_tasks(len(given), 0)]
    return Metric(name, whole, *middle(np.concatenate(draws), len(given)), count)


def _correlations(moments: Floats) -> Floats:
    """Pearson's from rows of: how many, sums of x, y, xy, xx and yy."""
    count, x, y, xy, xx, yy = moments.T
    scale = np.sqrt(np.maximum(count * xx - x**2, 0) * np.maximum(count * yy - y**2, 0))
    found: Floats = np.divide(count * xy - x * y, scale, out=np.zeros_like(scale), where=scale > 0)
    return found
