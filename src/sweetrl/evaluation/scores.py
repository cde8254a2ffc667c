"""Figures of a scored run: success and share of tests passed, with intervals, from a stream of verdicts."""

from collections import Counter
from collections.abc import Collection, Iterable

from msgspec import Struct

from sweetrl.evaluation.intervals import clustered_mean, proportion
from sweetrl.types import Metric, Outcome, Verdict


class Summary(Struct, frozen=True):
    """What a run came to."""

    success: Metric
    """Share of answers that pass every test."""
    tests_passed: Metric
    """Mean reward: for backend tasks the share of tests passed."""
    outcomes: dict[Outcome, int]
    """How many tests ended in which way."""
    unscored: int
    """Answers that could not be judged, for reasons that are not theirs."""
    tasks: int


class _Tally:
    """Sums per task: memory grows with the tasks, not with the answers."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self.successes: Counter[str] = Counter()
        self.rewards: dict[str, float] = {}
        self.outcomes: Counter[Outcome] = Counter()
        self.unscored = 0

    def add(self, verdict: Verdict) -> None:
        if verdict.reward is None:
            self.unscored += 1
            return
        self.answers[verdict.task_id] += 1
        self.successes[verdict.task_id] += verdict.success
        self.rewards[verdict.task_id] = self.rewards.get(verdict.task_id, 0.0) + verdict.reward
        self.outcomes.update(check.outcome for check in verdict.checks)


def summarise(verdicts: Iterable[Verdict], *, without: Collection[str] = ()) -> Summary:
    """The figures over all verdicts but those on the tasks `without`."""
    tally = _Tally()
    for verdict in verdicts:
        if verdict.task_id not in without:
            tally.add(verdict)
    tasks = list(tally.answers)
    counts = [tally.answers[task] for task in tasks]
    rewards = [tally.rewards[task] for task in tasks]
    return Summary(
        success=_success(tally, tasks, counts),
        tests_passed=clustered_mean("tests_passed", rewards, counts, unscored=tally.unscored),
        outcomes={outcome: tally.outcomes[outcome] for outcome in Outcome},
        unscored=tally.unscored,
        tasks=len(tasks),
    )


def _success(tally: _Tally, tasks: list[str], counts: list[int]) -> Metric:
    # One answer a task: independent trials, for which Wilson's interval is the better one.
    if all(count == 1 for count in counts):
        return proportion("success", tally.successes.total(), len(tasks), unscored=tally.unscored)
    successes = [tally.successes[task] for task in tasks]
    return clustered_mean("success", successes, counts, unscored=tally.unscored)
