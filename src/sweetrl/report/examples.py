"""Which dialogues a report shows: a duel to open with, examples with credit, and transcripts for the list of tasks."""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain

from sweetrl.domains.registry import reference_text
from sweetrl.report.contents import Duel, Example, Method, Pictures, TaskScore
from sweetrl.report.headline import duel_methods, duel_task, gaps
from sweetrl.report.runs import Run
from sweetrl.types import Episode, TurnCredit, Verdict

TRANSCRIPTS = 2_000_000
"""Characters of the dialogues that the list of tasks opens."""


def duel_of(runs: Sequence[Run], methods: Sequence[Method], seed: int) -> Duel | None:
    """A task that the first run fails and the best one solves; None where there is none."""
    chosen = duel_methods(methods)
    if chosen is None:
        return None
    found = gaps(*chosen)
    members = [next(run for run in runs if run.name == method.name) for method in chosen]
    credited = [_credited(run) for run in members]
    task = duel_task(found, credited[0] & credited[1] or credited[0] | credited[1], seed)
    if task is None:
        return None
    held = [_dialogues_of(run, [task], own).get(task) for run, own in zip(members, credited, strict=True)]
    failure, success = held
    if failure is None or success is None:
        return None
    wins = [sum(sign * gap >= 0.9 * found[task] for gap in found.values()) for sign in (1, -1)]
    return Duel(failure, success, *wins)


def examples_of(
    runs: Sequence[Run], methods: Sequence[Method], count: int, seed: int, duel: Duel | None
) -> Iterator[list[Example]]:
    """The examples of each task but that of the duel, those of all runs next to each other."""
    shown = None if duel is None else duel.failure.episode.task_id
    for members, alike in _by_scorer(runs, methods):
        credited = {run.name: _credited(run) for run in members}
        scores = [{task: score for task, score in method.tasks.items() if task != shown} for method in alike]
        tasks = choose_tasks(scores, set(chain.from_iterable(credited.values())), count, seed)
        found = [_dialogues_of(run, tasks, credited[run.name]) for run in members]
        yield from ([each[task] for each in found if task in each] for task in tasks)


def _by_scorer(runs: Sequence[Run], methods: Sequence[Method]) -> Iterator[tuple[list[Run], list[Method]]]:
    """The runs and their methods, scorer by scorer."""
    both = list(zip(runs, methods, strict=True))
    for scorer in dict.fromkeys(method.scorer for method in methods):
        alike = [each for each in both if each[1].scorer == scorer]
        yield [run for run, _ in alike], [method for _, method in alike]


def _credited(run: Run) -> set[str]:
    return {each.episode_id for each in run.credit}


def transcripts_of(runs: Sequence[Run], methods: Sequence[Method]) -> Iterator[Example]:
    """A dialogue of each run on as many tasks as there is room for, those first on which the runs differ."""
    for members, alike in _by_scorer(runs, methods):
        plain = [replace(run, credit=(), picture=lambda _: None) for run in members]
        tasks = _fitting(plain, [method.tasks for method in alike])
        found = [_dialogues_of(run, tasks, ()) for run in plain]
        yield from (each[task] for task in tasks for each in found if task in each)


def _fitting(runs: Sequence[Run], scores: Sequence[Mapping[str, TaskScore]]) -> list[str]:
    sizes: dict[str, int] = {}
    for run in runs:
        first: dict[str, int] = {}
        for episode in run.episodes:
            first.setdefault(episode.task_id, _length(episode))
        for task, length in first.items():
            sizes[task] = sizes.get(task, 0) + length
    ordered = sorted(sizes, key=lambda task: (not _differ(task, scores), task))
    room = accumulate(sizes[task] for task in ordered)
    return [task for task, used in zip(ordered, room, strict=True) if used <= TRANSCRIPTS]


def _length(episode: Episode) -> int:
    """Characters of a dialogue on the page, about."""
    replies = (len(turn.reply.text) for turn in episode.turns if turn.reply is not None)
    return sum(len(turn.said) + 60 for turn in episode.turns) + sum(replies)


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
