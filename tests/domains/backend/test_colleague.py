"""The scripted colleague and the yardsticks, in whole dialogues."""

import asyncio

import pytest

from sweetrl.dialogue.rollout import roll_out
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.backend.colleague import OracleProgrammer, RandomProgrammer, ScriptedColleague
from sweetrl.domains.backend.mini_backend import make_tasks
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.errors import CollaboratorError, StageError
from sweetrl.protocols import Agent
from sweetrl.types import Ending, Episode, Message, Role, Task

TURN_LIMIT = 8
TASKS = list(make_tasks("validation", 150, seed=1))


def dialogues(agent: Agent, tasks: list[Task] = TASKS) -> list[Episode]:
    async def hold() -> list[Episode]:
        rules = Rules(turn_limit=TURN_LIMIT)
        return [each async for each in roll_out(tasks, agent, ScriptedColleague(), rules=rules)]

    return asyncio.run(hold())


def share_solved(episodes: list[Episode]) -> float:
    references = {task.id: task.secret.reference for task in TASKS if isinstance(task.secret, BackendSecret)}
    return sum(episode.answer == references[episode.task_id] for episode in episodes) / len(episodes)


def test_the_oracle_solves_nearly_everything() -> None:
    assert share_solved(dialogues(OracleProgrammer(TASKS))) >= 0.98


def test_asking_at_random_solves_next_to_nothing() -> None:
    episodes = dialogues(RandomProgrammer(TASKS, TURN_LIMIT))
    assert share_solved(episodes) <= 0.1
    assert {len(episode.turns) for episode in episodes} == {TURN_LIMIT}


def test_random_questions_are_not_repeated() -> None:
    for episode in dialogues(RandomProgrammer(TASKS, TURN_LIMIT), TASKS[:30]):
        questions = [turn.said for turn in episode.turns[:-1]]
        assert len(set(questions)) == len(questions)


def test_an_oracle_knows_only_the_tasks_it_was_told_of() -> None:
    history = [Message(Role.USER, "Please write label(text) for the moon.")]
    with pytest.raises(StageError, match="not told of this task"):
        asyncio.run(OracleProgrammer(TASKS).sample(history, n=1, seed=0))


def test_the_colleague_does_not_pretend_to_know_other_benchmarks() -> None:
    task = Task(
        id="other",
        domain="backend",
        split="test",
        request="Write f.",
        secret=BackendSecret("def f(x):\n    return x", {"test1": "f(1)"}),
    )
    history = [Message(Role.USER, task.request), Message(Role.ASSISTANT, "What is x?")]
    with pytest.raises(CollaboratorError, match="knows mini-backend tasks only"):
        asyncio.run(ScriptedColleague().reply(task, history, seed=0))


def test_a_dialogue_with_another_task_fails_and_is_not_judged() -> None:
    stranger = Task(
        id="other",
        domain="backend",
        split="test",
        request="Please write label(text).",
        secret=BackendSecret("def label(text):\n    return text", {"test1": "label('a')"}),
    )
    [episode] = dialogues(RandomProgrammer(TASKS, TURN_LIMIT), [stranger])
    assert episode.ending is Ending.FAILED
    assert episode.failure is not None
    assert episode.failure.stage == "collaborator"
