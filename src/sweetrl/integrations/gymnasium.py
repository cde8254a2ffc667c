"""ColBench as a Gymnasium environment: actions and observations are texts, the reward comes at the end.

    env = ColBenchEnv(tasks, collaborator, scorer)
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step("What should happen to empty lists?")

The rules are those of `sweetrl rollout`. The scorer's breakdown is raised, not rewarded with zero.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from msgspec.structs import replace

from sweetrl.dialogue import rules as game
from sweetrl.dialogue.blame import reply_or_excuse
from sweetrl.dialogue.rules import Conclusion, Rules
from sweetrl.domains.registry import domain_of
from sweetrl.errors import MissingExtra, StageError, UsageError
from sweetrl.protocols import Collaborator, Scorer
from sweetrl.seeds import derive_seed
from sweetrl.types import Ending, Episode, Message, Reply, Role, Task, Turn

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise MissingExtra("the Gymnasium environment", "gym") from error

T = TypeVar("T")

ENV_ID = "sweetrl/ColBench-v0"
MAX_ACTION = 1 << 16
"""Characters; far more than the 1024 tokens that an agent generates in a turn."""
MAX_OBSERVATION = 1 << 20
_PRINTABLE = "".join(map(chr, range(32, 127))) + "\n"


class AnyText(spaces.Text):
    """All texts up to a length; samples are of printable ASCII."""

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length, min_length=0, charset=_PRINTABLE)

    def contains(self, x: Any) -> bool:
        """Whether `x` is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length


class ColBenchEnv(gymnasium.Env[str, str]):
    """One dialogue per episode.

    An action is the agent's raw output, thoughts included. An observation is the dialogue so far as text;
    `info["messages"]` has it as a chat, without a system prompt. An answer terminates the episode, the turn
    limit truncates it, and both are rewarded. At the end `info` holds the `Episode` and the `Verdict`.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  as Gymnasium declares it

    def __init__(
        self,
        tasks: Sequence[Task],
        collaborator: Collaborator,
        scorer: Scorer,
        *,
        rules: Rules | None = None,
        agent_name: str = "gymnasium",
        render_mode: str | None = None,
    ) -> None:
        """`reset` draws one of `tasks`, or takes the one whose id is in `options["task_id"]`."""
        if not tasks:
            raise UsageError("the environment needs at least one task")
        self.action_space = AnyText(MAX_ACTION)
        self.observation_space = AnyText(MAX_OBSERVATION)
        self.render_mode = render_mode
        self._tasks = list(tasks)
        self._collaborator = collaborator
        self._scorer = scorer
        self._rules = rules or Rules()
        self._agent_name = agent_name
        self._loop = _Loop()
        self._task = self._tasks[0]
        self._seed = 0
        self._turns: list[Turn] = []
        self._is_open = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin a dialogue."""
        super().reset(seed=seed)
        self._task = self._chosen(options or {})
        self._seed = int(self.np_random.integers(1 << 31))
        self._turns = []
        self._is_open = True
        return self._observation(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The agent speaks; the collaborator replies, or the answer is scored.

        When either of them breaks down, its `StageError` is raised and the step may be tried again.
        """
        if not self._is_open:
            raise gymnasium.error.ResetNeeded("the dialogue is over or has not begun; call reset() first")
        turn = Turn(action, game.spoken(action))
        said = [*(past.said for past in self._turns), turn.said]
        conclusion = game.conclude(domain_of(self._task), said, self._rules)
        if conclusion is not None:
            return self._end(turn, conclusion)
        reply = self._loop.run(self._reply(turn))
        self._turns.append(Turn(turn.output, turn.said, reply))
        return self._observation(), 0.0, False, False, self._info()

    def render(self) -> str | None:
        """The dialogue so far, in the mode `ansi`."""
        return self._observation() if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Stop the thread that waits for collaborator and scorer, which themselves belong to the caller."""
        self._loop.close()

    def _chosen(self, options: dict[str, Any]) -> Task:
        drawn = self._tasks[int(self.np_random.integers(len(self._tasks)))]
        wanted = options.get("task_id", drawn.id)
        for task in self._tasks:
            if task.id == wanted:
                return task
        raise UsageError(f"no task has the id {wanted!r}; the first one is {self._tasks[0].id!r}")

    async def _reply(self, turn: Turn) -> Reply:
        seed = derive_seed(self._seed, self._task.id, len(self._turns), "collaborator")
        history = [*self._history(), Message(Role.ASSISTANT, turn.said)]
        reply = await reply_or_excuse(self._collaborator, self._task, history, seed=seed)
        return replace(reply, text=game.cut_reply(reply.text, domain_of(self._task)))

    def _end(self, turn: Turn, conclusion: Conclusion) -> tuple[str, float, bool, bool, dict[str, Any]]:
        episode = self._episode((*self._turns, turn), conclusion)
        verdict = self._loop.run(self._scorer.score(self._task, episode))
        if verdict.reward is None:
            why = verdict.failure.message if verdict.failure else "the scorer gave no reason"
            raise StageError(f"the answer could not be scored: {why}")
        self._turns.append(turn)
        self._is_open = False
        answered = conclusion.ending is Ending.ANSWERED
        info = self._info() | {"episode": episode, "verdict": verdict}
        return self._observation(), verdict.reward, answered, not answered, info

    def _episode(self, turns: tuple[Turn, ...], conclusion: Conclusion) -> Episode:
        return Episode(
            task_id=self._task.id,
            attempt=0,
            seed=self._seed,
            agent=self._agent_name,
            collaborator=self._collaborator.name,
            request=self._task.request,
            turns=turns,
            ending=conclusion.ending,
            answer=conclusion.answer,
        )

    def _history(self) -> list[Message]:
        messages = [Message(Role.USER, self._task.request)]
        for turn in self._turns:
            messages.append(Message(Role.ASSISTANT, turn.said))
            if turn.reply is not None:
                messages.append(Message(Role.USER, turn.reply.text))
        return messages

    def _observation(self) -> str:
        text = "\n".join(f"{message.role}: {message.text}" for message in self._history())
        return text[-MAX_OBSERVATION:]

    def _info(self) -> dict[str, Any]:
        messages = [{"role": str(message.role), "content": message.text} for message in self._history()]
        return {"task_id": self._task.id, "turn": len(self._turns), "messages": messages}


class _Loop:
    """An event loop in a thread of its own, so that a synchronous `step` works inside a running loop too."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._runner: asyncio.Runner | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="colbench-env")
            self._runner = asyncio.Runner()
        assert self._runner is not None
        return self._thread.submit(self._runner.run, work).result()

    def close(self) -> None:
        if self._thread is not None and self._runner is not None:
            self._thread.submit(self._runner.close).result()
            self._thread.shutdown()
            self._thread = self._runner = None


if ENV_ID not in gymnasium.registry:
    # For `gymnasium.make(ENV_ID, tasks=..., collaborator=..., scorer=...)`.
    gymnasium.register(ENV_ID, entry_point=f"{__name__}:ColBenchEnv")
