"""OpenEnv: dialogues behind a server, for trainers and agents on other machines.

    SWEETRL_TASKS=mini-backend:train:100 SWEETRL_COLLABORATOR=colleague \
        uvicorn --factory sweetrl.integrations.openenv:app --port 8000

    with ColBenchClient(base_url="http://localhost:8000").sync() as env:
        result = env.reset(seed=1)
        while not result.done:
            result = env.step(Say(text=my_agent(result.observation.messages)))

A session is one dialogue after the other. The reference and the hidden tests never leave the server.
"""

import os
import random
from typing import TYPE_CHECKING, Any

from sweetrl.dialogue.background import run_in_background
from sweetrl.dialogue.dialogue import Dialogue
from sweetrl.dialogue.rules import Rules
from sweetrl.errors import UsageError, needs_extra
from sweetrl.integrations.benchmark import Benchmark

with needs_extra("the OpenEnv environment", "openenv"):
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.env_server.http_server import create_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, Observation, State
    from pydantic import Field

if TYPE_CHECKING:
    from fastapi import FastAPI

MAX_ACTION = 1 << 16
"""Characters; far more than the 1024 tokens that an agent generates in a turn."""
SESSIONS = 256
"""How many dialogues a server holds at a time."""


class Say(Action):
    """The agent's raw output, thoughts included."""

    text: str = Field(max_length=MAX_ACTION)


class Heard(Observation):
    """The dialogue so far, as an agent may see it; the reward comes with the end."""

    task_id: str
    turn: int
    messages: list[dict[str, str]]
    """As for OpenAI's chat protocol, the system prompt first."""
    ending: str | None = None
    """How the dialogue ended; None while it goes on."""
    success: bool | None = None


class ColBenchEnvironment(Environment[Say, Heard, State]):
    """One session: `reset` begins a dialogue, `step` is one turn of the agent and the reply to it."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, benchmark: Benchmark) -> None:
        super().__init__()
        self._benchmark = benchmark
        self._dialogue: Dialogue | None = None

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,  # noqa: ARG002  OpenEnv's; ours follows from task, attempt and seed
        *,
        task_id: str | None = None,
        attempt: int = 0,
        **_: Any,
    ) -> Heard:
        """Begin a dialogue on the task of an id, or on one that is drawn with the seed."""
        tasks = self._benchmark.tasks
        seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed
        chosen = random.Random(seed).choice(tasks).id if task_id is None else task_id  # noqa: S311
        self._dialogue = self._benchmark.open(chosen, seed=seed, attempt=attempt)
        return self._heard(self._dialogue)

    async def step_async(self, action: Say, timeout_s: float | None = None, **_: Any) -> Heard:  # noqa: ARG002
        """The agent speaks; the collaborator replies, or the dialogue is scored. Other sessions continue meanwhile."""
        dialogue = self._dialogue
        if dialogue is None or dialogue.conclusion is not None:
            raise UsageError("the dialogue is over or has not begun; call reset first")
        await self._benchmark.say(dialogue, action.text)
        if dialogue.conclusion is None:
            return self._heard(dialogue)
        verdict = await self._benchmark.score(dialogue.episode)
        ended = {"done": True, "reward": verdict.reward, "success": verdict.success}
        return self._heard(dialogue, ending=str(dialogue.conclusion.ending), **ended)

    def step(self, action: Say, timeout_s: float | None = None, **_: Any) -> Heard:
        """`step_async` for code without an event loop."""
        return run_in_background(self.step_async(action, timeout_s))

    @property
    def state(self) -> State:
        """Which dialogue this is, and how far."""
        if self._dialogue is None:
            return State()
        return State(episode_id=self._dialogue.episode.id, step_count=len(self._dialogue.turns))

    def list_splits(self) -> list[str]:
        """OpenEnv's way to find tasks: here there is one split, `tasks`."""
        return ["tasks"]

    def num_tasks(self, split: str) -> int:
        """How many tasks there are."""
        return len(self.list_tasks(split))

    def list_tasks(self, split: str) -> list[dict[str, str]]:
        """The tasks as an agent may know them: for `reset(task_id=...)`."""
        if split != "tasks":
            raise IndexError(f"there is no split {split!r}; there is one, `tasks`")
        return [{"id": task.id, "request": task.request} for task in self._benchmark.tasks]

    def get_task(self, split: str, index: int) -> dict[str, str]:
        """One of them."""
        return self.list_tasks(split)[index]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Any]:
        """Some of them."""
        return self.list_tasks(split)[start:stop]

    def _heard(self, dialogue: Dialogue, **more: Any) -> Heard:
        chat = self._benchmark.chat(dialogue)
        return Heard(task_id=dialogue.task.id, turn=len(dialogue.turns), messages=chat, **more)


class ColBenchClient(EnvClient[Say, Heard, State]):
    """The other end of the line."""

    def _step_payload(self, action: Say) -> dict[str, Any]:
        return {"text": action.text}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Heard]:
        reward, done = payload.get("reward"), bool(payload.get("done"))
        heard = Heard(**{**payload["observation"], "reward": reward, "done": done})
        return StepResult(observation=heard, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)


def serve(benchmark: Benchmark) -> "FastAPI":
    """The server of a benchmark: give it to uvicorn."""
    return create_app(
        lambda: ColBenchEnvironment(benchmark), Say, Heard, env_name="colbench", max_concurrent_envs=SESSIONS
    )


def app() -> "FastAPI":
    """The server that the variables SWEETRL_TASKS, SWEETRL_COLLABORATOR and SWEETRL_TURN_LIMIT describe."""
    tasks = os.environ.get("SWEETRL_TASKS", "mini-backend:train:100")
    collaborator = os.environ.get("SWEETRL_COLLABORATOR", "colleague")
    rules = Rules(turn_limit=int(os.environ.get("SWEETRL_TURN_LIMIT", "10")))
    return serve(Benchmark(tasks, collaborator, rules=rules, agent="openenv"))
