"""The metrics of an evaluated run: success, how many turns it took, and how well the agent asked.

How well it asked can be told where the benchmark knows its hidden facts, through a `FactTracker`. Dialogues
that failed and answers that could not be scored are counted apart. `success_failures_as_zero` is
success with all of them as failures of the agent: an agent that gains by them shows as a gap between the two.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from sweetrl.domains.domain import FactTracker
from sweetrl.errors import DataError
from sweetrl.evaluation.intervals import clustered_mean, clustered_share
from sweetrl.evaluation.scores import FAILURES_AS_ZERO, TaskTally
from sweetrl.prompts import TURN_LIMIT
from sweetrl.types import Ending, Episode, Metric, RunMetrics, Task, Verdict


class Asking(Struct, frozen=True, kw_only=True):
    """How one dialogue went about the hidden facts of its task."""

    facts: int
    """How many matter."""
    found: int
    """How many of those were asked about before the answer."""
    repeats: int
    """Questions about something that had been asked before."""
    premature: bool
    """The agent chose to answer with a fact that matters unasked."""


def assess_asking(task: Task, episode: Episode, tracker: FactTracker) -> Asking:
    """How the agent asked in an episode. A question is a message that the collaborator replied to."""
    asked: set[str] = set()
    repeats = 0
    for turn in episode.turns:
        fact = tracker.asked(turn.said) if turn.answered else None
        if fact is not None:
            repeats += fact in asked
            asked.add(fact)
    facts = tracker.facts(task)
    return Asking(
        facts=len(facts),
        found=len(facts & asked),
        repeats=repeats,
        premature=episode.ending is Ending.ANSWERED and not facts <= asked,
    )


def useful_turns(task: Task, episode: Episode, tracker: FactTracker) -> set[int]:
    """The turns, counted from 0, that ask about a fact that matters and was not asked about before."""
    unasked, useful = set(tracker.facts(task)), set()
    for number, turn in enumerate(episode.turns):
        fact = tracker.asked(turn.said) if turn.answered else None
        if fact in unasked:
            unasked.remove(fact)
            useful.add(number)
    return useful


def measure(
    tasks: Mapping[str, Task],
    episodes: Iterable[Episode],
    verdicts: Iterable[Verdict],
    *,
    tracker: FactTracker | None = None,
    turn_limit: int = TURN_LIMIT,
) -> RunMetrics:
    """The metrics of the dialogues `episodes` and of the verdicts on them; both are read once."""
    dialogues = _Dialogues(tasks, tracker)
    for episode in episodes:
        dialogues.add(episode)
    tally = dialogues.tally(verdicts)
    return RunMetrics(
        tasks=len(dialogues.turns.counts),
        dialogues=len(dialogues.whole),
        failed=len(dialogues.failed),
        unscored=tally.unscored,
        broke_off=dialogues.broke_off,
        unanswered=dialogues.unanswered,
        metrics={
            metric.name: metric
            for metric in (
                tally.success_metric(),
                tally.failures_as_zero_metric(),
                tally.reward_metric(),
                *dialogues.metrics(turn_limit),
            )
        },
    )


def figures_by_task(
    tasks: Mapping[str, Task],
    episodes: Iterable[Episode],
    verdicts: Iterable[Verdict],
    *,
    tracker: FactTracker | None = None,
) -> dict[str, dict[str, float]]:
    """The metrics by name, for each task: the mean over its attempts."""
    dialogues = _Dialogues(tasks, tracker)
    for episode in episodes:
        dialogues.add(episode)
    tally = dialogues.tally(verdicts)
    return {
        "success": {task: tally.success(task) for task in tally.answers},
        FAILURES_AS_ZERO: {task: tally.success_failures_as_zero(task) for task in tally.attempted},
        "reward": {task: tally.reward(task) for task in tally.answers},
        **{name: sums.means() for name, sums in dialogues.sums().items()},
    }


def useful_by_turn(
    tasks: Mapping[str, Task], episodes: Iterable[Episode], tracker: FactTracker, turn_limit: int
) -> list[dict[str, float]]:
    """For each turn, task by task: the share of dialogues in which it asks what matters and is new."""
    sums = [_Sums() for _ in range(turn_limit)]
    for episode in episodes:
        if episode.ending is not Ending.FAILED:
            useful = useful_turns(tasks[episode.task_id], episode, tracker)
            for number, each in enumerate(sums):
                each.add(episode.task_id, number in useful)
    return [each.means() for each in sums]


class _Sums:
    """A number of each dialogue, added up by task."""

    def __init__(self) -> None:
        self.sums: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    def add(self, task: str, amount: float) -> None:
        self.sums[task] = self.sums.get(task, 0.0) + amount
        self.counts[task] = self.counts.get(task, 0) + 1

    def means(self) -> dict[str, float]:
        return {task: total / self.counts[task] for task, total in self.sums.items()}

    def mean(self, name: str, bounds: tuple[float, float] = (0.0, 1.0)) -> Metric:
        return clustered_mean(name, list(self.sums.values()), list(self.counts.values()), bounds=bounds)

    def share(self, name: str) -> Metric:
        successes = [round(total) for total in self.sums.values()]
        return clustered_share(name, successes, list(self.counts.values()))


class _Dialogues:
    """Counts and sums over the dialogues of a run."""

    def __init__(self, tasks: Mapping[str, Task], tracker: FactTracker | None) -> None:
        self._tasks = tasks
        self._tracker = tracker
        self.whole: set[str] = set()
        self.failed: set[str] = set()
        self.broke_off = 0
        self.unanswered = 0
        self._count: Counter[str] = Counter()
        self.turns = _Sums()
        self._coverage, self._repeats, self._premature = _Sums(), _Sums(), _Sums()

    def add(self, episode: Episode) -> None:
        self._count[episode.task_id] += 1
        if episode.ending is Ending.FAILED:
            self.failed.add(episode.id)
            return
        self.whole.add(episode.id)
        self.broke_off += episode.ending is Ending.BROKE_OFF
        self.unanswered += sum(bool(turn.reply and turn.reply.excuse) for turn in episode.turns)
        self.turns.add(episode.task_id, len(episode.turns))
        if self._tracker is not None:
            self._add_asking(episode.task_id, assess_asking(self._task(episode), episode, self._tracker))

    def _task(self, episode: Episode) -> Task:
        if episode.task_id not in self._tasks:
            raise DataError(f"the episode {episode.id} is on a task that is not there; are these its tasks?")
        return self._tasks[episode.task_id]

    def _add_asking(self, task: str, asking: Asking) -> None:
        if asking.facts:
            self._coverage.add(task, asking.found / asking.facts)
        self._repeats.add(task, asking.repeats)
        self._premature.add(task, asking.premature)

    def tally(self, verdicts: Iterable[Verdict]) -> TaskTally:
        """The tally of the verdicts; dialogues without a verdict count as unscored too."""
        tally = TaskTally(self._known(verdicts))
        tally.unscored = len(self.whole) - tally.answers.total()
        tally.lost = self._count - tally.answers
        return tally

    def _known(self, verdicts: Iterable[Verdict]) -> Iterable[Verdict]:
        """The verdicts on whole dialogues; one on a dialogue that is not there is an error."""
        for verdict in verdicts:
            if verdict.episode_id in self.whole:
                yield verdict
            elif verdict.episode_id not in self.failed:
                raise DataError(f"a verdict is on {verdict.episode_id}, which is not among the episodes")

    def sums(self) -> dict[str, _Sums]:
        if self._tracker is None:
            return {"turns": self.turns}
        asking = {"coverage": self._coverage, "repeats": self._repeats, "premature": self._premature}
        return {"turns": self.turns, **asking}

    def metrics(self, turn_limit: int) -> Iterable[Metric]:
        yield self.turns.mean("turns", (1, turn_limit))
        if self._tracker is not None:
            yield self._coverage.mean("coverage")
            yield self._repeats.mean("repeats", (0, turn_limit))
            yield self._premature.share("premature")
