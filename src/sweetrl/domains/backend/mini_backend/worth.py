"""The exact value of a turn on `mini-backend`, by enumeration: the ground truth for critics.

The programmer of the corpus acts at random, and its success depends only on the facts it has not asked about yet and
the number of turns left. So the chance of success after any turn follows exactly from its habits. The tiny models
imitate this programmer; for them the values are as accurate as the imitation.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from sweetrl.domains.backend.mini_backend.corpus import ANSWER, HABITS, TURN_LIMIT, Habits, cued_facts
from sweetrl.domains.backend.mini_backend.facts import Fact
from sweetrl.domains.backend.mini_backend.making import read_choice, reference_of
from sweetrl.domains.backend.mini_backend.speech import understand
from sweetrl.types import Message, Role, Task

_MARKER = ANSWER.strip()


class Unasked(NamedTuple):
    """How many facts have not been asked about, by whether they matter and whether the programmer suspects them."""

    suspected: int
    overlooked: int
    """They matter, but it does not understand the hint."""
    suspected_in_vain: int
    idle: int

    @property
    def missing(self) -> int:
        """Without these the function is wrong."""
        return self.suspected + self.overlooked


def turn_worth(task: Task, history: Sequence[Message], output: str) -> float:
    """How much a turn changes the chance of success."""
    turn = sum(message.role is Role.ASSISTANT for message in history)
    known = _asked(task, history)
    return _after(task, known, turn, output) - chance_of_success(_unasked(task, known), turn)


def _after(task: Task, known: frozenset[Fact], turn: int, output: str) -> float:
    _, marker, answer = output.partition(_MARKER)
    if marker or turn + 1 >= TURN_LIMIT:
        return float(answer.strip() == reference_of(task))
    family, _ = read_choice(reference_of(task))
    asked = understand(output, [family])
    return chance_of_success(_unasked(task, known | ({asked} if asked else set())), turn + 1)


@cache
def chance_of_success(unasked: Unasked, turn: int, habits: Habits = HABITS) -> float:
    """The programmer's chance of success before it takes turn number `turn`, counted from 0."""
    done = float(unasked.missing == 0)
    if turn + 1 >= TURN_LIMIT:
        return done
    stays = chance_of_success(unasked, turn + 1, habits)
    wandered = habits.wander * _mean(unasked, ("overlooked", "idle"), turn, habits, stays)
    asks = wandered + (1 - habits.wander) * stays
    if unasked.suspected + unasked.suspected_in_vain:
        followed = _mean(unasked, ("suspected", "suspected_in_vain"), turn, habits, stays)
        asks = habits.follow * followed + (1 - habits.follow) * asks
    repeat = habits.repeat if turn else 0.0
    answers = habits.hurry if unasked.suspected + unasked.suspected_in_vain else habits.finish
    return answers * done + (1 - answers) * (repeat * stays + (1 - repeat) * asks)


def _mean(unasked: Unasked, kinds: Sequence[str], turn: int, habits: Habits, none_left: float) -> float:
    """After a question about any fact of these kinds."""
    counts: dict[str, int] = {kind: count for kind in kinds if (count := getattr(unasked, kind))}
    if not counts:
        return none_left
    total = 0.0
    for kind, count in counts.items():
        total += count * chance_of_success(unasked._replace(**{kind: count - 1}), turn + 1, habits)
    return total / sum(counts.values())


def _asked(task: Task, history: Sequence[Message]) -> frozenset[Fact]:
    family, _ = read_choice(reference_of(task))
    found = (understand(message.text, [family]) for message in history if message.role is Role.ASSISTANT)
    return frozenset(fact for fact in found if fact is not None)


def _unasked(task: Task, known: frozenset[Fact]) -> Unasked:
    family, choice = read_choice(reference_of(task))
    left = set(family.facts) - known
    matter = left & {fact for fact, _ in choice}
    suspected = left & set(cued_facts(task.request, family, understood=HABITS.understands))
    return Unasked(
        len(matter & suspected),
        len(matter - suspected),
        len(suspected - matter),
        len(left - matter - suspected),
    )
