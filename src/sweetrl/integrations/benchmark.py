"""Tasks with their collaborator and scorer, for other people's runners: the basis of every adapter in this folder.

    benchmark = Benchmark("mini-backend:test:100", "colleague")
    dialogue = benchmark.open(task_id, seed=1)
    while dialogue.conclusion is None:
        await benchmark.say(dialogue, my_agent(benchmark.chat(dialogue)))
    verdict = await benchmark.score(dialogue.episode)

Whatever holds a connection or a process lives in the background event loop, so one benchmark serves any number of
loops and threads of the runner.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from sweetrl.api import Tasks, load_collaborator, load_tasks, open_scorer
from sweetrl.dialogue.background import await_in_background, run_in_background
from sweetrl.dialogue.dialogue import Dialogue
from sweetrl.dialogue.rules import Conclusion, Rules
from sweetrl.domains.registry import domain_of
from sweetrl.errors import StageError, UsageError
from sweetrl.prompts import agent_instructions
from sweetrl.protocols import Collaborator, Scorer
from sweetrl.types import Episode, Reply, Task, Turn, Verdict


class Benchmark:
    """Tasks of one domain, who replies to the agent, and who scores what it did."""

    def __init__(
        self,
        tasks: Tasks,
        collaborator: str | Collaborator,
        scorer: Scorer | None = None,
        *,
        rules: Rules | None = None,
        agent: str = "agent",
    ) -> None:
        """Tasks and collaborator may be given by name, as on the command line; `agent` is how records name the agent.

        Without a `scorer`, the one of the tasks. One that is given stays the caller's to close.
        """
        self.tasks = load_tasks(tasks)
        if not self.tasks:
            raise UsageError("the benchmark needs at least one task")
        if isinstance(collaborator, str):
            collaborator = load_collaborator(collaborator, self.tasks)
        self.collaborator = collaborator
        self.rules = rules or Rules()
        self.agent = agent
        self._by_id = {task.id: task for task in self.tasks}
        self._scorer = scorer
        self._opened = AsyncExitStack()
        self._opening = asyncio.Lock()

    @property
    def instructions(self) -> str:
        """The system prompt that an agent of ours is given on these tasks."""
        prompts = domain_of(self.tasks[0]).prompts
        prompt = prompts.single_turn if self.rules.single_turn else prompts.agent
        return agent_instructions(prompt, turn_limit=self.rules.turn_limit)

    def task(self, task_id: str) -> Task:
        """The task of an id."""
        if task_id not in self._by_id:
            raise UsageError(f"no task has the id {task_id!r}; the first one is {self.tasks[0].id!r}")
        return self._by_id[task_id]

    def open(self, task_id: str, *, seed: int = 0, attempt: int = 0, past: Sequence[Turn] = ()) -> Dialogue:
        """A dialogue on a task, with the replies that `sweetrl rollout --seed SEED` gets to the same messages."""
        return Dialogue(
            self.task(task_id),
            self.collaborator,
            rules=self.rules,
            seed=seed,
            attempt=attempt,
            agent=self.agent,
            past=past,
        )

    def chat(self, dialogue: Dialogue) -> list[dict[str, str]]:
        """The dialogue so far as OpenAI messages, the system prompt first: what an agent may see."""
        told = [{"role": str(message.role), "content": message.text} for message in dialogue.history]
        return [{"role": "system", "content": self.instructions}, *told]

    async def say(self, dialogue: Dialogue, output: str) -> Reply | Conclusion:
        """`dialogue.say`, in the loop that the collaborator lives in."""
        return await await_in_background(dialogue.say(output))

    async def score(self, episode: Episode) -> Verdict:
        """The verdict on a dialogue. The breakdown of collaborator or scorer is raised, not rewarded with zero."""
        return await await_in_background(self._scored(episode))

    def score_sync(self, episode: Episode) -> Verdict:
        """`score` for code without an event loop."""
        return run_in_background(self._scored(episode))

    def close(self) -> None:
        """Close the scorer, if none was given."""
        run_in_background(self._opened.aclose())

    async def _scored(self, episode: Episode) -> Verdict:
        # All of this runs in one loop, so a lock is enough to open one scorer for answers that come together.
        async with self._opening:
            if self._scorer is None:
                self._scorer = await self._opened.enter_async_context(open_scorer(self.tasks))
                self._opened.callback(setattr, self, "_scorer", None)  # closed; the next answer opens another
        verdict = await self._scorer.score(self.task(episode.task_id), episode)
        if verdict.reward is None:
            why = verdict.failure.message if verdict.failure else "the scorer gave no reason"
            raise StageError(f"the answer could not be scored: {why}")
        return verdict
