"""What credit says about a log: the turn that hurt most in each failed dialogue, and what successes do differently."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sweetrl.domains.logged import LoggedDialogue
from sweetrl.types import Metric, TurnCredit

Array = np.ndarray[Any, Any]

CHANCE = 0.5
SURE = 0.05
"""Habits are named if they would be found by chance this often, all phrases that were looked at taken into account."""
HABITS = 8
PHRASE_WORDS = 3
RARE = 0.1
"""Phrases of fewer dialogues than this share are not looked at, nor those that fewer lack."""
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True)
class WorstTurn:
    """The turn of a dialogue that hurt most, and why that is believed."""

    dialogue: str
    """As the log calls it."""
    episode_id: str
    number: int
    """Of the turn, from 1."""
    turns: int
    """How many the dialogue has."""
    said: str
    advantage: float
    rank: int
    """Among all turns of the log; 1 is the lowest advantage."""
    lower_than: float
    """Share of the other turns of the log that have a higher advantage."""


@dataclass(frozen=True)
class Habit:
    """A phrase that one kind of dialogues has much more often than the other."""

    phrase: str
    successes: float
    """Share of them in which the assistant says it."""
    failures: float
    p: float
    """How likely such a difference is by chance, corrected for the number of phrases (Benjamini-Hochberg)."""


@dataclass(frozen=True)
class CreditReport:
    """Credit for the turns of a log, and what it shows."""

    dialogues: Sequence[LoggedDialogue]
    credit: Sequence[TurnCredit]
    critic: str
    auc: Metric | None = None
    """How well a learned critic predicts outcomes of dialogues that it was not fitted to; None for other critics."""
    reads: str = ""
    """What a learned critic looked at."""
    habits: Sequence[Habit] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "habits", tuple(find_habits(self.dialogues)))

    @property
    def is_better_than_chance(self) -> bool | None:
        """Whether the critic predicts held-out outcomes; None if it was not learned from them."""
        return None if self.auc is None else self.auc.low is not None and self.auc.low > CHANCE

    @cached_property
    def by_dialogue(self) -> dict[str, list[TurnCredit]]:
        """The credit of each dialogue that has any, turn by turn, by the id of its episode."""
        own: dict[str, list[TurnCredit]] = {}
        for each in sorted(self.credit, key=lambda one: one.turn):
            own.setdefault(each.episode_id, []).append(each)
        return own

    @cached_property
    def worst_turns(self) -> list[WorstTurn]:
        """Of each failed dialogue, the turn that hurt most, the worst first; of all where no outcome is known."""
        failed = [each for each in self.dialogues if each.success is False]
        known = any(each.success is not None for each in self.dialogues)
        own = {
            name: [(each.advantage, each.turn) for each in turns if each.advantage is not None]
            for name, turns in self.by_dialogue.items()
        }
        everything = np.sort([advantage for turns in own.values() for advantage, _ in turns])
        found = [
            _worst(each, own[each.episode.id], everything)
            for each in (failed if known else self.dialogues)
            if own.get(each.episode.id)
        ]
        return sorted((each for each in found if each.advantage < 0), key=lambda each: each.advantage)

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "critic": self.critic,
            "auc": self.auc,
            "better_than_chance": self.is_better_than_chance,
            "worst_turns": self.worst_turns,
            "habits": list(self.habits),
        }

    @property
    def summary(self) -> list[str]:
        """What was credited and how far it can be trusted, a sentence each."""
        return [*self._counts(), *self._trust()]

    def _counts(self) -> Iterator[str]:
        outcomes = Counter(each.success for each in self.dialogues)
        unknown = f", {outcomes[None]} without an outcome" if outcomes[None] else ""
        turns = len(self.credit)
        yield (
            f"{len(self.dialogues)} dialogues with {turns} turns: {outcomes[True]} successes, {outcomes[False]} "
            f"failures{unknown}."
        )

    def _trust(self) -> Iterator[str]:
        if self.auc is None or self.auc.value is None:
            return
        yield (
            f"The critic tells held-out successes from failures with AUC {self.auc.value:.2f} "
            f"(95 % interval {self.auc.low:.2f} to {self.auc.high:.2f}; {CHANCE} is chance). "
            f"No dialogue was valued by a fit that saw its outcome. It reads {self.reads}."
        )
        if not self.is_better_than_chance:
            yield (
                "WARNING: that is not better than chance, so do not trust what it says about single turns. More "
                "dialogues with outcomes, or a larger --model, may help; --critic judge:MODEL needs no outcomes."
            )


def _worst(each: LoggedDialogue, turns: list[tuple[float, int]], everything: Array) -> WorstTurn:
    advantage, turn = min(turns)
    lower = int(everything.searchsorted(advantage))
    return WorstTurn(
        dialogue=each.label,
        episode_id=each.episode.id,
        number=turn + 1,
        turns=len(each.episode.turns),
        said=each.episode.turns[turn].said,
        advantage=advantage,
        rank=lower + 1,
        lower_than=1 - lower / max(1, len(everything) - 1) if len(everything) > 1 else 0.0,
    )


# ---------------------------------------------------------------- what successes do


def find_habits(dialogues: Sequence[LoggedDialogue]) -> list[Habit]:
    """Phrases of the assistant that separate successes from failures, the clearest first."""
    from scipy.stats import false_discovery_control, hypergeom  # type: ignore[import-untyped]

    known = [each for each in dialogues if each.success is not None]
    good = np.array([bool(each.success) for each in known], np.bool_)
    names, has = _patterns(_phrases(known))
    if not names or not good.any() or good.all():
        return []
    among_good, total = has[:, good].sum(1), has.sum(1)
    rest = (len(known), int(good.sum()), total)
    tails = np.minimum(hypergeom.cdf(among_good, *rest), hypergeom.sf(among_good - 1, *rest))
    p = false_discovery_control(np.minimum(1.0, 2 * tails))
    shares = among_good / good.sum(), (total - among_good) / (~good).sum()
    order = sorted(np.flatnonzero(p < SURE).tolist(), key=lambda at: (p[at], names[at]))
    return [
        Habit(names[at], float(shares[0][at]), float(shares[1][at]), float(p[at]))
        for at in _without_parts(order, names, has)[:HABITS]
    ]


def _patterns(phrases: Sequence[set[str]]) -> tuple[list[str], Array]:
    """The phrases that some dialogues have and some have not, and which; of several that the same have, the longest."""
    counts = Counter(name for own in phrases for name in own)
    several = [
        name for name, count in counts.items() if RARE * len(phrases) <= count <= (1 - RARE) * len(phrases)
    ]
    found: dict[tuple[bool, ...], str] = {}
    for name in sorted(several, key=lambda name: (-len(name), name)):
        found.setdefault(tuple(name in own for own in phrases), name)
    return list(found.values()), np.array(list(found), np.bool_).reshape(len(found), len(phrases))


def _phrases(dialogues: Sequence[LoggedDialogue]) -> list[set[str]]:
    """One to three words in a row that the assistant says, for each dialogue."""
    found = []
    for each in dialogues:
        own: set[str] = set()
        for turn in each.episode.turns:
            words = _WORD.findall(turn.said.lower())
            for length in range(1, PHRASE_WORDS + 1):
                own |= {" ".join(words[at : at + length]) for at in range(len(words) - length + 1)}
        found.append(own)
    return found


def _without_parts(order: Sequence[int], names: Sequence[str], has: Array) -> list[int]:
    """Without phrases that share a word with one before them and say hardly anything else."""
    kept: list[int] = []
    for at in order:
        words = set(names[at].split())
        if not any(
            words & set(names[other].split()) and (has[at] == has[other]).mean() > 0.8 for other in kept
        ):
            kept.append(at)
    return kept
