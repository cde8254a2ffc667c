import asyncio
from collections.abc import Sequence

import pytest

from sweetrl.dialogue.agents import ModelAgent, ScriptedAgent
from sweetrl.errors import ConfigError, StageError
from sweetrl.models.scripted import ScriptedModel
from sweetrl.prompts import Prompt
from sweetrl.types import Completion, Message, Role, Sampling, Unfinished

HISTORY = [Message(Role.USER, "Write a function.")]


class RecordingModel:
    name = "recording"

    def __init__(self) -> None:
        self.calls: list[tuple[list[Message], int, Sampling, int]] = []

    async def complete(
        self, messages: Sequence[Message], *, n: int, sampling: Sampling, seed: int
    ) -> list[Completion]:
        self.calls.append((list(messages), n, sampling, seed))
        return [Completion(text=f"sample {i}", finish="stop") for i in range(n)]

    async def close(self) -> None: ...


def test_the_model_gets_the_system_prompt_and_then_the_dialogue() -> None:
    model = RecordingModel()
    agent = ModelAgent(model, Prompt("You help.", source="test"), Sampling(temperature=0.5))
    assert asyncio.run(agent.sample(HISTORY, n=1, seed=9)) == ["sample 0"]
    wanted = [Message(Role.SYSTEM, "You help."), *HISTORY]
    assert model.calls == [(wanted, 1, Sampling(temperature=0.5), 9)]


def test_an_output_that_the_limit_ended_is_marked() -> None:
    model = ScriptedModel(["one two three"])
    for limit, unfinished in ((2, True), (3, False)):
        agent = ModelAgent(model, Prompt("You help.", source="test"), Sampling(max_tokens=limit))
        [output] = asyncio.run(agent.sample(HISTORY, n=1, seed=9))
        assert output == "one two three"[: 7 if unfinished else None]
        assert isinstance(output, Unfinished) == unfinished


def test_one_sample_and_sixteen_are_drawn_from_the_same_prompt() -> None:
    model = RecordingModel()
    agent = ModelAgent(model, Prompt("You help.", source="test"))
    asyncio.run(agent.sample(HISTORY, n=1, seed=1))
    asyncio.run(agent.sample(HISTORY, n=16, seed=1))
    [one, sixteen] = model.calls
    assert one[0] == sixteen[0] == agent.prompt(HISTORY)
    assert one[2] == sixteen[2]


def test_it_samples_as_the_paper_does_unless_told_otherwise() -> None:
    model = RecordingModel()
    asyncio.run(ModelAgent(model, Prompt("x", source="test")).sample(HISTORY, n=1, seed=1))
    assert model.calls[0][2] == Sampling(temperature=1.0, max_tokens=1024)


def test_the_agent_is_told_how_often_it_may_speak() -> None:
    prompt = Prompt("At most {turn_limit} times.", source="test")
    [system, *_] = ModelAgent(RecordingModel(), prompt, turn_limit=6).prompt(HISTORY)
    assert system == Message(Role.SYSTEM, "At most 6 times.")
    [system, *_] = ModelAgent(RecordingModel(), prompt).prompt(HISTORY)
    assert system.text == "At most 10 times."


def test_a_prompt_with_other_fields_is_refused_because_an_agent_must_know_nothing() -> None:
    with pytest.raises(ConfigError, match=r"mine.txt: nothing fills .*hidden_information"):
        ModelAgent(RecordingModel(), Prompt("{hidden_information}", source="mine.txt"))


def test_a_script_that_has_run_out_is_a_breakdown() -> None:
    with pytest.raises(StageError, match="the script has 0 lines, turn 1 needs one more"):
        asyncio.run(ScriptedAgent([]).sample(HISTORY, n=1, seed=1))
