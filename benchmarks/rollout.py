"""How well the rollout engine uses its slots: against lock-step engines and against the ideal schedule.

500 dialogues of 3 to 10 turns, 100 requests at a time, over a real HTTP server on loopback whose every reply
takes a lognormal time fixed by the request's seed: all engines, and the simulated ideal, meet the same
latencies. Also: CPU per turn in the driver, and memory with 2,000 open dialogues. Prints the results and
writes them to benchmarks/results/rollout.json.
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
from collections.abc import Awaitable, Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from sweetrl.dialogue import rules as game
from sweetrl.dialogue.agents import ModelAgent, ScriptedAgent
from sweetrl.dialogue.collaborators import ModelCollaborator, ScriptedCollaborator
from sweetrl.dialogue.rollout import Progress, roll_out
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.models import EndpointOptions, Endpoints, open_model
from sweetrl.protocols import Agent, Collaborator
from sweetrl.seeds import derive_seed
from sweetrl.types import Episode, Message, Role, Task

DIALOGUES = 500
SLOTS = 100
MEDIAN_SECONDS = 0.1
SIGMA = 1.0
SEED = 1
TURN_LIMIT = Rules().turn_limit
RESULTS = Path(__file__).parent / "results" / "rollout.json"

TASKS = [
    Task(
        id=f"task-{number}",
        domain="backend",
        request="Write a function that does something. " * 10,
        secret=BackendSecret(reference="def f(x):\n    return x\n" * 10, tests={"test1": "f(1)"}),
    )
    for number in range(DIALOGUES)
]
THOUGHT = "The request says nothing about empty input, so that is what has to be asked next. " * 10
REPLY = "It should return nothing in that case, and otherwise keep the order of the input. " * 4


def latency(seed: int) -> float:
    """How many seconds the reply with this seed takes."""
    return random.Random(seed).lognormvariate(math.log(MEDIAN_SECONDS), SIGMA)


def answers(seed: int, turn: int) -> bool:
    """Whether the agent answers at this turn: from the third on, three times in ten."""
    return turn >= 2 and derive_seed(seed, "answers") % 10 < 3


def utterance(turn: int, seed: int) -> str:
    """What the agent puts out."""
    said = f"{game.ANSWER_MARKER} def f(x): ..." if answers(seed, turn) else f"Question {seed}?"
    return f"{THOUGHT}\nOUTPUT: {said}"


# ---------------------------------------------------------------- the server


async def serve(port_known: Connection) -> None:
    """An OpenAI-compatible server that keeps every request waiting for its latency."""
    server = await asyncio.start_server(_connection, "127.0.0.1", 0, backlog=1024)
    port_known.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            body = json.loads(await reader.readexactly(length))
            await asyncio.sleep(latency(body["seed"]))
            writer.write(_response(body["messages"], body["seed"]))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _response(messages: list[dict[str, str]], seed: int) -> bytes:
    of_agent = messages[0]["role"] == Role.SYSTEM
    text = utterance(len(messages) // 2 - 1, seed) if of_agent else REPLY
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 100, "completion_tokens": 100, "total_tokens": 200}
    content = json.dumps({"id": "x", "choices": [choice], "usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def serve_in_process(port_known: Connection) -> None:
    """The server, as a process of its own."""
    asyncio.run(serve(port_known))


# ---------------------------------------------------------------- engines

Engine = Callable[[Agent, Collaborator], Awaitable[list[list[str]]]]
"""Holds all dialogues; gives the transcript of each, in order of the tasks' ids."""


async def independent(agent: Agent, collaborator: Collaborator) -> list[list[str]]:
    """Our engine."""
    stream = roll_out(TASKS, agent, collaborator, concurrency=SLOTS, seed=SEED)
    return sorted([transcript(episode) async for episode in stream])


def transcript(episode: Episode) -> list[str]:
    """What makes two runs of one dialogue comparable."""
    return [episode.task_id, *(turn.output for turn in episode.turns)]


async def lock_step_in_batches(agent: Agent, collaborator: Collaborator) -> list[list[str]]:
    """As many dialogues as there are slots; the next batch starts when the last dialogue has ended."""
    batches = [TASKS[start : start + SLOTS] for start in range(0, DIALOGUES, SLOTS)]
    return sorted([each for batch in batches for each in await lock_step(batch, agent, collaborator)])


async def lock_step_all_at_once(agent: Agent, collaborator: Collaborator) -> list[list[str]]:
    """All dialogues in one batch, their requests queueing for the slots."""
    return sorted(await lock_step(TASKS, agent, collaborator))


async def lock_step(tasks: Sequence[Task], agent: Agent, collaborator: Collaborator) -> list[list[str]]:
    """The usual engine: at each step everyone waits for the slowest."""
    slots = asyncio.Semaphore(SLOTS)
    histories = {task.id: [Message(Role.USER, task.request)] for task in tasks}
    transcripts = {task.id: [task.id] for task in tasks}

    async def speak(task: Task, turn: int) -> None:
        async with slots:
            seed = derive_seed(SEED, task.id, 0, turn, "agent")
            [output] = await agent.sample(histories[task.id], n=1, seed=seed)
        transcripts[task.id].append(output)
        histories[task.id].append(Message(Role.ASSISTANT, game.spoken(output)))

    async def listen(task: Task, turn: int) -> None:
        async with slots:
            seed = derive_seed(SEED, task.id, 0, turn, "collaborator")
            reply = await collaborator.reply(task, histories[task.id], seed=seed)
        histories[task.id].append(Message(Role.USER, game.cut_reply(reply.text, BACKEND)))

    active = list(tasks)
    for turn in range(TURN_LIMIT):
        await asyncio.gather(*(speak(task, turn) for task in active))
        active = [task for task in active if game.marked_answer(histories[task.id][-1].text) is None]
        if turn + 1 < TURN_LIMIT:
            await asyncio.gather(*(listen(task, turn) for task in active))
    return list(transcripts.values())


