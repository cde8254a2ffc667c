"""Turn-level KTO: make single turns more or less likely, each on its own (Ethayarajh et al. 2024).

    r = log pi(turn) - log pi_seed(turn)      z = max(0, mean of r over replies to other tasks)
    desirable turns:   desirable_weight   * (1 - sigmoid(beta * (r - z)))
    undesirable turns: undesirable_weight * (1 - sigmoid(beta * (z - r)))

`z` estimates how far the policy has moved from the seed model. It is the mean over one optimiser step and gets no
gradient. The chosen turns of pairs are desirable, the rejected ones undesirable.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sweetrl.errors import DataError
from sweetrl.learning.algorithm import Algorithm, Hyperparameter, Input, Records
from sweetrl.types import Message, TurnPair, turn_id

if TYPE_CHECKING:
    from torch import Tensor

    from sweetrl.learning.batches import TokenBatch
    from sweetrl.learning.datasets import Dataset, Encoding
    from sweetrl.learning.objectives import Objective, Outcome
    from sweetrl.learning.settings import TrainingSettings


@dataclass(frozen=True)
class LabelledTurn:
    """A turn that the agent should, or should not, take."""

    id: str
    group: str
    task_id: str
    history: tuple[Message, ...]
    output: str
    desirable: bool


def labelled_turns(pairs: Iterable[TurnPair]) -> list[LabelledTurn]:
    """Both turns of each pair; a turn that is in several pairs counts once."""
    turns = {}
    for pair in pairs:
        group = turn_id(pair.episode_id, pair.turn)
        for output, desirable in zip(pair.given, (True, False), strict=True):
            turns[group, output, desirable] = LabelledTurn(
                f"{pair.id} {'chosen' if desirable else 'rejected'}",
                group,
                pair.task_id,
                pair.history,
                output,
                desirable,
            )
    return sorted(turns.values(), key=lambda turn: (turn.task_id, turn.id))


def mismatched(turns: list[LabelledTurn]) -> Iterator[str]:
    """For each of the turns, which are in the order of their tasks, an output from the next task."""
    tasks = [list(group) for _, group in groupby(turns, key=lambda turn: turn.task_id)]
    if len(tasks) < 2:
        raise DataError(
            "KTO needs turn pairs on two tasks at least: its baseline uses replies to other tasks"
        )
    for own, others in zip(tasks, [*tasks[1:], tasks[0]], strict=True):
        yield from (others[at % len(others)].output for at in range(len(own)))


def examples(records: Records, encoding: "Encoding") -> "Dataset":
    """Each turn with a mismatched one; desirable turns are on the chosen side, the others on the rejected."""
    from sweetrl.learning.batches import Example
    from sweetrl.learning.datasets import dataset

    turns, made = labelled_turns(records.turn_pairs), []
    for turn, other in zip(turns, mismatched(turns) if turns else (), strict=True):
        encode = partial(encoding.encoder.turn, turn.history, system=encoding.system, name=turn.id)
        both = (encode(turn.output), encode(other))
        chosen, rejected = (both, ()) if turn.desirable else ((), both)
        made.append(
            Example(turn.id, chosen, rejected, group=turn.group, task=turn.task_id, branch=encoding.branch)
        )
    return dataset(made, "there are no turn pairs to learn from")


def kto_loss(
    ratios: "Tensor", desirable: "Tensor", baseline: "Tensor", beta: float, weights: tuple[float, float]
) -> "Tensor":
    """The loss of each turn from its log-ratio; `weights` are those of desirable and undesirable turns."""
    sign = 2.0 * desirable - 1.0
    weight = desirable * weights[0] + ~desirable * weights[1]
    return weight * (1.0 - (beta * sign * (ratios - baseline)).sigmoid())


@dataclass(frozen=True)
class Kto:
    """A `StepObjective`: the baseline is a mean over the step."""

    settings: "TrainingSettings"

    def measure(self, model: Any, batch: "TokenBatch") -> "Tensor":
        """The log-ratio of each example's mismatched turn."""
        return _log_ratios(model, batch)[:, 1]

    def given(self, mean: "Tensor") -> "Objective":
        """The loss with the step's baseline."""
        return partial(self._outcome, baseline=mean.clamp(min=0.0))

    def _outcome(self, model: Any, batch: "TokenBatch", *, baseline: "Tensor") -> "Outcome":
        from sweetrl.learning.batches import CHOSEN
        from sweetrl.learning.objectives import Outcome

        ratios, desirable = _log_ratios(model, batch)[:, 0], (batch.sides == CHOSEN)[::2]
        weights = [float(self.settings.options[name]) for name in HYPERPARAMETERS]
        losses = kto_loss(ratios, desirable, baseline, self.settings.beta, (weights[0], weights[1]))
        right = ((ratios > baseline) == desirable).float()
        return Outcome(losses, {"accuracy": right, "baseline": baseline.expand(len(losses))})


def _log_ratios(model: Any, batch: "TokenBatch") -> "Tensor":
    """(examples, 2): of each turn, and of its mismatched one."""
    from sweetrl.learning.logprobs import turn_logprobs

    return (turn_logprobs(model, batch).sums - batch.reference).view(-1, 2)


HYPERPARAMETERS = {
    "desirable_weight": Hyperparameter(1.0, "Weight of turns to make more likely."),
    "undesirable_weight": Hyperparameter(1.0, "Weight of turns to make less likely."),
}

ALGORITHM = Algorithm(
    name="kto",
    help="Make single turns more or less likely, without comparing them (turn-level KTO).",
    label="Policy by turn-level KTO",
    reads={"turn_pairs": Input("Pairs of turns, from `sweetrl turn-pairs`.")},
    examples=examples,
    objective=Kto,
    defaults={"epochs": 1, "batch_size": 16},
    takes=("beta",),
    extra_forwards=1,
    examples_per_pair=2,
    hyperparameters=HYPERPARAMETERS,
)
