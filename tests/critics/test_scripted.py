import asyncio

import pytest

from candidates.stored import task
from sweetrl.critics.scripted import critic_named
from sweetrl.errors import UsageError
from sweetrl.types import Message, Role


def overlap(output: str, *history: str) -> float:
    seen = [Message(Role.USER, text) for text in history]
    return asyncio.run(critic_named("overlap").advantages(task(), seen, [output]))[0]


def test_words_of_the_reference_are_worth_something_unless_they_were_said_before():
    assert overlap("Is it 4711 times?") == pytest.approx(1 / 2)
    assert overlap("Is it 4711 times?", "It is 4711.") == 0.0
    assert overlap("") == 0.0


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(UsageError, match="did you mean 'overlap'"):
        critic_named("overlaps")
