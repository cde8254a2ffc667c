from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from conftest import Finished
from sweetrl.domains.backend.mini_backend import make_tasks
from sweetrl.types import EpisodePair

Sweetrl = Callable[..., Finished]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    names = [task.id for task in make_tasks("train", 3, 7)]
    path = tmp_path / "pairs.jsonl"
    lines = [
        EpisodePair(task_id=name, chosen=f"{name}#0", rejected=f"{name}#1", margin=1.0) for name in names
    ]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path


def test_only_records_on_the_tasks_are_copied_as_they_are(sweetrl: Sweetrl, pairs: Path) -> None:
    output = pairs.parent / "part"
    for _ in range(2):
        ended = sweetrl("select", pairs, "--tasks", "mini-backend:train:2:7", "-o", output)
        assert ended.code == 0, ended.err
    assert (output / "pairs.jsonl").read_bytes() == b"".join(pairs.read_bytes().splitlines(keepends=True)[:2])


def test_files_without_a_record_on_the_tasks_are_an_error(sweetrl: Sweetrl, pairs: Path) -> None:
    ended = sweetrl("select", pairs, "--tasks", "mini-backend:test:2:7", "-o", pairs.parent / "part")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "has no record on these tasks" in ended.err


@pytest.mark.parametrize(
    ("line", "said"),
    [(b"{}\n", "task_id"), (b"nonsense\n", "not valid JSON"), (b'{"task_id": 3}\n', "task_id")],
)
def test_lines_that_are_on_no_task_are_named(sweetrl: Sweetrl, pairs: Path, line: bytes, said: str) -> None:
    pairs.write_bytes(pairs.read_bytes() + line)
    ended = sweetrl("select", pairs, "--tasks", "mini-backend:train:2:7", "-o", pairs.parent / "part")
    assert ended.code == 2
    assert "pairs.jsonl:4" in ended.err
    assert said in ended.err


def test_a_folder_is_not_selected_into_itself(sweetrl: Sweetrl, pairs: Path) -> None:
    before = pairs.read_bytes()
    ended = sweetrl("select", pairs, "--tasks", "mini-backend:train:2:7", "-o", pairs.parent)
    assert ended.code == 2
    assert "choose another folder" in ended.err
    assert pairs.read_bytes() == before


def test_two_files_of_one_name_are_refused(sweetrl: Sweetrl, pairs: Path) -> None:
    other = pairs.parent / "other" / "pairs.jsonl"
    other.parent.mkdir()
    other.write_bytes(pairs.read_bytes())
    ended = sweetrl("select", pairs, other, "--tasks", "mini-backend:train:2:7", "-o", pairs.parent / "part")
    assert ended.code == 2
    assert "same name" in ended.err
