"""Three statements that SWEET-RL rests on, checked by enumeration on problems small enough for that."""

import itertools
from functools import cache

import pytest
import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from models.tiny_llama import tiny_config, tiny_tokenizer
from sweetrl.learning.batches import Example, collate
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.losses import bradley_terry, dialogue_advantages
from sweetrl.learning.settings import Normalisation
from sweetrl.learning.tokens import DialogueEncoder
from sweetrl.types import Message, Role

ACTIONS = range(3)
TURNS = 3
SECRETS = range(2)

Played = tuple[int, ...]
"""The actions so far: with deterministic transitions, all there is to know beside the secret."""


class Collaboration:
    """The agent asks three times; the person's replies follow from the secret and the questions alone."""

    def __init__(self, seed: int) -> None:
        draws = torch.Generator().manual_seed(seed)
        shape = (len(SECRETS), *[len(ACTIONS)] * TURNS)
        self.rewards = torch.rand(shape, generator=draws, dtype=torch.double)
        self.logits = torch.randn(
            (TURNS, 4, 4, 4, len(ACTIONS)), generator=draws, dtype=torch.double, requires_grad=True
        )

    def reply(self, secret: int, played: Played) -> int:
        """Two questions are answered alike whatever the secret, so that the agent cannot know it."""
        return (played[-1] * (1 + secret)) % 2 if played[-1] else 2

    def observation(self, secret: int, played: Played) -> tuple[int, int, int]:
        """What the agent has heard, and nothing of the secret."""
        heard = [self.reply(secret, played[: turn + 1]) for turn in range(len(played))]
        first, second, third = (*heard, 3, 3, 3)[:3]
        return first, second, third

    def policy(self, secret: int, played: Played) -> Tensor:
        return self.logits[(len(played), *self.observation(secret, played))].softmax(-1)

    def value(self, secret: int, played: Played = ()) -> Tensor:
        if len(played) == TURNS:
            return self.rewards[(secret, *played)]
        chances = self.policy(secret, played)
        return sum((chances[a] * self.value(secret, (*played, a)) for a in ACTIONS), torch.zeros(()))

    def advantage(self, secret: int, played: Played, action: int) -> Tensor:
        """A(o, a, c): the critic's, which knows the secret."""
        return self.value(secret, (*played, action)) - self.value(secret, played)


@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_the_loss_on_returns_equals_the_loss_on_summed_advantages(seed: int) -> None:
    task = Collaboration(seed)
    for secret in SECRETS:
        played = list(itertools.product(ACTIONS, repeat=TURNS))
        advantages = torch.stack(
            [task.advantage(secret, way[:turn], way[turn]) for way in played for turn in range(TURNS)]
        )
        counts = torch.randint(1, 9, (len(advantages),))
        dialogues = torch.arange(len(played)).repeat_interleave(TURNS)
        # Log-ratios of a perfect critic: its mean over the tokens of a turn is the turn's advantage.
        sums = dialogue_advantages(
            advantages * counts, counts, dialogues, len(played), Normalisation.TURN_MEAN
        )
        returns = task.rewards[secret].flatten()
        assert torch.allclose(returns - sums, task.value(secret), atol=1e-12)
        one, other = torch.combinations(torch.arange(len(played))).unbind(1)
        on_returns = bradley_terry(returns[one], returns[other], beta=2.0)
        on_advantages = bradley_terry(sums[one], sums[other], beta=2.0)
        assert torch.allclose(on_returns, on_advantages, atol=1e-12)


