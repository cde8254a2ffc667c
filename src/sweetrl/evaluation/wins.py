"""How often one run beats another: task by task, on the mean reward of each (the paper's win rate)."""

from collections.abc import Iterable

from sweetrl.errors import DataError
from sweetrl.evaluation.intervals import clustered_mean
from sweetrl.types import Metric, Verdict


def win_rate(ours: Iterable[Verdict], theirs: Iterable[Verdict]) -> Metric:
    """The share of the tasks of both runs in which ours earned more; a tie is half a win.

    Answers that could not be scored count for neither side.
    """
    mine, other = _Means(ours), _Means(theirs)
    if mine.scorers and other.scorers and mine.scorers != other.scorers:
        names = ", ".join(sorted(mine.scorers | other.scorers))
        raise DataError(f"only verdicts of one scorer can be compared, not of {names}")
    wins = [_win(mine.of(task), other.of(task)) for task in sorted(mine.sums.keys() & other.sums.keys())]
    return clustered_mean("win_rate", wins, [1] * len(wins), unscored=mine.unscored + other.unscored)


class _Means:
    """Mean rewards by task."""

    def __init__(self, verdicts: Iterable[Verdict]) -> None:
        self.sums: dict[str, tuple[float, int]] = {}
        self.scorers: set[str] = set()
        self.unscored = 0
        for verdict in verdicts:
            if verdict.reward is None:
                self.unscored += 1
                continue
            total, count = self.sums.get(verdict.task_id, (0.0, 0))
            self.sums[verdict.task_id] = (total + verdict.reward, count + 1)
            self.scorers.add(verdict.scorer)

    def of(self, task: str) -> float:
        total, count = self.sums[task]
        return total / count


def _win(mine: float, other: float) -> float:
    return 0.5 if mine == other else float(mine > other)