async def with_models(engine: Engine, port: int) -> tuple[float, float, list[list[str]]]:
    """Wall seconds, CPU seconds of this process, and the transcripts of an engine over HTTP."""
    endpoints = Endpoints(EndpointOptions(start_concurrency=SLOTS, max_concurrency=SLOTS))
    spec = f"openai:slow@http://127.0.0.1:{port}/v1"
    speaker, listener = (open_model(spec, endpoints=endpoints) for _ in range(2))
    agent = ModelAgent(speaker, BACKEND.prompts.agent)
    collaborator = ModelCollaborator(listener, BACKEND.prompts.collaborator, domain=BACKEND)
    wall, cpu = time.perf_counter(), time.process_time()
    transcripts = await engine(agent, collaborator)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    await speaker.close()
    await listener.close()
    return wall, cpu, transcripts


# ---------------------------------------------------------------- the ideal


def latencies(task: Task) -> Iterator[float]:
    """The times that one dialogue waits, one after the other."""
    for turn in range(TURN_LIMIT):
        seed = derive_seed(SEED, task.id, 0, turn, "agent")
        yield latency(seed)
        if answers(seed, turn) or turn + 1 == TURN_LIMIT:
            return
        yield latency(derive_seed(SEED, task.id, 0, turn, "collaborator"))


def ideal_seconds() -> float:
    """The time of an engine without any overhead that holds the dialogues in this order."""
    slots = [0.0] * SLOTS
    for task in TASKS:
        heapq.heapreplace(slots, slots[0] + sum(latencies(task)))
    return max(slots)


# ---------------------------------------------------------------- the driver alone


def driver_cpu_ms_per_turn() -> float:
    """CPU of the driver per turn with 500 open dialogues and players that take no time."""

    async def go() -> tuple[float, int]:
        progress = Progress()
        agent = YieldingAgent(lambda history, seed: utterance(len(history) // 2, seed))
        collaborator = ScriptedCollaborator([REPLY] * TURN_LIMIT)
        start = time.process_time()
        async for _ in roll_out(TASKS, agent, collaborator, attempts=4, concurrency=500, progress=progress):
            pass
        return time.process_time() - start, progress.turns

    seconds, turns = asyncio.run(go())
    return 1000 * seconds / turns


class YieldingAgent(ScriptedAgent):
    """Lets the other dialogues go on before it speaks."""

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """The line for this turn."""
        await asyncio.sleep(0)
        return await super().sample(history, n=n, seed=seed)


class PatientAgent(ScriptedAgent):
    """Says long things, and waits with the last one until everyone has come that far."""

    def __init__(self, everyone: int) -> None:
        # A text of its own for each turn, as a model would make.
        super().__init__(lambda _, seed: f"{THOUGHT}{seed}\nOUTPUT: {THOUGHT}{seed}")
        self._barrier = asyncio.Barrier(everyone)

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """The line for this turn."""
        if len(history) == 2 * TURN_LIMIT - 1:
            await self._barrier.wait()
        return await super().sample(history, n=n, seed=seed)


def peak_mb_with_open_dialogues(count: int) -> float:
    """The largest resident size of a process in which `count` dialogues reach their tenth turn together."""

    async def go() -> None:
        collaborator = ScriptedCollaborator(lambda _task, _history, seed: f"{seed} {REPLY}")
        stream = roll_out(TASKS, PatientAgent(count), collaborator, attempts=4, concurrency=count)
        assert len([episode async for episode in stream]) == count

    asyncio.run(go())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ---------------------------------------------------------------- results


def compare_engines(port: int) -> dict[str, object]:
    """All engines on one server, one after the other."""
    ours, cpu, held = asyncio.run(with_models(independent, port))
    batches, _, in_batches = asyncio.run(with_models(lock_step_in_batches, port))
    at_once, _, all_at_once = asyncio.run(with_models(lock_step_all_at_once, port))
    assert held == in_batches == all_at_once, "the engines must hold the same dialogues"
    ideal = ideal_seconds()
    turns = sum(len(each) - 1 for each in held)
    return {
        "dialogues": DIALOGUES,
        "slots": SLOTS,
        "turns": turns,
        "reply_seconds": {"distribution": "lognormal", "median": MEDIAN_SECONDS, "sigma": SIGMA},
        "wall_seconds": {
            "sweetrl": round(ours, 2),
            "ideal": round(ideal, 2),
            "lock_step_in_batches": round(batches, 2),
            "lock_step_all_at_once": round(at_once, 2),
        },
        "times_faster_than_lock_step_in_batches": round(batches / ours, 2),
        "times_faster_than_lock_step_all_at_once": round(at_once / ours, 2),
        "percent_over_ideal": round(100 * (ours / ideal - 1), 1),
        "cpu_ms_per_turn_with_http_client": round(1000 * cpu / turns, 3),
    }


def main() -> None:
    """Measure, print, store."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(1) as pool:
        megabytes = pool.apply(peak_mb_with_open_dialogues, (2000,))
    here, there = spawn.Pipe()
    server = spawn.Process(target=serve_in_process, args=(there,), daemon=True)
    server.start()
    try:
        results = compare_engines(here.recv())
    finally:
        server.terminate()
        server.join()
    results["driver_cpu_ms_per_turn"] = round(driver_cpu_ms_per_turn(), 3)
    results["peak_mb_with_2000_open_dialogues"] = round(megabytes, 1)
    results["python"] = platform.python_version()
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
