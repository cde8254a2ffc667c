"""What every agent must do. To test another one, add a function that makes it to `AGENTS`."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from sweetrl.dialogue.agents import ModelAgent, ScriptedAgent
from sweetrl.prompts import Prompt
from sweetrl.protocols import Agent
from sweetrl.seeds import derive_seed
from sweetrl.types import Completion, Message, Role, Sampling

HISTORY = (
    Message(Role.USER, "Write a function."),
    Message(Role.ASSISTANT, "Which one?"),
    Message(Role.USER, "The one that adds."),
)


class SeededModel:
    """A chat model whose every sample tells what it was asked for."""

    name = "seeded"

    async def complete(
        self, messages: Sequence[Message], *, n: int, sampling: Sampling, seed: int
    ) -> list[Completion]:
        # Yields to others, so that calls that share state would get mixed up.
        await asyncio.sleep(0)
        said = messages[-1].text
        return [Completion(text=f"{said} {derive_seed(seed, i)}", finish="stop") for i in range(n)]

    async def close(self) -> None: ...


AGENTS: dict[str, Callable[[], Agent]] = {
    "model": lambda: ModelAgent(SeededModel(), Prompt("Help.", source="test")),
    "scripted lines": lambda: ScriptedAgent(["first", "second"]),
    "scripted function": lambda: ScriptedAgent(lambda history, seed: f"{history[-1].text} {seed}"),
}


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Agent:
    return AGENTS[request.param]()


def test_it_has_a_name(agent: Agent) -> None:
    assert agent.name


@pytest.mark.parametrize("n", [1, 2, 16])
def test_it_gives_as_many_outputs_as_asked_for(agent: Agent, n: int) -> None:
    outputs = asyncio.run(agent.sample(HISTORY, n=n, seed=1))
    assert len(outputs) == n
    assert all(isinstance(output, str) for output in outputs)


def test_the_same_seed_gives_the_same_outputs(agent: Agent) -> None:
    first = asyncio.run(agent.sample(HISTORY, n=4, seed=7))
    assert asyncio.run(agent.sample(HISTORY, n=4, seed=7)) == first


def test_it_leaves_the_history_alone(agent: Agent) -> None:
    history = list(HISTORY)
    asyncio.run(agent.sample(history, n=1, seed=1))
    assert history == list(HISTORY)


def test_dialogues_held_at_the_same_time_do_not_mix(agent: Agent) -> None:
    histories = [HISTORY[:1], HISTORY, (Message(Role.USER, "Something else."),)]

    async def at_once() -> list[list[str]]:
        return await asyncio.gather(*(agent.sample(each, n=2, seed=3) for each in histories))

    alone = [asyncio.run(agent.sample(each, n=2, seed=3)) for each in histories]
    assert asyncio.run(at_once()) == alone
