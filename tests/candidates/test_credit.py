import asyncio
from collections.abc import Sequence

import pytest

from candidates.stored import episode, task
from sweetrl.candidates.credit import credit_turns
from sweetrl.critics.scripted import ScriptedCritic
from sweetrl.errors import ModelError
from sweetrl.types import Failure, Message, Task, TokenCredit, TurnCredit


def credited(dialogues, critic, **options) -> dict[str, TurnCredit]:
    async def collect() -> list[TurnCredit]:
        return [each async for each in credit_turns(dialogues, critic, **options)]

    return {each.id: each for each in asyncio.run(collect())}


class LetterCritic:
    """Every letter is a token and worth its place in the output."""

    name = "letters"

    def __init__(self, worth: float = 1.0) -> None:
        self._worth = worth

    async def advantages(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> list[float]:
        raise AssertionError("a critic that knows the tokens need not be asked twice")

    async def token_advantages(
        self, task: Task, history: Sequence[Message], output: str
    ) -> list[TokenCredit]:
        return [TokenCredit(letter, place * self._worth) for place, letter in enumerate(output)]


def test_each_turn_gets_an_advantage_for_its_raw_output():
    critic = ScriptedCritic(lambda task, history, output: len(history) + output.startswith("thought") / 2)
    found = credited([(task("t"), episode("t"))], critic)
    assert {name: each.advantage for name, each in found.items()} == {
        "t#0@0": 1.5,
        "t#0@1": 3.5,
        "t#0@2": 5.0,
    }
    assert {each.tokens for each in found.values()} == {None}


def test_tokens_get_their_share_where_the_critic_can_tell():
    found = credited([(task("t"), episode("t", turns=1))], LetterCritic())["t#0@0"]
    output = "I WANT TO ANSWER: x"
    assert found.tokens == tuple(TokenCredit(letter, place) for place, letter in enumerate(output))
    assert found.advantage == sum(range(len(output)))


def test_an_advantage_that_is_not_finite_is_a_failure():
    found = credited([(task("t"), episode("t", turns=1))], LetterCritic(float("nan")))["t#0@0"]
    assert (found.advantage, found.tokens) == (None, None)
    assert found.failure is not None


def test_a_critic_that_breaks_down_leaves_the_turn_without_credit():
    def fragile(task: Task, history: Sequence[Message], output: str) -> float:
        if len(history) > 1:
            raise ModelError("gone", kind="timeout")
        return 1.0

    found = credited([(task("t"), episode("t", turns=2))], ScriptedCritic(fragile))
    assert (found["t#0@0"].advantage, found["t#0@0"].failure) == (1.0, None)
    assert (found["t#0@1"].advantage, found["t#0@1"].failure) == (
        None,
        Failure("critic", "timeout", "gone"),
    )


@pytest.mark.parametrize("failed", [True, False])
def test_failed_dialogues_and_turns_that_are_done_are_skipped(failed):
    dialogues = [(task("t"), episode("t", turns=2, failed=failed))]
    found = credited(dialogues, ScriptedCritic(lambda *_: 0.0), skip="t#0@0".__eq__)
    assert found.keys() == (set() if failed else {"t#0@1"})
