"""From the records of runs to the contents of a report: metrics, differences, and dialogues worth reading."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations

import msgspec

from sweetrl.evaluation.compare import paired_difference
from sweetrl.evaluation.intervals import clustered_mean
from sweetrl.evaluation.metrics import measure
from sweetrl.evaluation.scores import FAILURES_AS_ZERO, TaskTally
from sweetrl.report.contents import (
    MEASURES,
    Comparison,
    Duel,
    Example,
    Figure,
    Measure,
    Method,
    Point,
    Provenance,
    ReportContents,
    Series,
    TaskScore,
    Training,
)
from sweetrl.report.examples import duel_of, examples_of, transcripts_of
from sweetrl.report.headline import headline, reward_measure, task_sentence
from sweetrl.report.runs import Run
from sweetrl.report.scales import estimate_of
from sweetrl.types import Episode, Metric, TurnCredit

ALL_PAIRS = 5
"""Up to this many runs are all compared with each other; of more, each is compared with the first only."""


def compose(
    title: str,
    runs: Sequence[Run],
    *,
    summary: str = "",
    figures: Sequence[Figure] = (),
    trainings: Sequence[Training] = (),
    provenance: Sequence[Provenance] = (),
    examples: int = 6,
    seed: int = 0,
    unseen: bool = False,
) -> ReportContents:
    """The report about `runs`, with the dialogues on `examples` tasks of each scorer; with 0 there are none.

    `unseen`: the tasks are known not to have been trained on.
    """
    methods = tuple(method_of(run) for run in runs)
    comparisons = tuple(chain.from_iterable(compared(*pair) for pair in pairs(methods)))
    duel = duel_of(runs, methods, seed) if examples else None
    shown = tuple(chain.from_iterable(examples_of(runs, methods, examples, seed, duel)))
    transcripts = tuple(transcripts_of(runs, methods)) if examples else ()
    credit = credit_figure(runs)
    return ReportContents(
        title=title,
        headline=headline(methods, comparisons, unseen=unseen),
        task=task_sentence(methods),
        summary=summary,
        duel=duel,
        methods=methods,
        measures=tuple(measures_for(methods)),
        comparisons=comparisons,
        figures=(*figures, *([credit] if credit is not None else [])),
        trainings=tuple(trainings),
        examples=shown,
        transcripts=transcripts,
        left_out=sum(method.dialogues for method in methods) - _distinct(duel, (*shown, *transcripts)),
        provenance=tuple(provenance),
    )


def _distinct(duel: Duel | None, shown: Sequence[Example]) -> int:
    every = shown if duel is None else (duel.failure, duel.success, *shown)
    return len({(each.method, each.episode.id) for each in every})


def measures_for(methods: Sequence[Method]) -> Iterator[Measure]:
    """The usual ones, the reward by the names that the domains have for it."""
    rewards = dict.fromkeys(reward_measure(method.scorer) for method in methods)
    for each in MEASURES:
        if each.name == "reward":
            yield from rewards
        else:
            yield each


# ---------------------------------------------------------------- figures


def method_of(run: Run) -> Method:
    """The metrics of a run."""
    requests: dict[str, str] = {}

    def noted(episodes: Iterable[Episode]) -> Iterator[Episode]:
        for episode in episodes:
            requests.setdefault(episode.task_id, episode.request)
            yield episode

    figures = measure(run.tasks, noted(run.episodes), run.verdicts, turn_limit=run.turn_limit)
    tally = TaskTally(run.verdicts)
    scorer = ", ".join(sorted(tally.scorers))
    return Method(
        name=run.name,
        label=run.label,
        scorer=scorer,
        metrics=(
            *(_named(metric, scorer) for metric in figures.metrics.values()),
            *(metric for metric in run.metrics if metric.name not in figures.metrics),
        ),
        dialogues=figures.dialogues + figures.failed,
        tasks={
            task: TaskScore(tally.answers[task], tally.successes[task], tally.reward(task))
            for task in tally.answers
        },
        requests=requests,
        unscored=figures.unscored + figures.failed,
        with_failures={task: tally.success_failures_as_zero(task) for task in tally.attempted},
    )


def _named(metric: Metric, scorer: str) -> Metric:
    """The metric, with the name that its scorer uses for the reward."""
    if metric.name != "reward":
        return metric
    return msgspec.structs.replace(metric, name=reward_measure(scorer).name)


def credit_figure(runs: Sequence[Run]) -> Figure | None:
    """The mean advantage of each turn number, where a critic has judged the turns."""
    series = tuple(
        Series(run.label or run.name, points, run.name)
        for run in runs
        if (points := tuple(_advantages(run.credit)))
    )
    if not series:
        return None
    return Figure(
        title="Where credit falls",
        x_label="turn",
        y_label="mean advantage",
        series=series,
        caption="What the critic thinks of the first turn, the second, and so on.",
    )


def _advantages(credited: Iterable[TurnCredit]) -> Iterator[Point]:
    sums: dict[int, dict[str, list[float]]] = {}
    for credit in credited:
        if credit.advantage is not None:
            sums.setdefault(credit.turn, {}).setdefault(credit.task_id, []).append(credit.advantage)
    for turn, tasks in sorted(sums.items()):
        values = list(tasks.values())
        bounds = min(map(min, values)), max(map(max, values))
        totals, counts = [sum(each) for each in values], [len(each) for each in values]
        figure = estimate_of(clustered_mean("advantage", totals, counts, bounds=bounds))
        if figure is not None:
            yield Point(turn + 1, figure.value, figure.low, figure.high)


# ---------------------------------------------------------------- differences


def pairs(methods: Sequence[Method]) -> Iterator[tuple[Method, Method]]:
    """Which methods to compare: the later with the earlier, of one scorer; of many, all with the first."""
    for scorer in dict.fromkeys(method.scorer for method in methods):
        members = [method for method in methods if method.scorer == scorer]
        if len(members) <= ALL_PAIRS:
            yield from ((second, first) for first, second in combinations(members, 2))
        else:
            yield from ((method, members[0]) for method in members[1:])


def compared(first: Method, second: Method) -> Iterator[Comparison]:
    """First less second on the tasks of both: in success, where there is any, and in reward.

    Where dialogues were lost, also in success with those counted as zero.
    """
    common = sorted(first.tasks.keys() & second.tasks.keys())
    if not common:
        return
    if any(method.tasks[task].successes for method in (first, second) for task in common):
        yield _comparison("success", first, second, common, _success)
        if first.unscored or second.unscored:
            attempted = sorted(first.with_failures.keys() & second.with_failures.keys())
            yield _comparison(FAILURES_AS_ZERO, first, second, attempted, _success_with_failures)
    yield _comparison(reward_measure(first.scorer).name, first, second, common, _reward)


def _success(method: Method, task: str) -> float:
    return method.tasks[task].successes / method.tasks[task].attempts


def _success_with_failures(method: Method, task: str) -> float:
    return method.with_failures[task]


def _reward(method: Method, task: str) -> float:
    return method.tasks[task].reward


def _comparison(
    measure_name: str,
    first: Method,
    second: Method,
    tasks: Sequence[str],
    value: Callable[[Method, str], float],
) -> Comparison:
    ours, theirs = [value(first, task) for task in tasks], [value(second, task) for task in tasks]
    found = paired_difference(measure_name, theirs, ours)
    signs = [round(a - b, 9) for a, b in zip(ours, theirs, strict=True)]
    return Comparison(
        first=first.name,
        second=second.name,
        measure=measure_name,
        difference=Metric(measure_name, found.value, found.low, found.high, found.count),
        wins=sum(sign > 0 for sign in signs),
        ties=sum(sign == 0 for sign in signs),
        losses=sum(sign < 0 for sign in signs),
        p_value=found.p,
    )
