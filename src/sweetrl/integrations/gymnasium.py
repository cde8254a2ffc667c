"""ColBench as a Gymnasium environment: actions and observations are texts, the reward comes at the end.

    name = "sweetrl.integrations.gymnasium:sweetrl/ColBench-v0"
    env = gymnasium.make(name, tasks="mini-backend:train:100", collaborator="colleague")
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step("What should happen to empty lists?")

The rules are those of `sweetrl rollout`. The scorer's breakdown is raised, not rewarded with zero.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from sweetrl.api import load_collaborator, load_tasks, open_scorer
from sweetrl.dialogue.background import run_in_background
from sweetrl.dialogue.dialogue import Dialogue
from sweetrl.dialogue.rules import Conclusion, Rules
from sweetrl.errors import MissingExtra, StageError, UsageError
from sweetrl.protocols import Collaborator, Scorer
from sweetrl.types import Ending, Episode, Task, Turn, Verdict

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise MissingExtra("the Gymnasium environment", "gym") from error

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
        tasks: str | Sequence[Task],
        collaborator: str | Collaborator,
        scorer: Scorer | None = None,
        *,
        rules: Rules | None = None,
        agent_name: str = "gymnasium",
        render_mode: str | None = None,
    ) -> None:
        """`reset` draws one of `tasks`, or takes the one whose id is in `options["task_id"]`.

        Tasks and collaborator may be given by name, as on the command line. Without a `scorer`, the one of the tasks.
        """
        self._tasks = load_tasks(tasks)
        if not self._tasks:
            raise UsageError("the environment needs at least one task")
        if isinstance(collaborator, str):
            collaborator = load_collaborator(collaborator, self._tasks)
        self._collaborator = collaborator
        self._scorer = scorer
        self._opened = AsyncExitStack()
        self.action_space = AnyText(MAX_ACTION)
        self.observation_space = AnyText(MAX_OBSERVATION)
        self.render_mode = render_mode
        self._rules = rules or Rules()
        self._agent_name = agent_name
        self._task = self._tasks[0]
        self._seed = self._attempt = 0
        self._dialogue: Dialogue | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin a dialogue, with the replies that `sweetrl rollout --seed SEED` gets to the same messages.

        Without a `seed` one is drawn. `options` may have `task_id` and, for other replies to the same seed, `attempt`.
        """
        super().reset(seed=seed)
        options = options or {}
        self._task = self._chosen(options)
        drawn = int(self.np_random.integers(1 << 31))
        self._seed = drawn if seed is None else seed
        self._attempt = int(options.get("attempt", 0))
        self._dialogue = dialogue = self._open()
        return _observation(dialogue), self._info(dialogue)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The agent speaks; the collaborator replies, or the answer is scored.

        When either of them breaks down, its `StageError` is raised and the step may be tried again.
        """
        dialogue = self._dialogue
        if dialogue is None or dialogue.conclusion is not None:
            raise gymnasium.error.ResetNeeded("the dialogue is over or has not begun; call reset() first")
        if isinstance(dialogue.say_sync(action), Conclusion):
            return self._end(dialogue)
        return _observation(dialogue), 0.0, False, False, self._info(dialogue)

    def render(self) -> str | None:
        """The dialogue so far, in the mode `ansi`."""
        dialogue = self._dialogue if self.render_mode == "ansi" else None
        return None if dialogue is None else _observation(dialogue)

    def close(self) -> None:
        """Close the scorer, if none was given; one that was given stays the caller's, as does the collaborator."""
        run_in_background(self._opened.aclose())

    def _chosen(self, options: dict[str, Any]) -> Task:
        drawn = self._tasks[int(self.np_random.integers(len(self._tasks)))]
        wanted = options.get("task_id", drawn.id)
        for task in self._tasks:
            if task.id == wanted:
                return task
        raise UsageError(f"no task has the id {wanted!r}; the first one is {self._tasks[0].id!r}")

    def _open(self, past: Sequence[Turn] = ()) -> Dialogue:
        """The dialogue that `reset` chose, after these turns."""
        return Dialogue(
            self._task,
            self._collaborator,
            rules=self._rules,
            seed=self._seed,
            attempt=self._attempt,
            agent=self._agent_name,
            past=past,
        )

    def _end(self, dialogue: Dialogue) -> tuple[str, float, bool, bool, dict[str, Any]]:
        episode = dialogue.episode
        try:
            verdict = self._scored(episode)
        except BaseException:
            self._dialogue = self._open(past=dialogue.turns[:-1])
            raise
        answered = episode.ending is Ending.ANSWERED
        info = self._info(dialogue) | {"episode": episode, "verdict": verdict}
        return _observation(dialogue), verdict.reward or 0.0, answered, not answered, info

    def _scored(self, episode: Episode) -> Verdict:
        if self._scorer is None:
            scoring = open_scorer(self._tasks, workers=1)
            self._scorer = run_in_background(self._opened.enter_async_context(scoring))
        verdict = run_in_background(self._scorer.score(self._task, episode))
        if verdict.reward is None:
            why = verdict.failure.message if verdict.failure else "the scorer gave no reason"
            raise StageError(f"the answer could not be scored: {why}")
        return verdict

    def _info(self, dialogue: Dialogue) -> dict[str, Any]:
        messages = [{"role": str(message.role), "content": message.text} for message in dialogue.history]
        return {"task_id": self._task.id, "turn": len(dialogue.turns), "messages": messages}


def _observation(dialogue: Dialogue) -> str:
    text = "\n".join(f"{message.role}: {message.text}" for message in dialogue.history)
    return text[-MAX_OBSERVATION:]


if ENV_ID not in gymnasium.registry:
    # Gymnasium finds no installed plug-ins since 1.0: `make("MODULE:ENV_ID")` imports this module, which registers.
    gymnasium.register(ENV_ID, entry_point=f"{__name__}:ColBenchEnv")
