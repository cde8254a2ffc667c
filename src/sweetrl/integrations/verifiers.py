"""verifiers: ColBench, the miniature and any domain of yours as taskset and environment, and credit in its traces.

    vf-eval sweetrl-colbench -m my-model --env.taskset.tasks mini-backend:test:100 --env.taskset.collaborator colleague

The model is verifiers'; the collaborator is one of ours. verifiers finds the classes of this file in a top-level module
that exports them, such as the one in `examples/verifiers_environment`. Each trace keeps its dialogue as an `episode`
(`episodes_of`), and `write_credit` puts the credit of each turn on its tokens.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import msgspec

from sweetrl.dialogue.rules import Rules
from sweetrl.errors import UsageError, needs_extra
from sweetrl.integrations.benchmark import Benchmark
from sweetrl.types import Episode, TurnCredit, Unfinished

with needs_extra("the verifiers taskset", "verifiers"):
    import verifiers.v1 as vf
    from openai import AsyncOpenAI, OpenAIError
    from verifiers.v1.dialects.chat import message_to_wire


class ColBenchTask(vf.Task[vf.TaskData]):
    """A request. The reference and the tests stay in this process: traces are written with the data of their task."""

    @property
    def key(self) -> str:
        """The id of the task, which is the same in every run."""
        return str(self.data.id)


class ColBenchTasksetConfig(vf.TasksetConfig):
    """The options of `sweetrl rollout`, as `--env.taskset.*`."""

    tasks: str = "mini-backend:test:100"
    """A file or a source, of any domain."""
    collaborator: str = "colleague"
    turn_limit: int = 10
    seed: int = 0


class ColBenchTaskset(vf.Taskset[ColBenchTask, ColBenchTasksetConfig]):
    """The tasks of a benchmark of ours."""

    def __init__(self, config: ColBenchTasksetConfig) -> None:
        super().__init__(config)
        rules = Rules(turn_limit=config.turn_limit)
        self.benchmark = Benchmark(config.tasks, config.collaborator, rules=rules, agent="verifiers")

    def load(self) -> Iterator[ColBenchTask]:
        """The part of each task that an agent may see."""
        for task in self.benchmark.tasks:
            data = vf.TaskData(id=task.id, prompt=task.request, system_prompt=self.benchmark.instructions)
            yield ColBenchTask(data, self.config.task)


class ChatHarness(vf.Harness[vf.HarnessConfig]):
    """An agent that only talks: one request for each turn, from this process.

    verifiers' own `null` does the same, and starts a program for each turn, which costs seconds.
    """

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(  # noqa: D102  verifiers' protocol
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,  # noqa: ARG002
        runtime: vf.Runtime,  # noqa: ARG002
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],  # noqa: ARG002
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        chat: list[Any] = [{"role": "system", "content": data.system_prompt}] if data.system_prompt else []
        prompt = [vf.UserMessage(content=data.prompt)] if isinstance(data.prompt, str) else data.prompt
        chat += [message_to_wire(each) for each in prompt]
        try:
            async with AsyncOpenAI(base_url=endpoint, api_key=secret, timeout=None) as client:
                await client.chat.completions.create(model=ctx.model, messages=chat)
        except OpenAIError as error:
            # A limit of verifiers ends the dialogue like this, too; it knows whether this was one.
            return vf.ProgramResult(1, "", str(error))
        return vf.ProgramResult(0, "", "")


class ColBenchEnvConfig(vf.EnvConfig):
    """One agent, on the harness that its package exports; one that only talks needs no container."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime={"type": "subprocess"})


