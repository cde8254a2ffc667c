"""What every critic must do. To test another one, add a function that makes it to `CRITICS`."""

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial

import pytest
import torch
from transformers import LlamaForCausalLM

from models.tiny_llama import tiny_config, tiny_tokenizer
from sweetrl.critics import open_critic
from sweetrl.critics.batched import Reading
from sweetrl.critics.head import HeadCritic
from sweetrl.critics.judge import JudgeCritic
from sweetrl.critics.log_ratio import LogRatioCritic
from sweetrl.critics.scripted import critic_named
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.errors import ModelError
from sweetrl.learning.critic_cards import tell_secret
from sweetrl.learning.heads import add_score_head
from sweetrl.learning.settings import CriticKind, Normalisation
from sweetrl.learning.tokens import DialogueEncoder
from sweetrl.models.scripted import ScriptedModel
from sweetrl.protocols import BatchCritic, Choice, TokenCritic, TurnCritic
from sweetrl.seeds import derive_seed
from sweetrl.types import Message, Role, Task

TASK = Task(
    id="t",
    domain="backend",
    request="Write a function that sums the prices.",
    secret=BackendSecret(reference="def f(prices):\n    return sum(prices)\n", tests={"test1": "f([1])"}),
)
HISTORY = (
    Message(Role.USER, "Write a function that sums the prices."),
    Message(Role.ASSISTANT, "Are there prices below zero?"),
    Message(Role.USER, "No."),
)
OUTPUTS = ("What of an empty list?", "I WANT TO ANSWER: def f(prices): return sum(prices)", "Why?", "Why?")


def opinionated(messages: Sequence[Message], seed: int) -> str:
    mark = derive_seed(messages[-1].text) % 3
    return f"BETTER: {('FIRST', 'SECOND', 'SAME')[mark]}\nGRADE: {mark - 1}"


def tiny_llama(seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    model = LlamaForCausalLM(tiny_config()).eval()
    add_score_head(model)
    torch.nn.init.normal_(model.score_head.weight)
    return model


def reading() -> Reading:
    return Reading(
        DialogueEncoder(tiny_tokenizer(), max_tokens=500),
        privileged=partial(tell_secret, BACKEND.prompts.privileged),
    )


def log_ratio_critic() -> TurnCritic:
    return LogRatioCritic(tiny_llama(0), tiny_llama(1), reading(), Normalisation.TURN_MEAN, name="log ratio")


CRITICS: dict[str, Callable[[], TurnCritic]] = {
    "scripted": lambda: critic_named("overlap"),
    "length": lambda: open_critic("length"),
    "judge": lambda: JudgeCritic(ScriptedModel(opinionated)),
    "log ratio": log_ratio_critic,
    "plain reference": lambda: LogRatioCritic(
        tiny_llama(1), tiny_llama(0), reading(), Normalisation.TURN_MEAN, name="plain", plain_reference=True
    ),
    "value": lambda: HeadCritic(tiny_llama(0), CriticKind.VALUE, reading(), name="value"),
    "regression": lambda: HeadCritic(tiny_llama(0), CriticKind.REGRESSION, reading(), name="regression"),
}


@pytest.fixture(params=CRITICS)
def critic(request: pytest.FixtureRequest) -> TurnCritic:
    return CRITICS[request.param]()


def test_it_has_a_name(critic: TurnCritic) -> None:
    assert critic.name


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_it_gives_each_output_a_finite_number(critic: TurnCritic, count: int) -> None:
    advantages = asyncio.run(critic.advantages(TASK, HISTORY, OUTPUTS[:count]))
    assert len(advantages) == count
    assert all(isinstance(each, float) and math.isfinite(each) for each in advantages)


def test_it_says_the_same_when_asked_again(critic: TurnCritic) -> None:
    first = asyncio.run(critic.advantages(TASK, HISTORY, OUTPUTS))
    assert asyncio.run(critic.advantages(TASK, HISTORY, OUTPUTS)) == pytest.approx(first, abs=1e-6)


def test_equal_outputs_have_equal_advantages(critic: TurnCritic) -> None:
    advantages = asyncio.run(critic.advantages(TASK, HISTORY, OUTPUTS))
    assert advantages[2] == pytest.approx(advantages[3], abs=1e-5)


def test_it_judges_the_first_turn_and_empty_outputs_too(critic: TurnCritic) -> None:
    assert len(asyncio.run(critic.advantages(TASK, HISTORY[:1], ["", "Which list?"]))) == 2


def test_turns_judged_at_the_same_time_do_not_mix(critic: TurnCritic) -> None:
    turns = [(HISTORY[:1], OUTPUTS[:2]), (HISTORY, OUTPUTS), (HISTORY[:1], OUTPUTS[2:])]

    async def at_once() -> list[list[float]]:
        return await asyncio.gather(*(critic.advantages(TASK, *turn) for turn in turns))

    alone = [asyncio.run(critic.advantages(TASK, *turn)) for turn in turns]
    for found, wanted in zip(asyncio.run(at_once()), alone, strict=True):
        assert found == pytest.approx(wanted, abs=1e-5)


def test_the_credit_of_the_tokens_adds_up_to_that_of_the_turn(critic: TurnCritic) -> None:
    if not isinstance(critic, TokenCritic):
        pytest.skip("it judges whole turns only")
    for output in OUTPUTS[:3]:
        tokens = asyncio.run(critic.token_advantages(TASK, HISTORY, output))
        [whole] = asyncio.run(critic.advantages(TASK, HISTORY, [output]))
        assert math.fsum(token.advantage for token in tokens) == pytest.approx(whole, abs=1e-5)


def test_turns_judged_together_are_judged_as_alone_and_twice_to_the_same_bits(critic: TurnCritic) -> None:
    if not isinstance(critic, BatchCritic):
        pytest.skip("it judges one turn at a time")
    turns = [(HISTORY[:1], OUTPUTS[:2]), (HISTORY, OUTPUTS), (HISTORY[:1], OUTPUTS[2:])]
    choices = [Choice(TASK, *turn) for turn in turns]
    found = asyncio.run(critic.judge_together(choices))
    for each, choice in zip(found, choices, strict=True):
        assert each == pytest.approx(asyncio.run(critic.advantages(*choice)), abs=1e-5)
    assert asyncio.run(critic.judge_together(choices)) == found


def test_of_turns_judged_together_only_the_one_that_is_too_long_fails(critic: TurnCritic) -> None:
    if not isinstance(critic, BatchCritic):
        pytest.skip("it judges one turn at a time")
    choices = [Choice(TASK, HISTORY, outputs) for outputs in (OUTPUTS, ["word " * 1000], OUTPUTS[:1])]
    one, two, three = asyncio.run(critic.judge_together(choices))
    assert isinstance(two, ModelError)
    assert two.kind == "context_length"
    assert isinstance(one, list)
    assert three == pytest.approx(one[:1], abs=1e-5)
    [alone] = asyncio.run(critic.judge_together(choices[1:2]))
    assert isinstance(alone, ModelError)
