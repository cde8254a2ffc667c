"""How often one run beats another: task by task, on the mean reward of each (the paper's win rate)."""

from collections.abc import Iterable

from sweetrl.errors import DataError
from sweetrl.evaluation.intervals import clustered_mean
from sweetrl.evaluation.scores import TaskTally
from sweetrl.types import Metric, Verdict


def win_rate(ours: Iterable[Verdict], theirs: Iterable[Verdict]) -> Metric:
    """The share of the tasks of both runs in which ours earned more; a tie is half a win.

    Answers that could not be scored count for neither side.
    """
    return tallied_win_rate(TaskTally(ours), TaskTally(theirs))


def tallied_win_rate(mine: TaskTally, other: TaskTally) -> Metric:
    """The win rate of runs whose verdicts are already tallied."""
    refuse_other_scorers(mine, other)
    common = sorted(mine.answers.keys() & other.answers.keys())
    wins = [_win(mine.reward(task), other.reward(task)) for task in common]
    return clustered_mean("win_rate", wins, [1] * len(wins), unscored=mine.unscored + other.unscored)


def refuse_other_scorers(mine: TaskTally, other: TaskTally) -> None:
    """Rewards of two scorers, or of two versions of one, cannot be compared."""
    if mine.scorers and other.scorers and mine.scorers != other.scorers:
        names = ", ".join(sorted(mine.scorers | other.scorers))
        raise DataError(
            f"only verdicts of one scorer can be compared, not of {names}; give both runs one --mode and --similarity"
        )


def _win(mine: float, other: float) -> float:
    return 0.5 if mine == other else float(mine > other)
