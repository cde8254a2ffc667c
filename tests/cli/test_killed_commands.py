"""`pairs`, `candidates`, `rank` and `turn-pairs` killed at many moments: the file in the end is that of a quiet run."""

import random
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from sweetrl.types import (
    BackendSecret,
    CandidateSet,
    Ending,
    Episode,
    Kind,
    Reply,
    Task,
    Turn,
    Verdict,
    digest,
)

TASKS, ATTEMPTS = 3, 40


def write(path: Path, records: list[object]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in records))


def episode(task: int, attempt: int) -> Episode:
    asked = [Turn(f"What about {turn}?", f"What about {turn}?", Reply("So.")) for turn in range(4)]
    return Episode(
        task_id=f"t{task}",
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request=f"Write {task}.",
        turns=(*asked, Turn(f"I WANT TO ANSWER: {attempt}", f"I WANT TO ANSWER: {attempt}")),
        ending=Ending.ANSWERED,
        answer=str(attempt),
    )


def verdict(of: Episode) -> Verdict:
    return Verdict(
        task_id=of.task_id,
        episode_id=of.id,
        scorer="s/1",
        answer_digest=digest(of.answer),
        reward=of.attempt / ATTEMPTS,
        success=False,
    )


def candidates(of: Episode, turn: int, *, ranked: bool) -> CandidateSet:
    draw = random.Random(f"{of.id} {turn}")
    outputs = tuple(f"secret{draw.randrange(1000)} word{draw.randrange(1000)}" for _ in range(8))
    advantages = tuple(draw.random() for _ in outputs) if ranked else None
    return CandidateSet(
        episode_id=of.id, task_id=of.task_id, turn=turn, outputs=outputs, advantages=advantages
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("records")
    secret = BackendSecret("def secret1(): return word1", {"test1": "f()"})
    held = [episode(task, attempt) for attempt in range(ATTEMPTS) for task in range(TASKS)]
    turns = [(each, turn) for each in held for turn in range(len(each.turns))]
    write(
        made / "tasks.jsonl",
        [Task(id=f"t{n}", kind=Kind.BACKEND, request=f"Write {n}.", secret=secret) for n in range(TASKS)],
    )
    write(made / "episodes.jsonl", [*held])
    write(made / "verdicts.jsonl", [verdict(each) for each in held])
    write(made / "candidates.jsonl", [candidates(*each, ranked=False) for each in turns])
    write(made / "ranked.jsonl", [candidates(*each, ranked=True) for each in turns])
    return made


COMMANDS = {
    "pairs": (("episodes", "verdicts"), ("--rule", "all")),
    "candidates": (("episodes",), ("--agent", "scripted:babble", "--n", "16", "--concurrency", "1")),
    "rank": (("tasks", "episodes", "candidates"), ("--critic", "scripted:overlap", "--concurrency", "1")),
    "turn-pairs": (("ranked", "episodes"), ("--pairs", "8")),
}


def command(name: str, folder: Path, output: Path) -> list[str]:
    files, options = COMMANDS[name]
    given = [word for file in files for word in (f"--{file}", str(folder / f"{file}.jsonl"))]
    return [sys.executable, "-m", "sweetrl", name, *given, *options, "-o", str(output), "--quiet"]


def killed_at(size: int, words: list[str], output: Path) -> bool:
    """Whether the command could be killed once its file had so many bytes."""
    process = subprocess.Popen(words)
    while process.poll() is None:
        if output.exists() and output.stat().st_size >= size:
            process.kill()
            break
        time.sleep(0.001)
    return process.wait() != 0


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_many_moments_and_resumed_it_equals_an_uninterrupted_run(
    name: str, folder: Path, tmp_path: Path
) -> None:
    subprocess.run(command(name, folder, tmp_path / "whole.jsonl"), check=True)
    whole = (tmp_path / "whole.jsonl").read_bytes()
    output = tmp_path / "parts.jsonl"
    sizes = [0, *(len(whole) * part // 5 for part in range(1, 5))]
    killed = [killed_at(size, command(name, folder, output), output) for size in sizes]
    assert sum(killed) >= 2
    subprocess.run(command(name, folder, output), check=True)
    assert output.read_bytes() == whole
    cards = [msgspec.json.decode((tmp_path / f"{each}.run.json").read_bytes()) for each in ("whole", "parts")]
    assert cards[0]["sha256"] == cards[1]["sha256"]
    assert [each["records"] for each in cards] == [whole.count(b"\n")] * 2
