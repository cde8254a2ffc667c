"""How well the rollout engine uses its slots: against a lock-step engine and against the ideal schedule.

500 dialogues of 3 to 10 turns, 100 open at a time; every reply takes a lognormal time that its seed fixes, so
that all engines and the simulated ideal see the same latencies. Also: CPU per turn in the driver, and memory
with 2,000 open dialogues. `python benchmarks/rollout.py` prints a table and writes benchmarks/results/rollout.json.
"""

import asyncio
import heapq
import json
import math
import multiprocessing
import platform
import random
import resource
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sweetrl.dialogue import rules as game
from sweetrl.dialogue.rollout import Progress, roll_out
from sweetrl.dialogue.rules import Rules
from sweetrl.seeds import derive_seed
from sweetrl.types import BackendSecret, Episode, Kind, Message, Reply, Role, Task

DIALOGUES = 500
SLOTS = 100
MEDIAN_SECONDS = 0.08
SIGMA = 1.0
SEED = 1
OUTPUT = Path(__file__).parent / "results" / "rollout.json"

TASKS = [
    Task(
        id=f"task-{number}",
        kind=Kind.BACKEND,
        request="Write a function that does something. " * 10,
        secret=BackendSecret(reference="def f(): ...", tests={"test1": "f()"}),
    )
    for number in range(DIALOGUES)
]
THOUGHT = "The request says nothing about empty input, so that is what has to be asked next. " * 15
REPLY = "It should return nothing in that case, and otherwise keep the order of the input. " * 8


def latency(seed: int) -> float:
    """How long the reply with this seed takes."""
    return random.Random(seed).lognormvariate(math.log(MEDIAN_SECONDS), SIGMA)


def answers(seed: int, turn: int) -> bool:
    """Whether the agent answers at this turn: from the third on, three times in ten."""
    return turn >= 2 and derive_seed(seed, "answers") % 10 < 3


class SlowAgent:
    """Replies after the latency of its seed, if there is any."""

    name = "slow"

    def __init__(self, *, scale: float = 1.0) -> None:
        self._scale = scale

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """A thought of a usual length, then a question or the answer."""
        await asyncio.sleep(self._scale * latency(seed))
        turn = len(history) // 2
        said = f"{game.ANSWER_MARKER} def f(): pass" if answers(seed, turn) else f"Question {turn}?"
        return [f"{THOUGHT}\nOUTPUT: {said}"] * n


class SlowCollaborator:
    """Replies after the latency of its seed."""

    name = "slow"

    def __init__(self, *, scale: float = 1.0) -> None:
        self._scale = scale

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        """A reply of a usual length."""
        await asyncio.sleep(self._scale * latency(seed))
        return Reply(REPLY)


# ---------------------------------------------------------------- engines


async def independent(tasks: Sequence[Task]) -> list[list[str]]:
    """Our engine."""
    stream = roll_out(tasks, SlowAgent(), SlowCollaborator(), concurrency=SLOTS, seed=SEED)
    return sorted([outputs(episode) async for episode in stream])


def outputs(episode: Episode) -> list[str]:
    """What makes two runs of one dialogue comparable."""
    return [episode.task_id, *(turn.output for turn in episode.turns)]


async def lock_step(tasks: Sequence[Task], *, batch: int) -> list[list[str]]:
    """The usual engine: a batch of dialogues, in which everyone waits for the slowest at each step."""
    slots = asyncio.Semaphore(SLOTS)
    transcripts: list[list[str]] = []
    for start in range(0, len(tasks), batch):
        transcripts += await _lock_step_batch(tasks[start : start + batch], slots)
    return sorted(transcripts)


async def _lock_step_batch(tasks: Sequence[Task], slots: asyncio.Semaphore) -> list[list[str]]:
    agent, collaborator = SlowAgent(), SlowCollaborator()
    histories = {task.id: [Message(Role.USER, task.request)] for task in tasks}
    transcripts = {task.id: [task.id] for task in tasks}
    active = list(tasks)
    for turn in range(Rules().turn_limit):

        async def speak(task: Task, turn: int = turn) -> None:
            async with slots:
                seed = derive_seed(SEED, task.id, 0, turn, "agent")
                [output] = await agent.sample(histories[task.id], n=1, seed=seed)
            transcripts[task.id].append(output)
            histories[task.id].append(Message(Role.ASSISTANT, game.spoken(output)))

        async def listen(task: Task, turn: int = turn) -> None:
            async with slots:
                seed = derive_seed(SEED, task.id, 0, turn, "collaborator")
                reply = await collaborator.reply(task, histories[task.id], seed=seed)
            histories[task.id].append(Message(Role.USER, game.cut_reply(reply.text, task.kind)))

        await asyncio.gather(*(speak(task) for task in active))
        active = [task for task in active if game.marked_answer(histories[task.id][-1].text) is None]
        if turn + 1 < Rules().turn_limit:
            await asyncio.gather(*(listen(task) for task in active))
    return list(transcripts.values())


