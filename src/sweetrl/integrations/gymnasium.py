"""ColBench as a Gymnasium environment: actions and observations are texts, the reward comes at the end.

    name = "sweetrl.integrations.gymnasium:sweetrl/ColBench-v0"
    env = gymnasium.make(name, tasks="mini-backend:train:100", collaborator="colleague")
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step("What should happen to empty lists?")

The rules are those of `sweetrl rollout`. The scorer's breakdown is raised, not rewarded with zero.
"""

from collections.abc import Sequence
from typing import Any

from sweetrl.dialogue.dialogue import Dialogue
from sweetrl.dialogue.rules import Conclusion, Rules
from sweetrl.errors import needs_extra
from sweetrl.integrations.benchmark import Benchmark
from sweetrl.protocols import Collaborator, Scorer
from sweetrl.types import Ending, Task, Turn

with needs_extra("the Gymnasium environment", "gym"):
    import gymnasium
    from gymnasium import spaces

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
        self._benchmark = Benchmark(tasks, collaborator, scorer, rules=rules, agent=agent_name)
        self.action_space = AnyText(MAX_ACTION)
        self.observation_space = AnyText(MAX_OBSERVATION)
        self.render_mode = render_mode
        self._task = self._benchmark.tasks[0]
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
        self._benchmark.close()

    def _chosen(self, options: dict[str, Any]) -> Task:
        tasks = self._benchmark.tasks
        drawn = tasks[int(self.np_random.integers(len(tasks)))]
        return self._benchmark.task(options.get("task_id", drawn.id))

    def _open(self, past: Sequence[Turn] = ()) -> Dialogue:
        """The dialogue that `reset` chose, after these turns."""
        return self._benchmark.open(self._task.id, seed=self._seed, attempt=self._attempt, past=past)

    def _end(self, dialogue: Dialogue) -> tuple[str, float, bool, bool, dict[str, Any]]:
        episode = dialogue.episode
        try:
            verdict = self._benchmark.score_sync(episode)
        except BaseException:
            self._dialogue = self._open(past=dialogue.turns[:-1])
            raise
        answered = episode.ending is Ending.ANSWERED
        info = self._info(dialogue) | {"episode": episode, "verdict": verdict}
        return _observation(dialogue), verdict.reward or 0.0, answered, not answered, info

    def _info(self, dialogue: Dialogue) -> dict[str, Any]:
        messages = [{"role": str(message.role), "content": message.text} for message in dialogue.history]
        return {"task_id": self._task.id, "turn": len(dialogue.turns), "messages": messages}


def _observation(dialogue: Dialogue) -> str:
    text = "\n".join(f"{message.role}: {message.text}" for message in dialogue.history)
    return text[-MAX_OBSERVATION:]


if ENV_ID not in gymnasium.registry:
    # Gymnasium finds no installed plug-ins since 1.0: `make("MODULE:ENV_ID")` imports this module, which registers.
    gymnasium.register(ENV_ID, entry_point=f"{__name__}:ColBenchEnv")
