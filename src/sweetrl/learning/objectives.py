"""Shared parts of losses: the result of a loss on a batch, and the preference between two sides."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from sweetrl.learning import losses
from sweetrl.learning.batches import TokenBatch
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.losses import sum_by
from sweetrl.learning.settings import Normalisation, TrainingSettings


@dataclass(frozen=True)
class Outcome:
    """The losses and metrics of one batch."""

    losses: Tensor
    """(examples,)."""
    metrics: dict[str, Tensor] = field(default_factory=dict)
    """(examples,) each, without gradients."""


Objective = Callable[[Any, TokenBatch], Outcome]


@runtime_checkable
class StepObjective(Protocol):
    """A loss that needs a mean over all examples of an optimiser step, across passes and processes."""

    def measure(self, model: Any, batch: TokenBatch) -> Tensor:
        """(examples,): what is averaged, computed without gradients before the step."""
        ...

    def given(self, mean: Tensor) -> Objective:
        """The loss of the batches of a step with this mean."""
        ...


@dataclass(frozen=True)
class Preference:
    """DPO on dialogues or turns, or the critic's Bradley-Terry loss, and the NLL of what was chosen.

    An example without a rejected side is imitated, no more.
    """

    settings: TrainingSettings
    normalisation: Normalisation = Normalisation.NONE
    """Length normalisation of the log-ratios of turns."""

    def __call__(self, model: Any, batch: TokenBatch) -> Outcome:
        """The loss of each pair."""
        found = turn_logprobs(model, batch)
        number, dialogues = 2 * len(batch.weights), dialogues_of(batch)
        scores = losses.dialogue_advantages(
            found.sums - batch.reference, found.counts, dialogues, number, self.normalisation
        )
        counts = sum_by(dialogues, found.counts, number)
        chosen, rejected = scores.view(-1, 2).unbind(1)
        paired = counts[1::2] > 0
        preference = losses.bradley_terry(chosen, rejected, beta=self.settings.beta) * paired
        nll = losses.nll(sum_by(dialogues, found.sums, number)[::2], counts[::2])
        pull = torch.where(paired, self.settings.nll, self.settings.imitation)
        metrics = {**pair_metrics(chosen, rejected), "preference_loss": preference}
        metrics = {name: _of_pairs(each, paired) for name, each in metrics.items()} | {"nll": nll}
        return Outcome(preference + pull * nll, detached(metrics))


def dialogues_of(batch: TokenBatch) -> Tensor:
    """Which dialogue each turn belongs to: chosen and rejected ones of the pairs in turn."""
    return 2 * batch.owners + batch.sides


def pair_metrics(chosen: Tensor, rejected: Tensor) -> dict[str, Tensor]:
    """How well the scores of two sides tell them apart."""
    return {"accuracy": (chosen > rejected).float(), "margin": chosen - rejected, "chosen": chosen}


def _of_pairs(values: Tensor, paired: Tensor) -> Tensor:
    """Examples that are no pair count as the mean of those that are, so that they do not change it."""
    mean = (values * paired).sum() / paired.sum().clamp(min=1)
    return torch.where(paired, values, mean)


def detached(metrics: dict[str, Tensor]) -> dict[str, Tensor]:
    """The metrics without gradients."""
    return {name: value.detach() for name, value in metrics.items()}
