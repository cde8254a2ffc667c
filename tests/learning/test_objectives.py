"""What each method minimises, against the sums that the equations ask for, done with plain log-softmaxes."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from transformers import LlamaForCausalLM

from models.tiny_llama import tiny_config
from sweetrl.learning.algorithms import algorithm_of, default_settings, objective
from sweetrl.learning.batches import Example, collate
from sweetrl.learning.heads import add_score_head, turn_scores
from sweetrl.learning.settings import CriticKind, Normalisation, TrainingSettings
from sweetrl.learning.tokens import EncodedSequence

CHOSEN = EncodedSequence([5, 6, 7, 8, 9, 10], [-1, 0, 0, -1, 1, 1])
REJECTED = EncodedSequence([5, 6, 3, 4], [-1, -1, 0, 0])
REFERENCE = (-20.0, -18.0, -25.0)
PAIR = Example("pair", (CHOSEN,), (REJECTED,), reference=REFERENCE, branch=True)
BATCH = collate([PAIR], pad=0)


@pytest.fixture(scope="module")
def network() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(tiny_config()).eval()


def turn_sums(network: LlamaForCausalLM, sequence: EncodedSequence) -> list[Tensor]:
    ids = torch.tensor([sequence.ids])
    logprobs = network(ids).logits[0].log_softmax(-1)
    turns = sorted({turn for turn in sequence.turns if turn >= 0})
    return [
        sum(logprobs[at - 1, sequence.ids[at]] for at, own in enumerate(sequence.turns) if own == turn)
        for turn in turns
    ]  # type: ignore[return-value]


def loss(network: LlamaForCausalLM, **settings: object) -> Tensor:
    [found] = objective(TrainingSettings(**settings))(network, BATCH).losses  # type: ignore[arg-type]
    return found


def test_imitation_is_the_mean_over_tokens(network: LlamaForCausalLM) -> None:
    one = collate([Example("one", (CHOSEN,))], pad=0)
    [found] = objective(TrainingSettings(algorithm="rft"))(network, one).losses
    torch.testing.assert_close(found, -sum(turn_sums(network, CHOSEN)) / 4)


@pytest.mark.parametrize("method", ["dpo", "policy"])
def test_dpo_is_on_sums_over_the_dialogue_with_the_nll_of_the_chosen(
    network: LlamaForCausalLM, method: str
) -> None:
    first, second = turn_sums(network, CHOSEN)
    [other] = turn_sums(network, REJECTED)
    margin = (first + second + 38.0) - (other + 25.0)
    expected = -logsigmoid(0.3 * margin) + 0.2 * -(first + second) / 4
    torch.testing.assert_close(loss(network, algorithm=method, beta=0.3, nll=0.2), expected)


def test_an_example_without_a_rejected_side_is_imitated_and_changes_no_mean_of_the_pairs(
    network: LlamaForCausalLM,
) -> None:
    answer = Example("answer", (REJECTED,), reference=(-25.0,))
    settings = TrainingSettings(algorithm="policy", beta=0.3, nll=0.2, imitation=0.7)
    alone = objective(settings)(network, BATCH)
    both = objective(settings)(network, collate([PAIR, answer], pad=0))
    torch.testing.assert_close(both.losses[0], alone.losses[0])
    [said] = turn_sums(network, REJECTED)
    torch.testing.assert_close(both.losses[1], 0.7 * -said / 2)
    for name in ("accuracy", "margin", "preference_loss"):
        torch.testing.assert_close(both.metrics[name].mean(), alone.metrics[name].mean())


@pytest.mark.parametrize(
    ("normalisation", "divisors"),
    [
        (Normalisation.TURN_MEAN, (2, 2, 2)),
        (Normalisation.DIALOGUE_MEAN, (4, 4, 2)),
        (Normalisation.NONE, (1, 1, 1)),
    ],
)
def test_the_critic_compares_sums_of_turn_advantages(
    network: LlamaForCausalLM, normalisation: Normalisation, divisors: tuple[int, int, int]
) -> None:
    sums = [*turn_sums(network, CHOSEN), *turn_sums(network, REJECTED)]
    first, second, other = (
        (own - seed) / divisor for own, seed, divisor in zip(sums, REFERENCE, divisors, strict=True)
    )
    expected = -logsigmoid(0.3 * (first + second) - 0.3 * other)
    found = loss(network, algorithm="critic", beta=0.3, nll=0.0, normalisation=normalisation)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", [CriticKind.VALUE, CriticKind.REGRESSION])
def test_a_new_head_knows_nothing(kind: CriticKind) -> None:
    torch.manual_seed(0)
    network = LlamaForCausalLM(tiny_config())
    add_score_head(network)
    found = loss(network, algorithm="critic", kind=kind)
    assert found.item() == pytest.approx(0.693147, abs=1e-5)
    found.backward()
    assert float(network.score_head.weight.grad.abs().sum()) > 0  # type: ignore[union-attr]


def test_a_value_function_tells_the_outcome_of_single_dialogues_and_of_pairs_alike() -> None:
    torch.manual_seed(0)
    network = LlamaForCausalLM(tiny_config()).eval()
    add_score_head(network)
    torch.nn.init.normal_(network.score_head.weight)
    tell = objective(TrainingSettings(algorithm="critic", kind=CriticKind.VALUE))
    single = collate([Example("won", (CHOSEN,)), Example("lost", (), (REJECTED,))], pad=0)
    first, second, other = turn_scores(network, single, CriticKind.VALUE)
    won, lost = tell(network, single).losses
    torch.testing.assert_close(won, -(logsigmoid(first) + logsigmoid(second)) / 2)
    torch.testing.assert_close(lost, -logsigmoid(-other))
    torch.testing.assert_close(tell(network, BATCH).losses, (won + lost)[None] / 2)
    right = tell(network, single).metrics["accuracy"]
    assert right.tolist() == [((first > 0) + 0.0 + (second > 0)) / 2, float(other < 0)]


def test_metrics_carry_no_gradient_and_say_who_won(network: LlamaForCausalLM) -> None:
    outcome = objective(TrainingSettings(algorithm="dpo"))(network, BATCH)
    assert not any(value.requires_grad for value in outcome.metrics.values())
    won = float(outcome.metrics["margin"]) > 0
    assert bool(outcome.metrics["accuracy"]) == won


def group(branch: bool) -> list[Example]:
    """Three pairs of one turn, with replies in common, and one to imitate; and a pair of whole dialogues."""
    history = list(range(20, 50))
    replies = [EncodedSequence([*history, *said, 3], [-1] * 30 + [0] * 4) for said in OUTPUTS]
    long = EncodedSequence([*history, 70, 3, 71, 72, 3], [-1] * 30 + [0, 0, -1, 1, 1])
    sides = [((0,), (1,)), ((0,), (2,)), ((1,), (2,)), ((0,), ())]
    pairs = [
        Example(
            f"p{number}",
            tuple(replies[at] for at in chosen),
            tuple(replies[at] for at in rejected),
            weight=1.0 + number,
            group="turn",
            branch=branch,
            reference=tuple(-20.0 - number - at for at in range(len(chosen + rejected))),
        )
        for number, (chosen, rejected) in enumerate(sides)
    ]
    return [*pairs, Example("d", (long,), (replies[0],), group="turn", branch=branch, reference=(-9, -8, -7))]


OUTPUTS = ([51, 52, 53], [51, 62, 63], [61, 52, 53])
SHARED_WORK = {
    "dpo": {"algorithm": "dpo"},
    "policy": {"algorithm": "policy", "imitation": 0.3},
    "critic": {"algorithm": "critic"},
    "value": {"algorithm": "critic", "kind": CriticKind.VALUE},
    "regression": {"algorithm": "critic", "kind": CriticKind.REGRESSION},
}


@pytest.mark.parametrize("branch", [True, False])
@pytest.mark.parametrize("name", SHARED_WORK)
def test_what_a_group_computes_once_teaches_the_same_as_each_example_alone(name: str, branch: bool) -> None:
    settings = default_settings(**SHARED_WORK[name])
    torch.manual_seed(0)
    network = LlamaForCausalLM(tiny_config()).double()  # so that noise is far below the bounds
    if algorithm_of(settings).has_head(settings):
        add_score_head(network)
        torch.nn.init.normal_(network.score_head.weight)
    examples, results = group(branch), []
    together = collate(examples, pad=0)
    alone = [collate([example], pad=0) for example in examples]
    assert together.tokens < sum(batch.tokens for batch in alone) / 2
    for batches in ([together], alone):
        network.zero_grad()
        outcomes = [objective(settings)(network, batch) for batch in batches]
        losses = torch.cat([outcome.losses for outcome in outcomes])
        (losses * together.weights).sum().backward()
        results.append(
            (losses.detach(), [weight.grad for weight in network.parameters() if weight.requires_grad])
        )
    (losses, gradients), (expected, wanted) = results
    torch.testing.assert_close(losses, expected, rtol=1e-5, atol=1e-5)
    for found, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(found, other, rtol=1e-4, atol=1e-5)
