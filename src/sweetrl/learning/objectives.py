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
        return value if settings.kind is CriticKind.VALUE else regression
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
    """DPO on dialogues or turns, or the critic's Bradley-Terry loss, and the NLL of what was chosen.

    An example without a rejected side is imitated, no more.
    """

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
        counts = sum_by(dialogues, found.counts, number)
        chosen, rejected = scores.view(-1, 2).unbind(1)
        paired = counts[1::2] > 0
        preference = losses.bradley_terry(chosen, rejected, beta=self.settings.beta) * paired
        nll = losses.nll(sum_by(dialogues, found.sums, number)[::2], counts[::2])
        pull = torch.where(paired, self.settings.nll, self.settings.imitation)
        metrics = {**_pair_metrics(chosen, rejected), "preference_loss": preference}
        metrics = {name: _of_pairs(each, paired) for name, each in metrics.items()} | {"nll": nll}
        return Outcome(preference + pull * nll, _detached(metrics))


def regression(model: Any, batch: TokenBatch) -> Outcome:
    """The critic with a head that puts a number on each turn, trained on pairs: the loss of each."""
    found = turn_scores(model, batch, CriticKind.REGRESSION)
    scores = sum_by(_dialogues(batch), found, 2 * len(batch.weights))
    chosen, rejected = scores.view(-1, 2).unbind(1)
    preference = losses.bradley_terry(chosen, rejected, beta=1.0)
    return Outcome(preference, _detached(_pair_metrics(chosen, rejected)))


def value(model: Any, batch: TokenBatch) -> Outcome:
    """The value function: the mean over the dialogues of an example, one or two, and over the turns of each."""
    found = turn_scores(model, batch, CriticKind.VALUE)
    success = batch.sides == CHOSEN
    number, dialogues = 2 * len(batch.weights), _dialogues(batch)
    turns = sum_by(dialogues, torch.ones_like(found), number)

    def mean(of_turns: Tensor) -> Tensor:
        of_dialogues = sum_by(dialogues, of_turns, number) / turns.clamp(min=1)
        there = (turns > 0).view(-1, 2).sum(1)
        return of_dialogues.view(-1, 2).sum(1) / there

    right = ((found > 0) == success).to(found.dtype)
    return Outcome(mean(losses.value_bce(found, success)), _detached({"accuracy": mean(right)}))


def _dialogues(batch: TokenBatch) -> Tensor:
    """Which dialogue each turn belongs to: chosen and rejected ones of the pairs in turn."""
    return 2 * batch.owners + batch.sides


def _pair_metrics(chosen: Tensor, rejected: Tensor) -> dict[str, Tensor]:
    return {"accuracy": (chosen > rejected).float(), "margin": chosen - rejected, "chosen": chosen}


def _of_pairs(values: Tensor, paired: Tensor) -> Tensor:
    """Examples that are no pair count as the mean of those that are, so that they do not change it."""
    mean = (values * paired).sum() / paired.sum().clamp(min=1)
    return torch.where(paired, values, mean)


def _detached(metrics: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in metrics.items()}
