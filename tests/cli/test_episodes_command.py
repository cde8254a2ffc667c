import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sweetrl.domains.sources import read_tasks
from sweetrl.types import Ending, Episode, Failure, Turn, Verdict

TASKS = [
    {
        "problem_description": f"Multiply by {factor}. The signature is: def f(x)",
        "ground_truth": f"def f(x):\n    return {factor} * x",
        "test_cases": {"test1": "f(1)"},
    }
    for factor in (2, 3)
]


def dialogue(task: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "task": task,
        "dialogue_history": [
            {"role": "user", "content": task["problem_description"]},
            {
                "role": "assistant",
                "content": "By how much?",
                "input": "prompt",
                "output": "Hm OUTPUT: By how much?",
            },
            {"role": "user", "content": "I don't know."},
            {
                "role": "assistant",
                "content": "I WANT TO ANSWER: x",
                "input": "p",
                "output": "I WANT TO ANSWER: x",
            },
        ],
        "answer": "x",
        **more,
    }


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Two blocks of two tasks."""
    lines = [dialogue(task, reward=reward) for reward in (0.5, 1.0) for task in TASKS]
    return write(tmp_path / "published.jsonl", lines)


def records(path: Path, kind: type) -> list[Any]:
    return [msgspec.json.decode(line, type=kind) for line in path.read_bytes().splitlines()]


# ---------------------------------------------------------------- import and export


def test_import_writes_episodes_tasks_and_the_rewards_as_verdicts(sweetrl, tmp_path, published) -> None:
    done = sweetrl("episodes", "import", published, "-o", tmp_path / "run")
    assert (done.code, done.err) == (0, f"{tmp_path / 'run'}: 4 episodes, 2 tasks, 4 verdicts\n")
    episodes = records(tmp_path / "run/episodes.jsonl", Episode)
    tasks = list(read_tasks(tmp_path / "run/tasks.jsonl"))
    verdicts = records(tmp_path / "run/verdicts.jsonl", Verdict)
    assert [episode.task_id for episode in episodes] == [task.id for task in tasks] * 2
    assert [episode.attempt for episode in episodes] == [0, 0, 1, 1]
    assert [(verdict.reward, verdict.success) for verdict in verdicts] == [(0.5, False)] * 2 + [
        (1.0, True)
    ] * 2
    assert [verdict.episode_id for verdict in verdicts] == [episode.id for episode in episodes]


def test_what_was_imported_is_exported_byte_for_byte(sweetrl, tmp_path, published) -> None:
    run, out = tmp_path / "run", tmp_path / "out.jsonl"
    sweetrl("episodes", "import", published, "-o", run)
    done = sweetrl("episodes", "export", run / "episodes.jsonl", "--tasks", run / "tasks.jsonl", "-o", out)
    assert (done.code, done.err) == (0, f"wrote 4 dialogues to {out}\n")
    assert out.read_bytes() == published.read_bytes()


def test_import_finds_the_tasks_where_it_is_told_to(sweetrl, tmp_path, published) -> None:
    tasks = write(tmp_path / "mine.jsonl", TASKS)
    done = sweetrl("episodes", "import", published, "--tasks", tasks, "-o", tmp_path / "run", "--json")
    assert json.loads(done.out) == {"episodes": 4, "verdicts": 4, "output": str(tmp_path / "run")}
    ids = [episode.task_id for episode in records(tmp_path / "run/episodes.jsonl", Episode)]
    assert ids == ["mine-0", "mine-1", "mine-0", "mine-1"]


def test_import_of_a_dialogue_on_an_unknown_task_leaves_nothing_behind(sweetrl, tmp_path, published) -> None:
    tasks = write(tmp_path / "mine.jsonl", TASKS[:1])
    done = sweetrl("episodes", "import", published, "--tasks", tasks, "-o", tmp_path / "run")
    assert done.code == 2
    assert f"{published}:2: the task that this dialogue carries is not among the tasks" in done.err
    assert list((tmp_path / "run").iterdir()) == []


def test_existing_outputs_are_replaced_only_on_demand(sweetrl, tmp_path, published) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "tasks.jsonl").write_text("precious")
    done = sweetrl("episodes", "import", published, "-o", run)
    assert done.code == 2
    assert "tasks.jsonl: exists already" in done.err
    assert [path.name for path in run.iterdir()] == ["tasks.jsonl"]
    assert sweetrl("episodes", "import", published, "-o", run, "--force").code == 0


# ---------------------------------------------------------------- exporting our own


def ours(task: int, attempt: int, ending: Ending = Ending.ANSWERED) -> Episode:
    return Episode(
        task_id=f"mine-{task}",
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request=TASKS[task]["problem_description"],
        turns=(Turn(f"I WANT TO ANSWER: {task}{attempt}", f"I WANT TO ANSWER: {task}{attempt}"),),
        ending=ending,
        answer=f"{task}{attempt}",
        failure=Failure("agent", "ModelError", "dead") if ending is Ending.FAILED else None,
    )


@pytest.fixture
def export(sweetrl, tmp_path):
    def call(*episodes: Episode, options: tuple[object, ...] = ()):
        path = tmp_path / "episodes.jsonl"
        path.write_bytes(b"".join(msgspec.json.encode(episode) + b"\n" for episode in episodes))
        tasks, out = write(tmp_path / "mine.jsonl", TASKS), tmp_path / "out.jsonl"
        done = sweetrl("episodes", "export", path, "--tasks", tasks, "-o", out, *options)
        lines = out.read_text().splitlines() if out.exists() else []
        return done, [json.loads(line) for line in lines]

    return call


def test_finished_dialogues_are_sorted_into_blocks(export) -> None:
    _, lines = export(ours(1, 1), ours(1, 0), ours(0, 0), ours(0, 1))
    assert [line["answer"] for line in lines] == ["10", "00", "11", "01"]


def test_failed_dialogues_are_left_out_and_the_gap_is_named(export) -> None:
    done, lines = export(ours(0, 0), ours(1, 0), ours(0, 1), ours(1, 1, Ending.FAILED))
    assert done.code == 2
    assert "mine-1 has 1 of 2 dialogues" in done.err
    assert lines == []


def test_as_is_keeps_the_order_of_the_file(export) -> None:
    _, lines = export(ours(1, 1), ours(0, 0), ours(1, 0), options=("--as-is",))
    assert [line["answer"] for line in lines] == ["11", "00", "10"]


def test_rewards_come_from_verdicts_and_unscored_ones_have_none(export, tmp_path) -> None:
    verdicts = tmp_path / "verdicts.jsonl"
    verdicts.write_bytes(
        b"".join(
            msgspec.json.encode(
                Verdict(
                    task_id=f"mine-{task}",
                    episode_id=f"mine-{task}#0",
                    scorer="s/1",
                    answer_digest="-",
                    reward=reward,
                    success=False,
                )
            )
            + b"\n"
            for task, reward in ((0, 0.7), (1, None))
        )
    )
    _, lines = export(ours(0, 0), ours(1, 0), options=("--verdicts", verdicts))
    assert [line.get("reward", "none") for line in lines] == [0.7, "none"]


# ---------------------------------------------------------------- show


def test_show_prints_a_dialogue_turn_by_turn(sweetrl, published) -> None:
    shown = sweetrl("episodes", "show", published).out
    for text in (
        "Multiply by 2",
        "agent, turn 1",
        "By how much?",
        "collaborator",
        "I don't know.",
        "answered",
    ):
        assert text in shown
    assert "Hm OUTPUT:" not in shown
    assert "Hm OUTPUT: By how much?" in sweetrl("episodes", "show", published, "--thoughts").out


def test_show_finds_a_dialogue_by_its_id(sweetrl, published) -> None:
    two = json.loads(sweetrl("episodes", "show", published, "--n", 2, "--json").out)["episodes"]
    one = json.loads(sweetrl("episodes", "show", published, two[1]["id"], "--json").out)["episodes"]
    assert one == two[1:]
    done = sweetrl("episodes", "show", published, two[1]["id"] + "x")
    assert done.code == 2
    assert f"did you mean '{two[1]['id']}" in done.err


def test_show_tells_why_a_dialogue_failed(sweetrl, tmp_path) -> None:
    path = tmp_path / "episodes.jsonl"
    path.write_bytes(msgspec.json.encode(ours(0, 0, Ending.FAILED)) + b"\n")
    assert "failed: ModelError: dead" in sweetrl("episodes", "show", path).out


@pytest.mark.parametrize("command", ["import", "export", "show"])
def test_a_missing_file_is_one_line(sweetrl, tmp_path, command: str) -> None:
    tasks = write(tmp_path / "mine.jsonl", TASKS)
    more = {"import": ["-o", tmp_path / "r"], "export": ["--tasks", tasks, "-o", tmp_path / "o"], "show": []}
    done = sweetrl("episodes", command, tmp_path / "nowhere.jsonl", *more[command])
    assert (done.code, done.out) == (2, "")
    assert (
        done.err == f"error: {tmp_path / 'nowhere.jsonl'}: no such file; give the path of one that exists\n"
    )
