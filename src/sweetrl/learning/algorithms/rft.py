"""Rejection fine-tuning: imitate the dialogues that succeeded."""

from typing import TYPE_CHECKING, Any

from sweetrl.learning.algorithm import Algorithm, Input, Records

if TYPE_CHECKING:
    from sweetrl.learning.batches import TokenBatch
    from sweetrl.learning.datasets import Dataset, Encoding
    from sweetrl.learning.objectives import Outcome


def examples(records: Records, encoding: "Encoding") -> "Dataset":
    """The dialogues that succeeded."""
    from sweetrl.learning.datasets import successful_dialogues

    return successful_dialogues(records.episodes, records.verdicts or (), encoding)


def imitation(model: Any, batch: "TokenBatch") -> "Outcome":
    """The mean negative log-likelihood of the agent's tokens in each dialogue."""
    from sweetrl.learning import losses
    from sweetrl.learning.logprobs import turn_logprobs
    from sweetrl.learning.objectives import Outcome

    found = turn_logprobs(model, batch)
    number = len(batch.weights)
    per_token = losses.nll(
        losses.sum_by(batch.owners, found.sums, number), losses.sum_by(batch.owners, found.counts, number)
    )
    return Outcome(per_token)


ALGORITHM = Algorithm(
    name="rft",
    help="Imitate the dialogues that succeeded (rejection fine-tuning).",
    label="Policy by rejection fine-tuning",
    reads={
        "episodes": Input("The dialogues."),
        "verdicts": Input("Their rewards."),
        "tasks": Input("Their tasks, if the dialogues are published ones.", required=False),
    },
    examples=examples,
    objective=lambda _: imitation,
    defaults={"batch_size": 32},
    compares=lambda _: False,
)
