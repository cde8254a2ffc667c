"""Through inspect_ai's own runner: its solver loop, its scorers, its log."""

import asyncio
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra `inspect`; run by `make test-integrations`")

from inspect_ai import eval as inspect_eval
from inspect_ai import score as score_again
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import Model, ModelAPI, ModelOutput, get_model, modelapi

import sweetrl
from conftest import CHECKOUT
from sweetrl.dialogue.background import run_in_background
from sweetrl.integrations.inspect_ai import colbench, episodes_of, outcome
from sweetrl.types import Message, Role

TASKS = "mini-backend:test:20:3"


class Scripted(ModelAPI):
    """A function as a model of inspect's, whose own mock model counts tokens with a file from the network."""

    def __init__(self, model_name: str, answer: Callable[[list[Message]], str], **_: Any) -> None:
        super().__init__(model_name)
        self._answer = answer

    async def generate(self, input: list[Any], **_: Any) -> ModelOutput:  # noqa: A002  inspect's name
        history = [Message(Role(each.role), each.text) for each in input if each.role != "system"]
        return ModelOutput.from_content(self.model_name, await asyncio.to_thread(self._answer, history))


@modelapi("scripted")
def scripted() -> type[ModelAPI]:
    return Scripted


def model(agent: str) -> Model:
    """A scripted agent of ours, as a model of inspect's."""
    ours = sweetrl.load_agent(agent, TASKS, rules=sweetrl.Rules(turn_limit=8))

    def answer(history: list[Message]) -> str:
        return run_in_background(ours.sample(history, n=1, seed=len(history)))[0]

    return get_model(f"scripted/{agent}", answer=answer)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], EvalLog]:
    logs: dict[str, EvalLog] = {}

    def run(agent: str) -> EvalLog:
        if agent not in logs:
            folder = str(tmp_path_factory.mktemp("logs"))
            task = colbench(TASKS, "colleague", turn_limit=8, seed=1)
            [logs[agent]] = inspect_eval(task, model=model(agent), log_dir=folder, display="none")
        return logs[agent]

    return run


def metric(log: EvalLog, name: str) -> float:
    assert log.status == "success", log.error
    return {each.name: each.metrics["mean"].value for each in log.results.scores}[name]


def test_the_oracle_solves_every_task(evaluated: Callable[[str], EvalLog]) -> None:
    assert metric(evaluated("mini-oracle"), "success") == 1.0


def test_a_random_agent_solves_next_to_none(evaluated: Callable[[str], EvalLog]) -> None:
    assert metric(evaluated("mini-random"), "success") < 0.1


def test_the_dialogues_are_those_of_our_own_rollout(evaluated: Callable[[str], EvalLog]) -> None:
    told = {each.task_id: each for each in episodes_of(evaluated("mini-oracle"))}
    own = sweetrl.rollout(TASKS, "mini-oracle", "colleague", seed=1, turn_limit=8)

    assert len(told) == 20
    for episode in own:
        replies = [turn.reply.text for turn in told[episode.task_id].turns if turn.reply]
        assert replies == [turn.reply.text for turn in episode.turns if turn.reply]


def test_a_log_can_be_scored_again(evaluated: Callable[[str], EvalLog]) -> None:
    log = evaluated("mini-oracle")
    again = score_again(read_eval_log(log.location), outcome(TASKS, "colleague", 8), display="none")

    assert metric(again, "success") == 1.0


def test_the_example_prints_metrics_and_the_credit_of_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path))
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    example = runpy.run_path(str(CHECKOUT / "examples/inspect_colbench.py"))
    example["main"](model("mini-oracle"), TASKS)
    said = capsys.readouterr().out
    assert "success 1.0\n" in said
    assert len({line.split()[0] for line in said.splitlines() if "#0 " in line}) == 20


def test_a_collaborator_that_is_down_is_an_error_of_the_sample_and_no_zero(tmp_path: Path) -> None:
    task = colbench("mini-backend:test:1:3", "openai:nobody@http://127.0.0.1:9", turn_limit=8)
    talkative = get_model("scripted/talkative", answer=lambda _: "What order?")
    [log] = inspect_eval(task, model=talkative, log_dir=str(tmp_path), display="none")

    assert log.status == "error"
    assert "127.0.0.1" in str(log.samples[0].error.message)