class ColBenchEnv(vf.Env[ColBenchEnvConfig]):
    """The agent and the collaborator talk until the agent answers or the turns are used up."""

    taskset: ColBenchTaskset

    def __init__(self, config: ColBenchEnvConfig) -> None:
        super().__init__(config)
        if not isinstance(self.taskset, ColBenchTaskset):
            raise UsageError(
                f"this environment plays tasksets of sweetrl alone, and {config.taskset.id!r} is none"
            )
        if config.agent.harness is None and vf.default_agent_harness(config.taskset.id).id == "bash":
            # verifiers would run what the model writes on this machine.
            raise UsageError(
                f"{config.taskset.id}: export `ChatHarness`, too, or give --env.agent.harness.id"
            )
        self._attempts: defaultdict[str, count[int]] = defaultdict(count)
        """The next attempt at each task: rollouts of a task are attempts in the order in which they start."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """One dialogue. An agent that is stopped by a limit has broken off; a collaborator that fails is an error."""
        benchmark = self.taskset.benchmark
        attempt = next(self._attempts[task.data.id])
        dialogue = benchmark.open(task.data.id, seed=self.taskset.config.seed, attempt=attempt)
        async with agents.agent.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                await benchmark.say(dialogue, _output(interaction.trace, segment))
                if dialogue.conclusion is not None:
                    break
                segment = await interaction.turn(dialogue.history[-1].text)
            interaction.trace.info["episode"] = msgspec.to_builtins(dialogue.episode)

    async def finalize(self, task: vf.Task, episode: vf.Episode) -> None:  # noqa: ARG002  verifiers' hook
        """The scorer's reward. If the scorer breaks down, the episode has an error and no reward."""
        for trace in episode.traces:
            if not trace.ok:
                continue  # the agent's endpoint or program failed: nothing to score
            dialogue = _episode(trace)
            verdict = await self.taskset.benchmark.score(dialogue)
            trace.record_reward("reward", verdict.reward)
            trace.record_metric("success", float(verdict.success))
            trace.record_metric("turns", float(len(dialogue.turns)))

    async def stop(self) -> None:
        """Close the scorer."""
        await asyncio.to_thread(self.taskset.benchmark.close)


def episodes_of(traces: Iterable[vf.Trace]) -> Iterator[Episode]:
    """The dialogues in traces, for `sweetrl.credit`, `sweetrl.metrics` and the rest of this package."""
    return (_episode(trace) for trace in traces if "episode" in trace.info)


def write_credit(trace: vf.Trace, turn_credits: Iterable[TurnCredit], *, by_token: bool = False) -> None:
    """Write the advantage of each turn to all of its sampled tokens, as `advantages`, for a trainer.

    `turn_credits` may hold those of other dialogues, too. `by_token`, for critics that share the agent's tokenizer,
    weights the tokens of a turn by their share in its advantage, wherever their number agrees; their mean stays the
    turn's advantage. Turns on which the critic broke down stay without advantages, which is not zero.
    """
    episode = _episode(trace)
    credited = {each.turn: each for each in turn_credits if each.episode_id == episode.id}
    nodes = [node for node in trace.nodes if node.sampled]
    turns = range(len(episode.turns))
    if len(nodes) != len(turns):
        raise UsageError(f"{episode.id}: {len(turns)} turns cannot be told apart in {len(nodes)} model calls")
    if missing := [turn for turn in turns if turn not in credited]:
        raise UsageError(
            f"{episode.id}: no credit for turn {missing[0]}; credit the dialogues of these traces"
        )
    if not all(any(node.mask) for node in nodes):
        raise UsageError(
            f"{episode.id}: the trace has no tokens; verifiers' client of type `train` records them"
        )
    for turn, node in enumerate(nodes):
        node.advantages = _advantages(credited[turn], sum(node.mask), by_token=by_token)


def _advantages(credit: TurnCredit, sampled: int, *, by_token: bool) -> list[float] | None:
    if credit.advantage is None:
        return None
    tokens = credit.tokens or ()
    if by_token and len(tokens) == sampled:
        return [token.advantage * sampled for token in tokens]
    return [credit.advantage] * sampled


def _episode(trace: vf.Trace) -> Episode:
    if "episode" not in trace.info:
        raise UsageError(
            f"trace {trace.id} has no dialogue of sweetrl: it broke down, or is another environment's"
        )
    return msgspec.convert(trace.info["episode"], Episode)


def _output(trace: vf.Trace, segment: Any) -> str:
    said: str = segment.last_reply
    return Unfinished(said) if trace.calls[-1].finish_reason == "length" else said
