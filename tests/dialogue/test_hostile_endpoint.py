"""Dialogues over a real HTTP server that fails in every way a server can."""

import asyncio
from typing import Any

import msgspec
import pytest

from models.hostile_server import FAULT_TEXT, TRANSIENT, HostileServer, Trouble
from sweetrl.dialogue.agents import ModelAgent
from sweetrl.dialogue.collaborators import ModelCollaborator
from sweetrl.dialogue.rollout import Progress, roll_out
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.models import EndpointOptions, Endpoints, open_model
from sweetrl.seeds import derive_seed
from sweetrl.types import Ending, Episode, Task

PATIENT = EndpointOptions(
    timeout=0.5, attempts=30, costly_attempts=15, first_backoff=0.01, max_backoff=0.05, start_concurrency=32
)


def task(number: int) -> Task:
    secret = BackendSecret(reference=f"def f(): return {number}", tests={"test1": "f()"})
    return Task(id=f"task-{number}", domain="backend", request=f"Write function {number}.", secret=secret)


def reply(body: dict[str, Any], sample: int) -> str:
    """An agent that asks once or twice and then answers; a collaborator with a reply to everything."""
    messages = body["messages"]
    mark = derive_seed(msgspec.json.encode(messages), body["seed"])
    if messages[0]["role"] != "system":
        return f"Reply {mark}."
    turn = len(messages) // 2 - 1
    return (
        f"hm OUTPUT: Question {mark}?" if turn < 1 + mark % 2 else f"I WANT TO ANSWER: def f(): return {mark}"
    )


async def hold(server: HostileServer, count: int, progress: Progress) -> dict[str, Episode]:
    endpoints = Endpoints(PATIENT)
    spec = f"openai:fake@{server.url}"
    speaker, listener = (open_model(spec, endpoints=endpoints) for _ in range(2))
    agent = ModelAgent(speaker, BACKEND.prompts.agent)
    collaborator = ModelCollaborator(listener, BACKEND.prompts.collaborator, domain=BACKEND)
    tasks = [task(number) for number in range(count)]
    episodes: dict[str, Episode] = {}
    try:
        async for episode in roll_out(tasks, agent, collaborator, concurrency=200, progress=progress):
            assert episode.id not in episodes
            episodes[episode.id] = episode
    finally:
        await speaker.close()
        await listener.close()
    return episodes


def held(count: int, *, rate: float) -> tuple[dict[str, Episode], HostileServer, Progress]:
    async def go() -> tuple[dict[str, Episode], HostileServer]:
        async with HostileServer(rate=rate, seed=3, reply=reply) as server:
            return await hold(server, count, progress), server

    progress = Progress()
    episodes, server = asyncio.run(go())
    return episodes, server, progress


def texts(episodes: dict[str, Episode]) -> dict[str, object]:
    """What was said, without the name of the server, which has its port."""
    return {key: (each.turns, each.ending, each.answer) for key, each in episodes.items()}


def check_survival(count: int) -> None:
    calm, _, _ = held(count, rate=0.0)
    episodes, server, progress = held(count, rate=0.3)
    assert len(server.met) == len(TRANSIENT), "every kind of trouble was met"
    assert episodes.keys() == {f"task-{number}#0" for number in range(count)}
    assert {each.ending for each in episodes.values()} == {Ending.ANSWERED}
    assert texts(episodes) == texts(calm)
    assert FAULT_TEXT.encode() not in msgspec.json.encode(episodes)
    assert (progress.finished, progress.failed, progress.dropped) == (count, 0, 0)


def test_a_hundred_dialogues_survive_thirty_percent_faults_word_for_word() -> None:
    check_survival(100)


@pytest.mark.slow
def test_a_thousand_dialogues_survive_thirty_percent_faults_word_for_word() -> None:
    check_survival(1000)


def test_a_refusal_for_good_fails_its_dialogues_with_the_reason() -> None:
    async def go() -> dict[str, Episode]:
        async with HostileServer(rate=1.0, troubles=[Trouble.UNAUTHORIZED]) as server:
            return await hold(server, 3, Progress())

    episodes = asyncio.run(go())
    assert len(episodes) == 3
    for episode in episodes.values():
        assert episode.ending is Ending.FAILED
        assert episode.failure is not None
        assert (episode.failure.stage, episode.failure.kind) == ("agent", "auth")
        assert episode.turns == ()
