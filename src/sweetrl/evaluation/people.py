"""How well a critic agrees with people: its advantages against turns that people marked as helpful or harmful."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np
from msgspec import Struct

from sweetrl.errors import DataError
from sweetrl.evaluation.credit import pooled_correlation
from sweetrl.evaluation.intervals import clustered_mean
from sweetrl.types import Annotation, Metric, TurnCredit


class PeopleAgreement(Struct, frozen=True, kw_only=True):
    """How well one critic agrees with annotations. Intervals are over tasks."""

    critic: str
    turns: int
    """Marked turns that the critic judged."""
    helped: int
    """How many of them people marked as helpful."""
    missing: int
    """Marked turns without an advantage."""
    sign: Metric
    """Share of turns whose advantage is above zero where people say it helped, and below where it hurt."""
    auc: Metric
    """Share of pairs of a helpful and a harmful turn of one dialogue that the critic orders as people do."""
    spearman: Metric
    """Rank correlation of advantages and marks over all turns."""


class _Marked(Struct, frozen=True):
    task: str
    episode: str
    mark: int
    """1 for helped, -1 for hurt."""
    advantage: float


def agreement_with_people(annotations: Iterable[Annotation], credit: Iterable[TurnCredit]) -> PeopleAgreement:
    """How well the advantages of one critic agree with what people marked."""
    marks = _marks(annotations)
    judged = {each.id: each for each in credit if each.id in marks}
    critics = sorted({each.critic for each in judged.values()})
    if len(critics) > 1:
        raise DataError(f"one critic at a time, not {' and '.join(critics)}")
    turns = [
        _Marked(each.task_id, each.episode_id, marks[name], each.advantage)
        for name, each in judged.items()
        if each.advantage is not None
    ]
    by_task = _grouped(turns, "task")
    return PeopleAgreement(
        critic="".join(critics),
        turns=len(turns),
        helped=sum(each.mark > 0 for each in turns),
        missing=len(marks) - len(turns),
        sign=_mean("sign", {task: [_same_sign(each) for each in own] for task, own in by_task.items()}),
        auc=_mean("auc", {task: _ordered(own) for task, own in by_task.items()}),
        spearman=pooled_correlation(
            "spearman",
            [np.array([each.advantage for each in own]) for own in by_task.values()],
            [np.array([float(each.mark) for each in own]) for own in by_task.values()],
        ),
    )


def _marks(annotations: Iterable[Annotation]) -> dict[str, int]:
    """The majority's mark for each turn; turns with a tie are left out."""
    votes: dict[str, int] = {}
    for each in annotations:
        votes[each.id] = votes.get(each.id, 0) + (1 if each.mark == "helped" else -1)
    return {turn: 1 if balance > 0 else -1 for turn, balance in votes.items() if balance}


def _grouped(turns: Iterable[_Marked], field: str) -> dict[str, list[_Marked]]:
    found: dict[str, list[_Marked]] = {}
    for each in turns:
        found.setdefault(getattr(each, field), []).append(each)
    return found


def _same_sign(turn: _Marked) -> float:
    return float(turn.advantage * turn.mark > 0)


def _ordered(turns: Sequence[_Marked]) -> list[float]:
    """For each pair of a helpful and a harmful turn of one dialogue: 1 if the helpful one is higher, 0.5 if equal."""
    found = []
    for own in _grouped(turns, "episode").values():
        helpful = [each.advantage for each in own if each.mark > 0]
        harmful = [each.advantage for each in own if each.mark < 0]
        found += [0.5 * (1 + float(np.sign(high - low))) for high, low in product(helpful, harmful)]
    return found


def _mean(name: str, by_task: Mapping[str, Sequence[float]]) -> Metric:
    values = list(by_task.values())
    return clustered_mean(name, [sum(each) for each in values], [len(each) for each in values])
