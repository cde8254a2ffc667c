"""Over OpenEnv's own server and client, through a real socket."""

import json
import os
import runpy
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`; run by `make test-integrations`")

import sweetrl
from conftest import CHECKOUT
from sweetrl.dialogue.background import run_in_background
from sweetrl.integrations.openenv import ColBenchClient, Heard, Say
from sweetrl.types import Message, Role

TASKS = "mini-backend:test:20:3"


def container_command() -> list[str]:
    """What the container of the example runs."""
    lines = (CHECKOUT / "examples/openenv_server/Containerfile").read_text().splitlines()
    [command] = [line.removeprefix("CMD ") for line in lines if line.startswith("CMD ")]
    return list(json.loads(command))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    wanted = {"SWEETRL_TASKS": TASKS, "SWEETRL_COLLABORATOR": "colleague", "SWEETRL_TURN_LIMIT": "8"}
    command = [sys.executable, "-m", *container_command(), "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, env=os.environ | wanted)
    while server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    server.terminate()
    server.wait()


def play(url: str, agent: str, task: str) -> Heard:
    """A whole dialogue with a scripted agent of ours."""
    ours = sweetrl.load_agent(agent, TASKS, rules=sweetrl.Rules(turn_limit=8))
    with ColBenchClient(base_url=url).sync() as env:
        result = env.reset(seed=1, task_id=task)
        while not result.done:
            told = result.observation.messages[1:]
            history = [Message(Role(each["role"]), each["content"]) for each in told]
            [output] = run_in_background(ours.sample(history, n=1, seed=len(history)))
            result = env.step(Say(text=output))
    return result.observation


def played(url: str, agent: str) -> list[Heard]:
    """All tasks, several sessions at a time."""
    ids = [task.id for task in sweetrl.load_tasks(TASKS)]
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda task: play(url, agent, task), ids))


def test_the_oracle_solves_every_task_in_sessions_side_by_side(url: str) -> None:
    ended = played(url, "mini-oracle")

    assert [each.reward for each in ended] == [1.0] * 20
    assert {each.ending for each in ended} == {"answered"}


def test_a_random_agent_solves_next_to_none(url: str) -> None:
    assert sum(bool(each.success) for each in played(url, "mini-random")) < 2


def test_the_replies_are_those_of_our_own_rollout(url: str) -> None:
    [own] = sweetrl.rollout(sweetrl.load_tasks(TASKS)[:1], "mini-oracle", "colleague", seed=1, turn_limit=8)
    told = play(url, "mini-oracle", own.task_id).messages

    assert [each["content"] for each in told[1:]][2::2] == [
        turn.reply.text for turn in own.turns if turn.reply
    ]


def test_nothing_of_the_secret_leaves_the_server(url: str) -> None:
    task = sweetrl.load_tasks(TASKS)[0]
    with ColBenchClient(base_url=url).sync() as env:
        seen = str(env.reset(seed=1, task_id=task.id)) + str(env.state())

    assert task.request in seen
    assert task.secret.reference not in seen


def test_the_example_holds_a_dialogue(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(CHECKOUT / "examples/openenv_dialogue.py"))["main"](url)
    said = capsys.readouterr().out
    assert "assistant: What should it return?\nuser: " in said
    assert said.endswith("reward 0.0, success False\n")


def test_a_step_after_the_end_says_what_to_do(url: str) -> None:
    with ColBenchClient(base_url=url).sync() as env:
        env.reset(seed=1)
        assert env.step(Say(text="I WANT TO ANSWER: no")).done
        with pytest.raises(RuntimeError, match="call reset first"):
            env.step(Say(text="more"))
