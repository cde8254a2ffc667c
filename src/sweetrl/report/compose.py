"""From the records of runs to the contents of a report: figures, differences, and dialogues worth reading."""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

import msgspec

from sweetrl.domains.registry import domain_of_scorer, reference_text
from sweetrl.evaluation.compare import paired_difference
from sweetrl.evaluation.intervals import clustered_mean
from sweetrl.evaluation.metrics import measure
from sweetrl.evaluation.scores import FAILURES_AS_ZERO, TaskTally
from sweetrl.prompts import TURN_LIMIT
from sweetrl.report.contents import (
    Comparison,
    Example,
    Figure,
    Method,
    Pictures,
    Point,
    Provenance,
    ReportContents,
    Series,
    TaskScore,
    Training,
)
from sweetrl.report.scales import estimate_of
from sweetrl.types import Episode, Metric, Task, TurnCredit, Verdict

ALL_PAIRS = 5
"""Of more runs than this, each is compared with the first one only."""


@dataclass(frozen=True)
class Run:
    """A scored run. Its records are read several times and never all held: files may stand behind them."""

    name: str
    episodes: Iterable[Episode]
    verdicts: Iterable[Verdict]
    credit: Iterable[TurnCredit] = ()
    label: str = ""
    metrics: tuple[Metric, ...] = ()
    """Figures that cannot be told from the records alone."""
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """Where they are known, examples show what was wanted."""
    turn_limit: int = TURN_LIMIT
    """How often the agent could speak at most."""
    picture: Callable[[str], bytes | None] = lambda _: None
    """The PNG file of a content hash, where it was kept."""


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
) -> ReportContents:
    """What there is to say about `runs`, with the dialogues on `examples` tasks of each scorer."""
    methods = tuple(method_of(run) for run in runs)
    shown = tuple(chain.from_iterable(_examples(runs, methods, examples, seed)))
    credit = credit_figure(runs)
    return ReportContents(
        title=title,
        summary=summary,
        methods=methods,
        comparisons=tuple(chain.from_iterable(compared(*pair) for pair in pairs(methods))),
        figures=(*figures, *([credit] if credit is not None else [])),
        trainings=tuple(trainings),
        examples=shown,
        left_out=sum(method.dialogues for method in methods) - len(shown),
        provenance=tuple(provenance),
    )


# ---------------------------------------------------------------- figures


def method_of(run: Run) -> Method:
    """The figures of a run."""
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
    """What the reward is depends on who gave it."""
    if metric.name != "reward":
        return metric
    return msgspec.structs.replace(metric, name=reward_name(scorer))


def reward_name(scorer: str) -> str:
    """What the reports call the reward of a scorer."""
    domain = domain_of_scorer(scorer)
    return "reward" if domain is None else domain.labels.reward.replace(" ", "_")


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
    yield _comparison(reward_name(first.scorer), first, second, common, _reward)


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


# ---------------------------------------------------------------- examples


def _examples(
    runs: Sequence[Run], methods: Sequence[Method], count: int, seed: int
) -> Iterator[list[Example]]:
    """The examples of each task, those of all runs next to each other."""
    for scorer in dict.fromkeys(method.scorer for method in methods):
        members = [run for run, method in zip(runs, methods, strict=True) if method.scorer == scorer]
        credited = {run.name: {each.episode_id for each in run.credit} for run in members}
        scores = [method.tasks for method in methods if method.scorer == scorer]
        tasks = choose_tasks(scores, set(chain.from_iterable(credited.values())), count, seed)
        found = [_dialogues_of(run, tasks, credited[run.name]) for run in members]
        yield from ([each[task] for each in found if task in each] for task in tasks)


def choose_tasks(
    scores: Sequence[Mapping[str, TaskScore]], credited: Collection[str], count: int, seed: int
) -> list[str]:
    """Tasks to read the dialogues of: drawn by the seed from those on which the runs differ, and from the others.

    Half of them, if there are as many, are tasks on which the runs differ; tasks with `credited` episodes go first.
    """
    with_credit = {episode.rpartition("#")[0] for episode in credited}
    every = sorted(set(chain.from_iterable(scores)))
    random.Random(seed).shuffle(every)  # noqa: S311  not a secret
    every.sort(key=lambda task: task not in with_credit)
    differing = [task for task in every if _differ(task, scores)]
    others = [task for task in every if task not in set(differing)]
    half = min(len(differing), max(count - len(others), -(-count // 2)))
    return (differing[:half] + others)[:count]


def _differ(task: str, scores: Sequence[Mapping[str, TaskScore]]) -> bool:
    rewards = {round(each[task].reward, 3) for each in scores if task in each}
    return len(rewards) > 1


def _dialogues_of(run: Run, tasks: Sequence[str], credited: Collection[str]) -> dict[str, Example]:
    """One dialogue on each task: the first with credit, or else the first."""
    chosen: dict[str, Episode] = {}
    wanted = set(tasks)
    for episode in run.episodes:
        task = episode.task_id
        better = task not in chosen or (episode.id in credited and chosen[task].id not in credited)
        if task in wanted and better:
            chosen[task] = episode
    ids = {episode.id for episode in chosen.values()}
    verdicts = {verdict.episode_id: verdict for verdict in run.verdicts if verdict.episode_id in ids}
    credit = [each for each in run.credit if each.episode_id in ids]
    return {
        task: _example(run, episode, verdicts.get(episode.id), credit) for task, episode in chosen.items()
    }


def _example(run: Run, episode: Episode, verdict: Verdict | None, credit: Iterable[TurnCredit]) -> Example:
    own = sorted((credit for credit in credit if credit.episode_id == episode.id), key=lambda each: each.turn)
    task = run.tasks.get(episode.task_id)
    return Example(
        method=run.name,
        episode=episode,
        verdict=verdict,
        credit=tuple(own),
        reference=None if task is None else reference_text(task),
        pictures=_pictures(run, episode, verdict),
    )


def _pictures(run: Run, episode: Episode, verdict: Verdict | None) -> Pictures:
    named = {turn.reply.screenshot for turn in episode.turns if turn.reply and turn.reply.screenshot}
    drafts = {name: png for name in sorted(named) if (png := run.picture(name)) is not None}
    kept = None if verdict is None else verdict.screenshots
    if kept is None:
        return Pictures(drafts=drafts)
    pictures = Pictures(reference=run.picture(kept.reference), drafts=drafts)
    return pictures if kept.answer is None else replace(pictures, answer=run.picture(kept.answer))
