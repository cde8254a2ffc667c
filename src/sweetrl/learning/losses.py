"""The losses of SWEET-RL, its ablations and its baselines, written as in the paper's section 4.

All are pure functions of tensors and give one number for each pair, dialogue or turn; the caller takes the
mean. `turns` tensors have an entry for each turn of each dialogue, and `dialogues` says which one it is of.
"""

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from sweetrl.learning.settings import Normalisation


def turn_advantages(log_ratios: Tensor, counts: Tensor, normalisation: Normalisation) -> Tensor:
    """A(o_t, a_t, c) of each turn from its summed log pi_theta - log pi_ref and its number of tokens."""
    if normalisation is Normalisation.NONE:
        return log_ratios
    return log_ratios / counts.clamp(min=1)


def dialogue_advantages(
    log_ratios: Tensor, counts: Tensor, dialogues: Tensor, number: int, normalisation: Normalisation
) -> Tensor:
    """sum_t A(o_t, a_t, c) of each of `number` dialogues."""
    if normalisation is Normalisation.DIALOGUE_MEAN:
        totals = sum_by(dialogues, counts.to(log_ratios.dtype), number)
        return sum_by(dialogues, log_ratios, number) / totals.clamp(min=1)
    return sum_by(dialogues, turn_advantages(log_ratios, counts, normalisation), number)


def bradley_terry(chosen: Tensor, rejected: Tensor, *, beta: float) -> Tensor:
    """J_A = -log sigmoid(beta * sum_t A+ - beta * sum_t A-), for each pair of dialogues.

    Of the log-ratios log[pi/pi_ref] of turns or whole dialogues it is J_pi, the loss of DPO.
    """
    return -logsigmoid(beta * chosen - beta * rejected)


def nll(logprobs: Tensor, counts: Tensor) -> Tensor:
    """The mean negative log-likelihood of the tokens of each turn or dialogue."""
    return -logprobs / counts.clamp(min=1)


def value_bce(logits: Tensor, success: Tensor) -> Tensor:
    """How badly the value head predicts the success of the dialogue, at each turn."""
    return binary_cross_entropy_with_logits(logits, success.to(logits.dtype), reduction="none")


def sum_by(groups: Tensor, values: Tensor, number: int) -> Tensor:
    """The sum of the values of each of `number` groups."""
    return values.new_zeros(number).index_add(0, groups, values)
