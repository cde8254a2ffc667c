"""Pairs of dialogues on one task, by the rewards that the scorer gave them.

A dialogue that failed or has no score reveals nothing about the agent and is in no pair: no words of an agent make a
dialogue fail. Nothing else is left out, however long or strange. The pairs and their order depend on the
episodes alone, not on the order of the files.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from sweetrl.errors import DataError
from sweetrl.types import Ending, Episode, EpisodePair, Verdict, digest

PAPER_MARGIN = 0.1
"""How much the similarity of two designs must differ (paper, section 5)."""

_ROUNDING = 1e-9
"""0.4 - 0.3 is a little more than 0.1 in floating point, and is not meant to be."""


class Scored(NamedTuple):
    """A dialogue and what it earned."""

    attempt: int
    episode_id: str
    task_id: str
    reward: float
    success: bool


Rule = Callable[[list[Scored]], Iterator[EpisodePair]]
"""The dialogues on one task, by attempt -> their pairs."""


def best_against_lower(scored: list[Scored]) -> Iterator[EpisodePair]:
    """The paper's rule for programs: the best dialogue, if it succeeded, against each with a lower reward.

    Of several that are best, the first attempt is taken.
    """
    best = max(scored, key=lambda each: each.reward)
    if best.success:
        yield from _against_lower(best, scored)


def successes_against_lower(scored: list[Scored]) -> Iterator[EpisodePair]:
    """Every dialogue that succeeded against each with a lower reward: more to learn from than the best alone."""
    for success in (each for each in scored if each.success):
        yield from _against_lower(success, scored)


def all_pairs(margin: float = PAPER_MARGIN) -> Rule:
    """Every two dialogues whose rewards differ by more than `margin`; with 0.1 the paper's rule for designs."""

    def rule(scored: list[Scored]) -> Iterator[EpisodePair]:
        for one, other in combinations(scored, 2):
            if abs(one.reward - other.reward) > margin + _ROUNDING:
                yield _pair(one, other) if one.reward > other.reward else _pair(other, one)

    return rule


def _against_lower(chosen: Scored, scored: list[Scored]) -> Iterator[EpisodePair]:
    return (_pair(chosen, each) for each in scored if chosen.reward - each.reward > _ROUNDING)


def _pair(chosen: Scored, rejected: Scored) -> EpisodePair:
    return EpisodePair(
        task_id=chosen.task_id,
        chosen=chosen.episode_id,
        rejected=rejected.episode_id,
        margin=chosen.reward - rejected.reward,
    )


def pair_episodes(
    episodes: Iterable[Episode], verdicts: Iterable[Verdict], rule: Rule
) -> Iterator[EpisodePair]:
    """The pairs of all tasks, task by task. A verdict must be on one of the episodes, as it is."""
    known = {episode.id: _Known.of(episode) for episode in episodes}
    by_task: dict[str, list[Scored]] = {}
    for scored in _scored(known, verdicts):
        by_task.setdefault(scored.task_id, []).append(scored)
    for task_id in sorted(by_task):
        yield from rule(sorted(by_task[task_id]))


def reason_for_no_pairs(verdicts: Iterable[Verdict], rule: Rule) -> str:
    """Why the rule found no pairs among these, and what to do about it."""
    by_task: dict[str, list[float]] = {}
    for verdict in verdicts:
        if verdict.reward is not None:
            by_task.setdefault(verdict.task_id, []).append(verdict.reward)
    if not by_task:
        return "no dialogue was scored; score them again"
    if all(len(rewards) == 1 for rewards in by_task.values()):
        return "no task has two scored dialogues; roll out several on each (rollout --attempts)"
    widest = max(max(rewards) - min(rewards) for rewards in by_task.values())
    if widest <= _ROUNDING:
        least, most = min(map(min, by_task.values())), max(map(max, by_task.values()))
        earned = f"{least:.3g}" if least == most else f"from {least:.3g} to {most:.3g}"
        return (
            f"on each of {len(by_task)} tasks all dialogues earned the same ({earned}); roll out more of them, "
            f"or use a better agent"
        )
    if rule in (best_against_lower, successes_against_lower):
        return "no task has a success and a dialogue that earned less; --rule all needs no success"
    return f"rewards on one task differ by {widest:.3g} at most; lower --margin"


class _Known(NamedTuple):
    """What pairing needs to know of an episode: its text need not be in memory."""

    task_id: str
    attempt: int
    answer_digest: str
    failed: bool

    @classmethod
    def of(cls, episode: Episode) -> "_Known":
        failed = episode.ending is Ending.FAILED
        return cls(episode.task_id, episode.attempt, digest(episode.answer), failed)


def _scored(known: dict[str, _Known], verdicts: Iterable[Verdict]) -> Iterator[Scored]:
    seen: set[str] = set()
    for verdict in verdicts:
        episode = known.get(verdict.episode_id)
        _refuse_mismatch(verdict, episode, again=verdict.episode_id in seen)
        assert episode is not None
        seen.add(verdict.episode_id)
        if verdict.reward is not None and not episode.failed:
            yield Scored(
                episode.attempt, verdict.episode_id, episode.task_id, verdict.reward, verdict.success
            )


def _refuse_mismatch(verdict: Verdict, episode: _Known | None, *, again: bool) -> None:
    if episode is None:
        raise DataError(f"the verdict on {verdict.episode_id} has no episode; give the episodes it judges")
    if again:
        raise DataError(f"there are two verdicts on {verdict.episode_id}; give those of one scorer")
    if verdict.reward is not None and verdict.answer_digest != episode.answer_digest:
        raise DataError(
            f"the verdict on {verdict.episode_id} judges another answer than the episode's; score it anew"
        )
