"""inspect_ai: ColBench, the miniature and any domain of yours as an inspect task.

    inspect eval sweetrl/colbench --model openai/gpt-5 -T tasks=mini-backend:test:100 -T collaborator=colleague

The model under test is inspect's; the collaborator is one of ours, by its name on our command line. Each sample keeps
its dialogue as an `episode` in its metadata, so that a log can be scored again and read by `sweetrl` (`episodes_of`).
A collaborator or scorer that breaks down is an error of the sample, which inspect can retry, never a zero.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec

from sweetrl.dialogue.dialogue import Dialogue
from sweetrl.dialogue.rules import Rules
from sweetrl.errors import needs_extra
from sweetrl.integrations.benchmark import Benchmark
from sweetrl.types import Episode, Unfinished

with needs_extra("the inspect_ai task", "inspect"):
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import EvalLog
    from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver

_MESSAGES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
_METRICS = {"success": [mean(), stderr()], "reward": [mean(), stderr()]}


@task
def colbench(
    tasks: str = "mini-backend:test:100",
    collaborator: str = "colleague",
    turn_limit: int = 10,
    seed: int = 0,
) -> Task:
    """Dialogues between the model under test and a collaborator who knows what is wanted.

    `tasks` is a file or a source, `collaborator` a name, both as for `sweetrl rollout`; epochs are attempts.
    """
    benchmark = _benchmark(tasks, collaborator, turn_limit)
    samples = [Sample(id=each.id, input=each.request) for each in benchmark.tasks]
    return Task(
        dataset=MemoryDataset(samples, name=tasks),
        solver=collaborate(tasks, collaborator, turn_limit, seed),
        scorer=outcome(tasks, collaborator, turn_limit),
    )


@solver
def collaborate(tasks: str, collaborator: str, turn_limit: int = 10, seed: int = 0) -> Solver:
    """The model and the collaborator talk until the model answers or the turns are used up."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        benchmark = _benchmark(tasks, collaborator, turn_limit)
        dialogue = benchmark.open(str(state.sample_id), seed=seed, attempt=state.epoch - 1)
        _show(state, benchmark, dialogue)
        while dialogue.conclusion is None:
            state = await generate(state, tool_calls="none")
            await benchmark.say(dialogue, _output(state))
            _show(state, benchmark, dialogue)
        return state

    return solve


@scorer(metrics=_METRICS)  # type: ignore[arg-type]  # inspect's own docs pass such a dict
def outcome(tasks: str, collaborator: str, turn_limit: int = 10) -> Scorer:
    """The scorer of the tasks' domain: hidden tests for code, the rendered page for designs."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001  inspect's protocol
        episode = msgspec.convert(state.metadata["episode"], Episode)
        verdict = await _benchmark(tasks, collaborator, turn_limit).score(episode)
        return Score(
            value={"success": float(verdict.success), "reward": float(verdict.reward or 0.0)},
            answer=episode.answer,
            explanation=f"{episode.ending}; checks: {verdict.checks}",
        )

    return score


def episodes_of(log: EvalLog) -> Iterable[Episode]:
    """The dialogues in an inspect log, for `sweetrl.credit`, `sweetrl.metrics` and the rest of this package."""
    for sample in log.samples or ():
        if "episode" in sample.metadata:
            yield msgspec.convert(sample.metadata["episode"], Episode)


@cache
def _benchmark(tasks: str, collaborator: str, turn_limit: int) -> Benchmark:
    """One benchmark for each way to call the task; solver, scorer and samples share it."""
    return Benchmark(tasks, collaborator, rules=Rules(turn_limit=turn_limit), agent="inspect_ai")


def _output(state: TaskState) -> str:
    said = state.output.completion
    return Unfinished(said) if state.output.stop_reason == "max_tokens" else said


def _show(state: TaskState, benchmark: Benchmark, dialogue: Dialogue) -> None:
    """The messages that our own agents would see next; and the record so far, in case a limit ends it here."""
    state.messages = [_message(each) for each in benchmark.chat(dialogue)]
    state.metadata["episode"] = msgspec.to_builtins(dialogue.episode)


def _message(message: dict[str, str]) -> ChatMessage:
    made: Any = _MESSAGES[message["role"]]
    return made(content=message["content"])  # type: ignore[no-any-return]
