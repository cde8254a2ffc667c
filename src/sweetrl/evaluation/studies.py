"""The results of a study: the metrics of each method over its seeds, and what each step brings."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from sweetrl.evaluation.credit import CreditQuality
from sweetrl.evaluation.scores import FAILURES_AS_ZERO
from sweetrl.evaluation.two_way_intervals import Table, common_cells, two_way_mean, two_way_ratio
from sweetrl.types import Metric

Figures = Mapping[str, Mapping[str, float]]
"""Of one run: by name, a value for each task."""

SHARES = ("success", FAILURES_AS_ZERO, "reward", "coverage", "premature")
"""Metrics between 0 and 1."""


class Step(Struct, frozen=True, kw_only=True):
    """By how much the second method is better than the first, on the same tasks and seeds."""

    first: str
    second: str
    value: float | None
    """Of success."""
    low: float | None
    """Over tasks and seeds, as is `high`; with one seed over tasks."""
    high: float | None
    seeds: int
    """Those that both have been evaluated with."""
    seeds_above: int
    """Seeds at which the second is better."""
    tasks: int
    wins: int
    """Tasks on which the second is better, over all seeds."""
    losses: int


class Share(Struct, frozen=True, kw_only=True):
    """How much of the gain in success from a first method to a best one another method gets."""

    first: str
    second: str
    best: str
    value: float | None
    low: float | None
    """Over tasks and seeds, as is `high`; with one seed over tasks."""
    high: float | None
    seeds: int
    """Those that all three have been evaluated with."""


class MethodResult(Struct, frozen=True, kw_only=True):
    """The results of one method."""

    label: str
    table: str
    figures: dict[str, Metric]
    """By name, over all seeds."""
    by_seed: dict[str, dict[str, Metric]]
    """The same for each seed."""
    useful: tuple[Metric, ...] = ()
    """For each turn but the last, how often it asks about a fact that matters and is new; where facts are known."""
    failed: int
    """Dialogues that broke down."""
    unscored: int


class Curve(Struct, frozen=True, kw_only=True):
    """A metric, mostly success, against something."""

    name: str
    label: str
    points: tuple[tuple[float, Metric], ...]


def useful_curves(methods: Mapping[str, MethodResult]) -> tuple[Curve, ...]:
    """Turn by turn, how often each method asks what matters; of those of which it is known."""
    return tuple(
        Curve(name=name, label=method.label, points=tuple(enumerate(method.useful, start=1)))
        for name, method in methods.items()
        if method.useful
    )


class CriticResult(Struct, frozen=True, kw_only=True):
    """How well a critic's advantages agree with the truth."""

    label: str
    by_seed: dict[str, CreditQuality]


class Missing(Struct, frozen=True, kw_only=True):
    """What was planned and is not there yet."""

    part: str
    """Of the study, such as `methods` or `best_of`."""
    name: str
    """Of the method or critic, as is `label`."""
    label: str
    seeds: tuple[int, ...]


class StudyResults(Struct, frozen=True, kw_only=True):
    """All that a study found."""

    schema: Literal["study/1"] = "study/1"
    title: str
    tasks: str
    """Where the tasks come from that methods are evaluated on."""
    seeds: tuple[int, ...]
    """Those with anything to show."""
    methods: dict[str, MethodResult]
    steps: tuple[Step, ...]
    """Between one method and the next of a table, and between the last of the main table and each ablation."""
    shares: tuple[Share, ...] = ()
    """Those that the study names."""
    best_of: tuple[Curve, ...] = ()
    """By critic: success against the number of drafts."""
    sizes: tuple[Curve, ...] = ()
    """By method: success against the number of dialogues."""
    off_policy: dict[str, MethodResult] = {}
    """Another model that learned from the same dialogues."""
    off_policy_model: str = ""
    off_policy_steps: tuple[Step, ...] = ()
    credit: dict[str, CriticResult] = {}
    missing: tuple[Missing, ...] = ()
    settings: dict[str, Any] = {}
    """The whole study as it was run."""

    @property
    def caution(self) -> str:
        """What the results must not be read as, where the study says so."""
        return str(self.settings.get("caution", ""))


def over_seeds(runs: Sequence[Figures], turn_limit: int) -> dict[str, Metric]:
    """The metrics of several runs on the same tasks."""
    names = [name for name in runs[0] if all(name in run for run in runs)]
    return {
        name: two_way_mean(
            name, [run[name] for run in runs], bounds=(0.0, 1.0 if name in SHARES else turn_limit)
        )
        for name in names
    }


def step(first: tuple[str, Table], second: tuple[str, Table]) -> Step:
    """The second method less the first; each is a name and the success at each seed and task."""
    table = [_less(above, below) for below, above in zip(first[1], second[1], strict=True)]
    mean = two_way_mean("success", table, bounds=(-1.0, 1.0))
    cells = common_cells(table)
    by_task = cells.mean(axis=0)
    return Step(
        first=first[0],
        second=second[0],
        value=mean.value,
        low=mean.low,
        high=mean.high,
        seeds=len(table),
        seeds_above=int(np.sum(cells.sum(axis=1) > 0)),
        tasks=cells.shape[1],
        wins=int(np.sum(by_task > 0)),
        losses=int(np.sum(by_task < 0)),
    )


def share(first: tuple[str, Table], second: tuple[str, Table], best: tuple[str, Table]) -> Share:
    """What the second method gains on the first, as a share of what the best one gains on it."""
    gains, whole = (
        [_less(above, below) for below, above in zip(first[1], other[1], strict=True)]
        for other in (second, best)
    )
    found = two_way_ratio("success", gains, whole)
    return Share(
        first=first[0],
        second=second[0],
        best=best[0],
        value=found.value,
        low=found.low,
        high=found.high,
        seeds=len(gains),
    )


def _less(above: Mapping[str, float], below: Mapping[str, float]) -> dict[str, float]:
    return {task: above[task] - below[task] for task in above.keys() & below.keys()}