# ---------------------------------------------------------------- the ideal


def latencies(task: Task) -> Iterator[float]:
    """The times that one dialogue waits, one after the other."""
    limit = Rules().turn_limit
    for turn in range(limit):
        seed = derive_seed(SEED, task.id, 0, turn, "agent")
        yield latency(seed)
        if answers(seed, turn) or turn + 1 == limit:
            return
        yield latency(derive_seed(SEED, task.id, 0, turn, "collaborator"))


def ideal_seconds(tasks: Sequence[Task]) -> float:
    """The time that an engine without any overhead takes to hold the dialogues in this order."""
    slots = [0.0] * SLOTS
    for task in tasks:
        heapq.heapreplace(slots, slots[0] + sum(latencies(task)))
    return max(slots)


# ---------------------------------------------------------------- measurements


def timed(engine: "asyncio.Future[object]") -> tuple[float, float, object]:
    """Wall seconds, CPU seconds and the result of a coroutine."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = asyncio.run(engine)
    return time.perf_counter() - wall, time.process_time() - cpu, result


def cpu_per_turn_ms() -> float:
    """CPU of the driver per turn, at 500 open dialogues whose replies take next to no time."""

    async def go() -> tuple[float, int]:
        progress = Progress()
        tasks = [msg_task for msg_task in TASKS for _ in range(4)]
        agent, collaborator = SlowAgent(scale=1e-3), SlowCollaborator(scale=1e-3)
        start = time.process_time()
        async for _ in roll_out(tasks, agent, collaborator, concurrency=500, progress=progress):
            pass
        return time.process_time() - start, progress.turns

    seconds, turns = asyncio.run(go())
    return 1000 * seconds / turns


def memory_with_open_dialogues_mb(count: int) -> float:
    """The largest resident size of a process that holds `count` dialogues open up to their tenth turn."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_hold_open, (count,))


def _hold_open(count: int) -> float:
    async def go() -> None:
        arrived = 0
        everyone = asyncio.Event()

        class Patient(SlowAgent):
            async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
                nonlocal arrived
                if len(history) == 2 * Rules().turn_limit - 1:
                    arrived += 1
                    if arrived == count:
                        everyone.set()
                    await everyone.wait()
                # A text of its own for each turn, as a model would make.
                return [f"{THOUGHT}{seed}\nOUTPUT: {THOUGHT}{seed}"]

        class Talkative(SlowCollaborator):
            async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
                return Reply(f"{seed}{REPLY}")

        progress = Progress()
        tasks = [TASKS[number % DIALOGUES] for number in range(count)]
        async for _ in roll_out(tasks, Patient(), Talkative(), concurrency=count, progress=progress):
            assert arrived == count
        assert progress.turns == count * Rules().turn_limit

    asyncio.run(go())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure() -> dict[str, object]:
    """Everything, in one run."""
    ours, ours_cpu, held = timed(independent(TASKS))
    batched, _, held_batched = timed(lock_step(TASKS, batch=SLOTS))
    wide, _, held_wide = timed(lock_step(TASKS, batch=DIALOGUES))
    assert held == held_batched == held_wide, "the engines must hold the same dialogues"
    ideal = ideal_seconds(TASKS)
    turns = sum(len(each) - 1 for each in held)
    return {
        "dialogues": DIALOGUES,
        "slots": SLOTS,
        "turns": turns,
        "reply_seconds": {"distribution": "lognormal", "median": MEDIAN_SECONDS, "sigma": SIGMA},
        "wall_seconds": {
            "sweetrl": round(ours, 3),
            "ideal": round(ideal, 3),
            "lock_step_in_batches": round(batched, 3),
            "lock_step_all_at_once": round(wide, 3),
        },
        "times_faster_than_lock_step_in_batches": round(batched / ours, 2),
        "times_faster_than_lock_step_all_at_once": round(wide / ours, 2),
        "percent_over_ideal": round(100 * (ours / ideal - 1), 1),
        "driver_cpu_ms_per_turn": round(cpu_per_turn_ms(), 3),
        "driver_cpu_ms_per_turn_while_waiting": round(1000 * ours_cpu / turns, 3),
        "mb_with_2000_open_dialogues": round(memory_with_open_dialogues_mb(2000), 1),
        "python": platform.python_version(),
    }


def main() -> None:
    """Measure, print, store."""
    result = measure()
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
