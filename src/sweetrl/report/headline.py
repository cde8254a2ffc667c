"""The opening of a report: its result in one sentence, and a task that one method fails and the best one solves."""

import random
from collections.abc import Collection, Mapping, Sequence

from sweetrl.domains.registry import domain_of_scorer, labels_of_scorer
from sweetrl.report.contents import MEASURES, Comparison, Measure, Method, TaskScore
from sweetrl.report.markup import counted
from sweetrl.report.scales import estimate_of


def by_success(scorer: str) -> bool:
    """Whether runs are compared by success; by reward if answers are hardly ever perfect."""
    domain = domain_of_scorer(scorer)
    return domain is None or domain.by_success


def reward_measure(scorer: str) -> Measure:
    """The name and format of a scorer's reward in reports."""
    labels = labels_of_scorer(scorer)
    return Measure(labels.reward.replace(" ", "_"), labels.reward, labels.share, labels.meaning)


def task_sentence(methods: Sequence[Method]) -> str:
    """The agents' job, by the domain of the first method."""
    return labels_of_scorer(methods[0].scorer).task if methods else ""


# ---------------------------------------------------------------- one sentence


def headline(
    methods: Sequence[Method], comparisons: Sequence[Comparison] = (), *, unseen: bool = False
) -> str:
    """The results of the best method, the next best and the first; empty if nothing was scored.

    `unseen`: the tasks are known not to have been trained on.
    """
    ranked = ranking(methods)
    if not ranked:
        return ""
    measure = _measure(methods[0].scorer)
    if measure is MEASURES[0] and len(ranked) > 1 and not ranked[0][1]:
        tasks = counted(len(methods[0].tasks), "task")
        return "No run solves a task it has never seen." if unseen else f"No run solves any of {tasks}."
    chosen = [*ranked[:2], *(each for each in ranked[2:] if each[0] is methods[0])]
    (best, value), *others = chosen
    reached = f"{best.title} {_verb(measure)} {_amount(value, measure)}{_what(best, measure, unseen=unseen)}"
    rest = (f", {method.title} {_amount(value, measure)}" for method, value in others)
    close = ": too close to tell apart" if _too_close(ranked, comparisons) else ""
    return f"{reached}{''.join(rest)}{close}."


def ranking(methods: Sequence[Method]) -> list[tuple[Method, float]]:
    """The methods of the first one's scorer with what they are compared by, the best first."""
    alike = [method for method in methods if method.scorer == methods[0].scorer]
    name = _measure(methods[0].scorer).name if alike else ""
    found = [(method, _value(method, name)) for method in alike]
    return sorted(
        ((method, value) for method, value in found if value is not None), key=lambda each: -each[1]
    )


def _measure(scorer: str) -> Measure:
    return MEASURES[0] if by_success(scorer) else reward_measure(scorer)


def _value(method: Method, name: str) -> float | None:
    found = estimate_of(next((metric for metric in method.metrics if metric.name == name), None))
    return None if found is None else found.value


def _verb(measure: Measure) -> str:
    return "solves" if measure is MEASURES[0] else "reaches"


def _amount(value: float, measure: Measure) -> str:
    return f"{100 * value:.0f} %" if measure.percent else f"{value:.2f}"


def _what(method: Method, measure: Measure, *, unseen: bool) -> str:
    count = len(method.tasks)
    tasks = "tasks it has never seen" if unseen else counted(count, "task")
    return f" of {tasks}" if measure is MEASURES[0] else f" {measure.label} on {tasks}"


def _too_close(ranked: Sequence[tuple[Method, float]], comparisons: Sequence[Comparison]) -> bool:
    """Whether the two best are equal, or the interval of their difference contains zero."""
    names = {method.name for method, _ in ranked[:2]}
    equal = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
    return equal or any(
        {each.first, each.second} == names and found.low <= 0 <= found.high
        for each in comparisons
        if (found := estimate_of(each.difference)) is not None
        and len(names) == 2
        and each.measure == _measure(ranked[0][0].scorer).name
    )


# ---------------------------------------------------------------- one task


def value_of(score: TaskScore | None, *, by_success: bool) -> float | None:
    """The value by which a task is compared: the share of successes, or the mean reward if success tells nothing."""
    if score is None or not score.attempts:
        return None
    # As many digits as the list shows: what looks equal is equal.
    return round(score.successes / score.attempts if by_success else score.reward, 3)


def duel_methods(methods: Sequence[Method]) -> tuple[Method, Method] | None:
    """The first method and the best one, unless that is the first."""
    ranked = ranking(methods)
    if not ranked or ranked[0][0] is methods[0]:
        return None
    return methods[0], ranked[0][0]


def gaps(worse: Method, better: Method) -> dict[str, float]:
    """How much better the second method is, task by task."""
    kind = by_success(worse.scorer)
    values = (
        (task, value_of(worse.tasks[task], by_success=kind), value_of(better.tasks[task], by_success=kind))
        for task in sorted(worse.tasks.keys() & better.tasks.keys())
    )
    return {task: high - low for task, low, high in values if low is not None and high is not None}


def duel_task(found: Mapping[str, float], credited: Collection[str], seed: int) -> str | None:
    """One of the tasks with the largest gap, drawn by the seed; tasks with `credited` episodes go first."""
    widest = max(found.values(), default=0.0)
    if widest <= 0:
        return None
    tasks = [task for task, gap in found.items() if gap >= 0.9 * widest]
    with_credit = {episode.rpartition("#")[0] for episode in credited}
    preferred = [task for task in tasks if task in with_credit] or tasks
    return random.Random(seed).choice(preferred)  # noqa: S311  not a secret
