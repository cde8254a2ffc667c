"""What every collaborator must do. To test another one, add a function that makes it to `COLLABORATORS`."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from sweetrl.dialogue.collaborators import ModelCollaborator, ReplayedCollaborator, ScriptedCollaborator
from sweetrl.dialogue.guard import GuardedCollaborator
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.protocols import Collaborator
from sweetrl.types import Completion, Ending, Episode, Message, Reply, Role, Sampling, Task, Turn

TASK = Task(
    id="t1",
    domain="backend",
    request="Write a function.",
    secret=BackendSecret(reference="def f(a, b): return a + b", tests={"test1": "f(1, 2)"}),
)
EPISODE = Episode(
    task_id="t1",
    attempt=0,
    seed=0,
    agent="someone",
    collaborator="someone else",
    request=TASK.request,
    turns=(
        Turn("thought OUTPUT: Which one?", "Which one?", Reply("The one that adds.")),
        Turn("Adds what?", "Adds what?", Reply("Two numbers.")),
        Turn("I WANT TO ANSWER: x", "I WANT TO ANSWER: x"),
    ),
    ending=Ending.ANSWERED,
    answer="x",
)
FIRST = (*EPISODE.history(0), Message(Role.ASSISTANT, "Which one?"))
SECOND = (*EPISODE.history(1), Message(Role.ASSISTANT, "Adds what?"))


class DigestingModel:
    """A chat model whose reply depends on all it was told."""

    name = "digesting"

    async def complete(
        self, messages: Sequence[Message], *, n: int, sampling: Sampling, seed: int
    ) -> list[Completion]:
        await asyncio.sleep(0)
        return [Completion(text=f"I was told {len(messages[-1].text)} characters.", finish="stop")] * n

    async def close(self) -> None: ...


COLLABORATORS: dict[str, Callable[[], Collaborator]] = {
    "model": lambda: ModelCollaborator(DigestingModel(), BACKEND.prompts.collaborator, domain=BACKEND),
    "scripted lines": lambda: ScriptedCollaborator(["Adding.", "Numbers."]),
    "scripted function": lambda: ScriptedCollaborator(lambda task, history, seed: f"{len(history)} {seed}"),
    "replayed": lambda: ReplayedCollaborator([EPISODE]),
    "guarded": lambda: GuardedCollaborator(
        ScriptedCollaborator(lambda task, history, seed: f"{len(history)} {seed}"),
        lambda task, history, reply: int(reply.split()[1]) < 1 << 29,
    ),
}


@pytest.fixture(params=COLLABORATORS)
def collaborator(request: pytest.FixtureRequest) -> Collaborator:
    return COLLABORATORS[request.param]()


def test_it_has_a_name(collaborator: Collaborator) -> None:
    assert collaborator.name


@pytest.mark.parametrize("history", [FIRST, SECOND])
def test_it_says_something(collaborator: Collaborator, history: Sequence[Message]) -> None:
    reply = asyncio.run(collaborator.reply(TASK, history, seed=1))
    assert reply.text.strip()


def test_the_same_seed_gives_the_same_reply(collaborator: Collaborator) -> None:
    first = asyncio.run(collaborator.reply(TASK, SECOND, seed=5))
    assert asyncio.run(collaborator.reply(TASK, SECOND, seed=5)) == first


def test_it_leaves_the_history_alone(collaborator: Collaborator) -> None:
    history = list(SECOND)
    asyncio.run(collaborator.reply(TASK, history, seed=1))
    assert history == list(SECOND)


def test_dialogues_held_at_the_same_time_do_not_mix(collaborator: Collaborator) -> None:
    async def at_once() -> list[Reply]:
        return await asyncio.gather(*(collaborator.reply(TASK, each, seed=3) for each in (FIRST, SECOND)))

    alone = [asyncio.run(collaborator.reply(TASK, each, seed=3)) for each in (FIRST, SECOND)]
    assert asyncio.run(at_once()) == alone
