"""Metrics of a scored run: success and share of tests passed, with intervals, from a stream of verdicts."""

from collections import Counter
from collections.abc import Collection, Iterable

from msgspec import Struct

from sweetrl.evaluation.intervals import clustered_mean, clustered_share
from sweetrl.types import Metric, Outcome, Verdict

FAILURES_AS_ZERO = "success_failures_as_zero"
"""The metric that shows what success would be if every dialogue without a reward were a failure of the agent."""


class Summary(Struct, frozen=True):
    """The results of a run."""

    success: Metric
    """Share of answers that pass every test."""
    success_failures_as_zero: Metric
    """Success with unscored answers counted as failures."""
    tests_passed: Metric
    """Mean reward: for backend tasks the share of tests passed."""
    outcomes: dict[Outcome, int]
    """How many tests ended in which way."""
    unscored: int
    """Answers that could not be judged, for reasons that are not theirs."""
    tasks: int


class TaskTally:
    """Sums over the verdicts of a run, per task: memory grows with the tasks, not with the answers."""

    def __init__(self, verdicts: Iterable[Verdict] = (), *, without: Collection[str] = ()) -> None:
        self.answers: Counter[str] = Counter()
        """Scored ones."""
        self.successes: Counter[str] = Counter()
        self.rewards: dict[str, float] = {}
        """Sums."""
        self.outcomes: Counter[Outcome] = Counter()
        self.scorers: set[str] = set()
        self.unscored = 0
        self.lost: Counter[str] = Counter()
        """Dialogues without a reward: those that failed, and answers that could not be scored."""
        for verdict in verdicts:
            if verdict.task_id not in without:
                self.add(verdict)

    def add(self, verdict: Verdict) -> None:
        """One more; an unscored one counts for nothing but itself."""
        if verdict.reward is None:
            self.unscored += 1
            self.lost[verdict.task_id] += 1
            return
        self.scorers.add(verdict.scorer)
        self.answers[verdict.task_id] += 1
        self.successes[verdict.task_id] += verdict.success
        self.rewards[verdict.task_id] = self.rewards.get(verdict.task_id, 0.0) + verdict.reward
        self.outcomes.update(check.outcome for check in verdict.checks)

    def success(self, task: str) -> float:
        """The share of a task's answers that succeed."""
        return self.successes[task] / self.answers[task]

    def reward(self, task: str) -> float:
        """The mean reward of a task's answers."""
        return self.rewards[task] / self.answers[task]

    @property
    def attempted(self) -> set[str]:
        """Tasks with a dialogue, scored or lost."""
        return {*self.answers, *(task for task, count in self.lost.items() if count)}

    def success_failures_as_zero(self, task: str) -> float:
        """The share of a task's dialogues that succeed, where lost ones count as failures of the agent."""
        return self.successes[task] / (self.answers[task] + self.lost[task])

    def failures_as_zero_metric(self) -> Metric:
        """The share of all dialogues that succeed, lost ones included."""
        tasks = self.attempted
        counts = [self.answers[task] + self.lost[task] for task in tasks]
        return clustered_share(FAILURES_AS_ZERO, [self.successes[task] for task in tasks], counts)

    def success_metric(self) -> Metric:
        """The share of all answers that succeed."""
        successes = [self.successes[task] for task in self.answers]
        return clustered_share("success", successes, list(self.answers.values()), unscored=self.unscored)

    def reward_metric(self, name: str = "reward") -> Metric:
        """The mean reward of all answers."""
        rewards = [self.rewards[task] for task in self.answers]
        return clustered_mean(name, rewards, list(self.answers.values()), unscored=self.unscored)


def summarise(verdicts: Iterable[Verdict], *, without: Collection[str] = ()) -> Summary:
    """The metrics over all verdicts but those on the tasks `without`."""
    tally = TaskTally(verdicts, without=without)
    return Summary(
        success=tally.success_metric(),
        success_failures_as_zero=tally.failures_as_zero_metric(),
        tests_passed=tally.reward_metric("tests_passed"),
        outcomes={outcome: tally.outcomes[outcome] for outcome in Outcome},
        unscored=tally.unscored,
        tasks=len(tally.answers),
    )
