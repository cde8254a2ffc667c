"""What each method minimises: the loss of every example of a batch, made of the pieces in `losses`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from sweetrl.learning import losses
from sweetrl.learning.batches import CHOSEN, TokenBatch
from sweetrl.learning.heads import turn_scores
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.losses import sum_by
from sweetrl.learning.settings import CriticKind, Method, TrainingSettings


@dataclass(frozen=True)
class Outcome:
    """Of one batch."""

    losses: Tensor
    """(examples,)."""
    metrics: dict[str, Tensor] = field(default_factory=dict)
    """(examples,) each, without gradients."""


Objective = Callable[[Any, TokenBatch], Outcome]


def objective(settings: TrainingSettings) -> Objective:
    """What a run with these settings minimises."""
    if settings.method is Method.RFT:
        return imitation
    if settings.has_head:
        return HeadObjective(settings)
    return Preference(settings)


def imitation(model: Any, batch: TokenBatch) -> Outcome:
    """Rejection fine-tuning: the mean negative log-likelihood of the agent's tokens."""
    found = turn_logprobs(model, batch)
    number = len(batch.weights)
    per_token = losses.nll(
        sum_by(batch.owners, found.sums, number), sum_by(batch.owners, found.counts, number)
    )
    return Outcome(per_token)


@dataclass(frozen=True)
class Preference:
    """DPO on dialogues or turns, or the critic's Bradley-Terry loss, and the NLL of what was chosen."""

    settings: TrainingSettings

    def __call__(self, model: Any, batch: TokenBatch) -> Outcome:
        """The loss of each pair."""
        found = turn_logprobs(model, batch)
        number, dialogues = 2 * len(batch.weights), _dialogues(batch)
        ratios = found.sums - batch.reference
        if self.settings.method is Method.CRITIC:
            scores = losses.dialogue_advantages(
                ratios, found.counts, dialogues, number, self.settings.normalisation
            )
        else:
            scores = sum_by(dialogues, ratios, number)
        chosen, rejected = scores.view(-1, 2).unbind(1)
        preference = losses.bradley_terry(chosen, rejected, beta=self.settings.beta)
        nll = losses.nll(
            sum_by(dialogues, found.sums, number)[::2], sum_by(dialogues, found.counts, number)[::2]
        )
        metrics = {**_pair_metrics(chosen, rejected), "preference_loss": preference, "nll": nll}
        return Outcome(preference + self.settings.nll * nll, _detached(metrics))


@dataclass(frozen=True)
class HeadObjective:
    """The critics that put a number on each turn: a value function, or a regression on pairs."""

    settings: TrainingSettings

    def __call__(self, model: Any, batch: TokenBatch) -> Outcome:
        """The loss of each pair."""
        found = turn_scores(model, batch, self.settings.kind)
        number, dialogues = 2 * len(batch.weights), _dialogues(batch)
        chosen, rejected = sum_by(dialogues, found, number).view(-1, 2).unbind(1)
        metrics = _pair_metrics(chosen, rejected)
        if self.settings.kind is CriticKind.REGRESSION:
            return Outcome(losses.bradley_terry(chosen, rejected, beta=1.0), _detached(metrics))
        surprise = losses.value_bce(found, batch.sides == CHOSEN)
        turns = sum_by(dialogues, torch.ones_like(surprise), number)
        of_dialogues = sum_by(dialogues, surprise, number) / turns
        return Outcome(of_dialogues.view(-1, 2).mean(1), _detached(metrics))


def _dialogues(batch: TokenBatch) -> Tensor:
    """Which dialogue each turn belongs to: chosen and rejected ones of the pairs in turn."""
    return 2 * batch.owners + batch.sides


def _pair_metrics(chosen: Tensor, rejected: Tensor) -> dict[str, Tensor]:
    return {"accuracy": (chosen > rejected).float(), "margin": chosen - rejected, "chosen": chosen}


def _detached(metrics: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in metrics.items()}
