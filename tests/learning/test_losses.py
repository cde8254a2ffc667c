from math import exp, log

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from sweetrl.learning.losses import (
    bradley_terry,
    dialogue_advantages,
    nll,
    sum_by,
    turn_advantages,
    value_bce,
)
from sweetrl.learning.settings import Normalisation

# Two dialogues: the first has turns of 2 and 8 tokens, the second one turn of 5.
RATIOS = torch.tensor([1.0, 2.0, -3.0])
COUNTS = torch.tensor([2, 8, 5])
DIALOGUES = torch.tensor([0, 0, 1])


def minus_log_sigmoid(x: float) -> float:
    return log(1 + exp(-x))


def test_the_papers_advantage_of_a_turn_is_its_log_ratio_per_token() -> None:
    assert turn_advantages(RATIOS, COUNTS, Normalisation.TURN_MEAN).tolist() == pytest.approx(
        [0.5, 0.25, -0.6]
    )


def test_without_normalisation_it_is_the_sum() -> None:
    assert turn_advantages(RATIOS, COUNTS, Normalisation.NONE).tolist() == [1.0, 2.0, -3.0]


@pytest.mark.parametrize(
    ("normalisation", "wanted"),
    [
        (Normalisation.TURN_MEAN, [1 / 2 + 2 / 8, -3 / 5]),
        (Normalisation.DIALOGUE_MEAN, [(1 + 2) / (2 + 8), -3 / 5]),
        (Normalisation.NONE, [1 + 2, -3]),
    ],
)
def test_the_advantage_of_a_dialogue_by_hand(normalisation: Normalisation, wanted: list[float]) -> None:
    found = dialogue_advantages(RATIOS, COUNTS, DIALOGUES, 2, normalisation)
    assert found.tolist() == pytest.approx(wanted)


def test_bradley_terry_by_hand() -> None:
    chosen, rejected = torch.tensor([0.75, -1.0]), torch.tensor([-0.6, 2.0])
    wanted = [minus_log_sigmoid(0.1 * (0.75 + 0.6)), minus_log_sigmoid(0.1 * (-1.0 - 2.0))]
    assert bradley_terry(chosen, rejected, beta=0.1).tolist() == pytest.approx(wanted)


def test_nll_by_hand() -> None:
    assert nll(torch.tensor([-6.0, -1.0]), torch.tensor([3, 4])).tolist() == [2.0, 0.25]


def test_value_bce_by_hand() -> None:
    found = value_bce(torch.tensor([2.0, 2.0, -1.0]), torch.tensor([True, False, False]))
    assert found.tolist() == pytest.approx(
        [minus_log_sigmoid(2), minus_log_sigmoid(-2), minus_log_sigmoid(1)]
    )


def test_sums_by_group_by_hand() -> None:
    assert sum_by(torch.tensor([2, 0, 2]), torch.tensor([1.0, 2.0, 3.0]), 4).tolist() == [2.0, 0.0, 4.0, 0.0]


def test_a_turn_without_tokens_counts_nothing() -> None:
    zero, none = torch.tensor([0.0]), torch.tensor([0])
    assert turn_advantages(zero, none, Normalisation.TURN_MEAN).item() == 0
    assert nll(zero, none).item() == 0
    assert dialogue_advantages(zero, none, none, 1, Normalisation.DIALOGUE_MEAN).item() == 0


def test_losses_stay_finite_where_a_naive_sigmoid_underflows() -> None:
    far = bradley_terry(torch.tensor([-1e4]), torch.tensor([1e4]), beta=1.0)
    assert far.item() == pytest.approx(2e4)


def random(*shape: int) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(*shape, dtype=torch.double, requires_grad=True)


@pytest.mark.parametrize("normalisation", Normalisation)
def test_gradients_of_the_critics_loss_agree_with_finite_differences(normalisation: Normalisation) -> None:
    def loss(ratios: Tensor) -> Tensor:
        chosen, rejected = dialogue_advantages(ratios, COUNTS, DIALOGUES, 2, normalisation)
        return bradley_terry(chosen, rejected, beta=0.7)

    assert gradcheck(loss, random(3))


def test_gradients_of_the_other_losses_agree_with_finite_differences() -> None:
    assert gradcheck(lambda x: bradley_terry(x[:2], x[2:], beta=0.3), random(4))
    assert gradcheck(lambda x: nll(x, COUNTS), random(3))
    assert gradcheck(lambda x: value_bce(x, torch.tensor([True, False, True])), random(3))
