"""`sweetrl tasks write` with a model behind a real HTTP server."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Finished
from models.hostile_server import HostileServer, in_thread
from sweetrl.domains.sources import load_tasks

Sweetrl = Callable[..., Finished]
TOPICS = ["sums", "nothing", "clock", "copies"]


def written(function: str, calls: list[str]) -> str:
    return json.dumps({"function": function, "request": "Do the usual thing, please.", "calls": calls})


def reply(body: dict[str, Any], sample: int) -> str:
    """A writer whose drafts depend on the topic: sound ones, no JSON, a defective one, always the same one."""
    topic = re.search(r"make something of your own from it:\s+(\w+)", body["messages"][0]["content"])
    assert topic is not None
    number = body["seed"] % 1000
    match topic[1]:
        case "sums":
            lines = "\n".join(f"    total += x % {number + step} * {step}" for step in range(2, 9))
            source = f"def weigh(x):\n    total = {number}\n{lines}\n    return total"
            return written(source, [f"weigh({value})" for value in range(3, 13)])
        case "nothing":
            return "I would rather not."
        case "clock":
            source = "import time\ndef now(x):\n    return time.time_ns() + x"
            return written(source, [f"now({value})" for value in range(10)])
        case _:
            return written("def twice(x):\n    return x * 2", [f"twice({value})" for value in range(10)])


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with in_thread(HostileServer(reply=reply)) as running:
        yield running


@pytest.fixture
def command(server: HostileServer, tmp_path: Path) -> tuple[Any, ...]:
    topics = tmp_path / "topics.txt"
    topics.write_text("\n".join(TOPICS))
    return ("tasks", "write", "--model", f"openai:fake@{server.url}", "--topics", topics)


def drafts(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_only_sound_and_new_tasks_are_kept(
    sweetrl: Sweetrl, command: tuple[Any, ...], tmp_path: Path
) -> None:
    ended = sweetrl(*command, "--n", 4, "-o", tmp_path / "tasks.jsonl")

    assert ended.code == 0, ended.err
    tasks = load_tasks(tmp_path / "tasks.jsonl")
    assert len(tasks) == 4
    assert sum("twice" in task.secret.reference for task in tasks.values()) == 1  # type: ignore[attr-defined]
    rejected = [draft.get("rejected", "") for draft in drafts(tmp_path / "tasks.drafts.jsonl")]
    assert {reason.partition(":")[0] for reason in rejected if reason} == {
        "unreadable",
        "defective",
        "repeated",
    }
    assert "rejected:" in ended.err
    assert sweetrl("tasks", "check", tmp_path / "tasks.jsonl", "--json").code == 0


def test_the_same_command_with_more_tasks_goes_on(
    sweetrl: Sweetrl, command: tuple[Any, ...], tmp_path: Path
) -> None:
    assert sweetrl(*command, "--n", 8, "-o", tmp_path / "whole.jsonl").code == 0
    assert sweetrl(*command, "--n", 2, "-o", tmp_path / "parts.jsonl").code == 0
    assert sweetrl(*command, "--n", 8, "-o", tmp_path / "parts.jsonl").code == 0

    whole, parts = (list(load_tasks(tmp_path / f"{name}.jsonl").values()) for name in ("whole", "parts"))
    assert [task.secret for task in whole] == [task.secret for task in parts]


def test_tasks_of_a_given_file_are_not_written_again(
    sweetrl: Sweetrl, command: tuple[Any, ...], tmp_path: Path
) -> None:
    assert sweetrl(*command, "--n", 3, "-o", tmp_path / "test.jsonl").code == 0
    ended = sweetrl(*command, "--n", 3, "--against", tmp_path / "test.jsonl", "-o", tmp_path / "train.jsonl")

    assert ended.code == 0, ended.err
    first, second = (load_tasks(tmp_path / f"{name}.jsonl").values() for name in ("test", "train"))
    assert not {task.secret.reference for task in first} & {task.secret.reference for task in second}  # type: ignore[attr-defined]


def test_a_writer_that_gives_too_little_is_said_and_ends_with_1(
    sweetrl: Sweetrl, server: HostileServer, tmp_path: Path
) -> None:
    (tmp_path / "topics.txt").write_text("copies")
    model = ("--model", f"openai:fake@{server.url}", "--topics", tmp_path / "topics.txt")
    ended = sweetrl("tasks", "write", *model, "--n", 2, "-o", tmp_path / "tasks.jsonl")

    assert ended.code == 1
    assert "only 1 of 2 tasks were kept from 20 drafts" in ended.err
    assert len(load_tasks(tmp_path / "tasks.jsonl")) == 1


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("--from", "not json", "is not JSON"),
        ("--from", '{"other": 1}', "has no text in"),
        ("--topics", "\n\n", "has nothing to start from"),
    ],
)
def test_a_wrong_file_is_one_line(
    sweetrl: Sweetrl, tmp_path: Path, name: str, content: str, complaint: str
) -> None:
    (tmp_path / "given").write_text(content)
    ended = sweetrl(
        "tasks", "write", "--model", "mini", name, tmp_path / "given", "-o", tmp_path / "tasks.jsonl"
    )

    assert ended.code == 2
    assert complaint in ended.err
    assert not (tmp_path / "tasks.jsonl").exists()


def test_an_output_that_is_there_is_not_replaced(
    sweetrl: Sweetrl, command: tuple[Any, ...], tmp_path: Path
) -> None:
    (tmp_path / "tasks.jsonl").write_text("mine")

    assert sweetrl(*command, "-o", tmp_path / "tasks.jsonl").code == 2
    assert (tmp_path / "tasks.jsonl").read_text() == "mine"
