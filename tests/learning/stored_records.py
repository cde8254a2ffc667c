"""Records of a few made-up dialogues, as objects and as files, and a tiny model to train on them."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.types import Ending, Episode, EpisodePair, Reply, Task, Turn, TurnPair, Verdict, digest


def task(number: int) -> Task:
    secret = BackendSecret(reference=f"def f():\n    return {number}", tests={"one": "f()"})
    return Task(id=f"t{number}", domain="backend", request=request(number), secret=secret)


def request(number: int) -> str:
    return "Please write a Python function. " + "It is about prices. " * (number % 4)


def episode(number: int, attempt: int) -> Episode:
    """Two or three turns; the odd attempts think before they speak, so that later turns see less of them."""
    turns = []
    for turn in range(1 + number % 2):
        said = f"Question {turn} of {number}?" + " Please." * attempt
        thought = "Hm. OUTPUT: " if attempt % 2 else ""
        turns.append(Turn(thought + said, said, Reply("It should give zero. " * (number % 3 + 1))))
    answer = f"I WANT TO ANSWER: def f(): return {number + attempt}"
    turns.append(Turn(answer, answer))
    return Episode(
        task_id=f"t{number}",
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request=request(number),
        turns=tuple(turns),
        ending=Ending.ANSWERED,
        answer=f"def f(): return {number + attempt}",
    )


def verdict(played: Episode) -> Verdict:
    """The first attempt at a task succeeds."""
    success = played.attempt == 0
    return Verdict(
        task_id=played.task_id,
        episode_id=played.id,
        scorer="s/1",
        answer_digest=digest(played.answer),
        reward=float(success),
        success=success,
    )


def turn_pair(played: Episode, turn: int) -> TurnPair:
    return TurnPair(
        episode_id=played.id,
        task_id=played.task_id,
        turn=turn,
        history=played.history(turn),
        chosen=played.turns[turn].output,
        rejected="I do not know what to say about " + played.task_id,
        margin=1.0,
    )


@dataclass
class Records:
    """Tasks, two dialogues on each, and all that is made of them."""

    count: int = 6
    tasks: dict[str, Task] = field(init=False)
    episodes: dict[str, Episode] = field(init=False)

    def __post_init__(self) -> None:
        self.tasks = {each.id: each for each in map(task, range(self.count))}
        played = (episode(number, attempt) for number in range(self.count) for attempt in range(2))
        self.episodes = {each.id: each for each in played}

    @cached_property
    def verdicts(self) -> list[Verdict]:
        return [verdict(each) for each in self.episodes.values()]

    @cached_property
    def pairs(self) -> list[EpisodePair]:
        return [
            EpisodePair(task_id=id_, chosen=f"{id_}#0", rejected=f"{id_}#1", margin=1.0) for id_ in self.tasks
        ]

    @cached_property
    def turn_pairs(self) -> list[TurnPair]:
        return [turn_pair(each, turn) for each in self.episodes.values() for turn in range(len(each.turns))]

    def write(self, folder: Path) -> "Files":
        """The same as files."""
        files = Files(folder)
        _write(files.tasks, self.tasks.values())
        _write(files.episodes, self.episodes.values())
        _write(files.verdicts, self.verdicts)
        _write(files.pairs, self.pairs)
        _write(files.turn_pairs, self.turn_pairs)
        files.prompt.write_text("Be kind.")
        return files


@dataclass(frozen=True)
class Files:
    folder: Path

    def __getattr__(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    @property
    def prompt(self) -> Path:
        """Of the agent: short, because the tiny tokenizer makes a token of nearly every letter."""
        return self.folder / "prompt.txt"

    def options(self, method: str) -> list[object]:
        """What `sweetrl train METHOD` is given to learn from."""
        files = {
            "rft": {"episodes": self.episodes, "verdicts": self.verdicts},
            "dpo": {"episodes": self.episodes, "pairs": self.pairs},
            "critic": {"episodes": self.episodes, "pairs": self.pairs, "tasks": self.tasks},
            "policy": {"pairs": self.turn_pairs},
            "kto": {"pairs": self.turn_pairs},
        }[method] | {"agent-prompt": self.prompt}
        return [word for name, path in files.items() for word in (f"--{name}", path)]


def _write(path: Path, records: Any) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in records))
