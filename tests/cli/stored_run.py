"""The records of a small run, and the commands that turn some of them into others."""

import random
from pathlib import Path

import msgspec

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.types import CandidateSet, Ending, Episode, Reply, Task, Turn, Verdict, digest

TASKS, ATTEMPTS = 3, 40

_ONE_BY_ONE = ("--concurrency", "1")
_ALL = ("--attempts", str(ATTEMPTS))
COMMANDS = {
    "rollout": (
        ("tasks",),
        ("--agent", "scripted:curious", "--collaborator", "scripted:unsure", *_ONE_BY_ONE, *_ALL),
    ),
    "score": (("tasks", "episodes"), ("--no-check", "--workers", "1")),
    "pairs": (("episodes", "verdicts"), ("--rule", "all")),
    "candidates": (("episodes",), ("--agent", "scripted:babble", "--n", "16", *_ONE_BY_ONE)),
    "rank": (("tasks", "episodes", "candidates"), ("--critic", "scripted:overlap", *_ONE_BY_ONE)),
    "turn-pairs": (("ranked", "episodes"), ("--pairs", "8")),
}
"""Which files of the run a command reads, and its options; their output is the same byte for byte every time."""


def command(name: str, folder: Path, output: Path) -> list[str]:
    """The words after `sweetrl`."""
    files, options = COMMANDS[name]
    given = [word for file in files for word in (f"--{file}", str(folder / f"{file}.jsonl"))]
    return [name, *given, *options, "-o", str(output), "--quiet"]


def written_by(name: str, output: Path) -> Path:
    """The record file of a command with `-o output`."""
    return output / "episodes.jsonl" if name == "rollout" else output


def write_run(folder: Path) -> Path:
    secret = BackendSecret("def secret1(word1=1): return word1", {"test1": "secret1()"})
    held = [_episode(task, attempt) for attempt in range(ATTEMPTS) for task in range(TASKS)]
    turns = [(each, turn) for each in held for turn in range(len(each.turns))]
    _write(
        folder / "tasks.jsonl",
        [Task(id=f"t{n}", domain="backend", request=f"Write {n}.", secret=secret) for n in range(TASKS)],
    )
    _write(folder / "episodes.jsonl", [*held])
    _write(folder / "verdicts.jsonl", [_verdict(each) for each in held])
    _write(folder / "candidates.jsonl", [_candidates(*each, ranked=False) for each in turns])
    _write(folder / "ranked.jsonl", [_candidates(*each, ranked=True) for each in turns])
    return folder


def _write(path: Path, records: list[object]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in records))


def _episode(task: int, attempt: int) -> Episode:
    asked = [Turn(f"What about {turn}?", f"What about {turn}?", Reply("So.")) for turn in range(4)]
    answer = f"def secret1(): return {attempt}"
    return Episode(
        task_id=f"t{task}",
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request=f"Write {task}.",
        turns=(*asked, Turn(f"I WANT TO ANSWER: {answer}", f"I WANT TO ANSWER: {answer}")),
        ending=Ending.ANSWERED,
        answer=answer,
    )


def _verdict(of: Episode) -> Verdict:
    return Verdict(
        task_id=of.task_id,
        episode_id=of.id,
        scorer="s/1",
        answer_digest=digest(of.answer),
        reward=of.attempt / ATTEMPTS,
        success=False,
    )


def _candidates(of: Episode, turn: int, *, ranked: bool) -> CandidateSet:
    draw = random.Random(f"{of.id} {turn}")
    outputs = tuple(f"secret{draw.randrange(1000)} word{draw.randrange(1000)}" for _ in range(8))
    advantages = tuple(draw.random() for _ in outputs) if ranked else None
    return CandidateSet(
        episode_id=of.id, task_id=of.task_id, turn=turn, outputs=outputs, advantages=advantages
    )