@torch.no_grad()
def test_other_normalisations_do_not_have_that_property() -> None:
    task = Collaboration(0)
    played = [(0, 0, 0), (1, 2, 1)]
    advantages = torch.stack(
        [task.advantage(0, way[:turn], way[turn]) for way in played for turn in range(3)]
    )
    counts = torch.tensor([1, 5, 2, 7, 3, 4])
    dialogues = torch.tensor([0, 0, 0, 1, 1, 1])
    returns = torch.stack([task.rewards[(0, *way)] for way in played])
    for normalisation in (Normalisation.DIALOGUE_MEAN, Normalisation.NONE):
        sums = dialogue_advantages(advantages * counts, counts, dialogues, 2, normalisation)
        assert not torch.isclose(sums[0] - sums[1], returns[0] - returns[1], atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_policy_gradient_with_a_knowing_critic_is_unbiased_for_an_agent_that_does_not_know(
    seed: int,
) -> None:
    task = Collaboration(seed)
    objective = sum((task.value(secret) for secret in SECRETS), torch.zeros(())) / len(SECRETS)
    [true_gradient] = torch.autograd.grad(objective, task.logits)

    @cache
    def judged(secret: int, played: Played, action: int) -> Tensor:
        return task.advantage(secret, played, action).detach()

    # The expectation over dialogues of sum_t grad log pi(a_t | o_t) A(o_t, a_t, c), term by term.
    surrogate = torch.zeros((), dtype=torch.double)
    for secret, way in itertools.product(SECRETS, itertools.product(ACTIONS, repeat=TURNS)):
        chances = [task.policy(secret, way[:turn])[way[turn]] for turn in range(TURNS)]
        likelihood = torch.stack(chances).prod().detach() / len(SECRETS)
        for turn in range(TURNS):
            surrogate = surrogate + likelihood * chances[turn].log() * judged(secret, way[:turn], way[turn])
    [estimated] = torch.autograd.grad(surrogate, task.logits)
    assert true_gradient.abs().max() > 1e-3
    assert torch.allclose(estimated, true_gradient, atol=1e-12)


def test_the_agent_of_this_test_hears_the_same_under_different_secrets() -> None:
    task = Collaboration(0)
    assert task.observation(0, (2,)) == task.observation(1, (2,))
    assert task.observation(0, (1,)) != task.observation(1, (1,))


def test_on_single_turns_the_critics_loss_is_length_normalised_dpo_with_the_secret_in_the_prompt() -> None:
    encoder = DialogueEncoder(tiny_tokenizer(), max_tokens=500)
    models = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        models.append(LlamaForCausalLM(tiny_config()).eval())
    request, secret = "Write it.", "It is f(x) = 2 x."
    pairs = [
        ("Twice the number?", "Why?"),
        ("I WANT TO ANSWER: 2 * x", "I WANT TO ANSWER: x, or something else"),
    ]
    history = [Message(Role.USER, request)]
    rows = [encoder.turn(history, output, privileged=secret) for pair in pairs for output in pair]
    batch = collate([Example(str(index), (row,)) for index, row in enumerate(rows)], pad=0)
    with torch.no_grad():
        ours, seeds = (turn_logprobs(model, batch) for model in models)
    sums = dialogue_advantages(
        ours.sums - seeds.sums, ours.counts, torch.arange(4), 4, Normalisation.TURN_MEAN
    )
    critic = bradley_terry(sums[::2], sums[1::2], beta=0.1)

    def mean_logprob(model: LlamaForCausalLM, output: str) -> Tensor:
        """By the library alone, from the text that the template makes."""
        tokenizer = encoder.tokenizer
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": f"{secret}\n\n{request}"}],
            tokenize=False,
            add_generation_prompt=True,
        )
        before = tokenizer(prompt)["input_ids"]
        said = tokenizer(output + "<|end|>")["input_ids"]
        with torch.no_grad():
            table = model(torch.tensor([before + said])).logits[0, len(before) - 1 : -1].log_softmax(-1)
        return table[torch.arange(len(said)), torch.tensor(said)].mean()

    chosen, rejected = (
        [torch.stack([mean_logprob(model, pair[side]) for pair in pairs]) for model in models]
        for side in (0, 1)
    )
    wanted = bradley_terry(chosen[0] - chosen[1], rejected[0] - rejected[1], beta=0.1)
    assert torch.allclose(critic, wanted, atol=1e-6)
