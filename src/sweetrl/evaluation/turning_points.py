"""Findings of credit on a log: the turn that hurt most in each failed dialogue, and habits of successes."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sweetrl.domains.logged import LoggedDialogue
from sweetrl.types import Metric, TurnCredit

CHANCE = 0.5


@dataclass(frozen=True)
class WorstTurn:
    """The turn of a dialogue that hurt most, and why that is believed."""

    dialogue: str
    """As the log calls it."""
    episode_id: str
    number: int
    """Number of the turn, from 1."""
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
    """Credit for the turns of a log, and the findings."""

    dialogues: Sequence[LoggedDialogue]
    credit: Sequence[TurnCredit]
    critic: str
    auc: Metric | None = None
    """How well a learned critic predicts outcomes of dialogues that it was not fitted to; None for other critics."""
    reads: str = ""
    """Which features a learned critic used."""
    left_out: int = 0
    """Dialogues of the log in which the agent says nothing, or that failed."""
    habits: Sequence[Habit] = field(init=False)

    def __post_init__(self) -> None:
        from sweetrl.evaluation.habits import find_habits  # needs numpy, and the rest of this module does not

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
        """The turn that hurt most in each failed dialogue, the worst first; in all dialogues if no outcome is known."""
        failed = [each for each in self.dialogues if each.success is False]
        known = any(each.success is not None for each in self.dialogues)
        own = {
            name: [(each.advantage, each.turn) for each in turns if each.advantage is not None]
            for name, turns in self.by_dialogue.items()
        }
        everything = sorted(advantage for turns in own.values() for advantage, _ in turns)
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
            "left_out": self.left_out,
            "better_than_chance": self.is_better_than_chance,
            "worst_turns": self.worst_turns,
            "habits": list(self.habits),
        }

    @property
    def summary(self) -> list[str]:
        """What was credited and how far to trust it, one sentence each."""
        return [*self._counts(), *self._trust()]

    def _counts(self) -> Iterator[str]:
        outcomes = Counter(each.success for each in self.dialogues)
        unknown = f", {outcomes[None]} without an outcome" if outcomes[None] else ""
        turns = len(self.credit)
        yield (
            f"{len(self.dialogues)} dialogues with {turns} turns: {outcomes[True]} successes, {outcomes[False]} "
            f"failures{unknown}."
        )
        if self.left_out:
            are = "1 more dialogue is" if self.left_out == 1 else f"{self.left_out} more dialogues are"
            yield f"{are} left out: the agent says nothing there, or the dialogue failed."

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


def _worst(each: LoggedDialogue, turns: list[tuple[float, int]], everything: Sequence[float]) -> WorstTurn:
    advantage, turn = min(turns)
    lower = bisect_left(everything, advantage)
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
