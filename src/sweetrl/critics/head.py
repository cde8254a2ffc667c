"""A critic with a trained score head: a value function, or a regression."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sweetrl.critics.batched import BatchedCritic, Encoded, Reading, trained_reading
from sweetrl.critics.critic_type import CriticTools, CriticType
from sweetrl.errors import UsageError
from sweetrl.learning.critic_cards import EVEN_CHANCE, CriticCard, read_critic_card
from sweetrl.learning.settings import CriticKind
from sweetrl.protocols import Choice
from sweetrl.types import Role


class HeadCritic(BatchedCritic):
    """A critic with a trained head: for a value function, what the turn adds to the chance of success."""

    def __init__(
        self, model: Any, kind: CriticKind, reading: Reading, *, name: str, start: float = EVEN_CHANCE
    ) -> None:
        """`start` is the value before the first turn."""
        super().__init__()
        self._model = model
        self._kind = kind
        self._start = start
        self._reading = reading
        self.name = name

    def _encoded(self, choice: Choice) -> Encoded:
        turn = self._reading.candidates(*choice)
        before = self._turn_before(choice) if self._kind is CriticKind.VALUE else None
        return (turn,) if before is None else (turn, self._reading.candidates(*before))

    def _turn_before(self, choice: Choice) -> Choice | None:
        """The agent's previous turn, as a choice with one output."""
        spoken = [at for at, message in enumerate(choice.history) if message.role is Role.ASSISTANT]
        if not spoken:
            return None
        return Choice(choice.task, choice.history[: spoken[-1]], [choice.history[spoken[-1]].text])

    def _advantages(self, read: Sequence[Encoded]) -> list[list[float]]:
        """The head's numbers; those of a value function less its value after the turn before."""
        from sweetrl.learning.heads import candidate_scores

        turns = [turn for each in read for turn in each]
        scores = iter(candidate_scores(self._model, turns, self._kind))
        return [self._gains([next(scores) for _ in each]) for each in read]

    def _gains(self, scores: Sequence[list[float]]) -> list[float]:
        """The advantages of one choice, from the scores of its outputs and of the turn before, if there was one."""
        if self._kind is CriticKind.REGRESSION:
            return scores[0]
        before = _chance(scores[1][0]) if len(scores) > 1 else self._start
        return [_chance(score) - before for score in scores[0]]


def _chance(logit: float) -> float:
    import torch

    return float(torch.tensor(logit).sigmoid())


def load(folder: Path, card: CriticCard, _: CriticTools) -> HeadCritic:
    """The critic in a folder."""
    from sweetrl.learning.heads import load_score_head
    from sweetrl.learning.networks import critic_name, load_network

    model = load_network(str(folder))
    load_score_head(model, folder)
    name = critic_name(f"critic:{folder.name}", card, model)
    reading = trained_reading(folder, card)
    return HeadCritic(model, CriticKind(card.kind), reading, name=name, start=card.start)


def open_value(folder: str, tools: CriticTools) -> HeadCritic:
    """The value function in a folder; refuses a critic of another kind."""
    if not Path(folder).is_dir():
        raise UsageError(f"{folder}: there is no such folder; write {CRITIC.usage}")
    card = read_critic_card(Path(folder))
    if card.kind != CriticKind.VALUE:
        raise UsageError(f"{folder}: holds a critic of kind {card.kind}; leave out 'value:' to use it")
    return load(Path(folder), card, tools)


CRITIC = CriticType(
    name="value",
    usage="value:DIR, a trained value function",
    open=open_value,
    argument="folder",
    cards=(CriticKind.VALUE, CriticKind.REGRESSION),
    load=load,
)
