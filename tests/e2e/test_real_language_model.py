"""The whole road on a real language model: tasks, dialogues, scores. SmolLM2-135M on both sides, on this CPU.

It is far too small to solve the tasks. What is tested is that everything between the files works: a model served
over HTTP and one in this process, prompts, rules, records, resume, sandbox, fairness.
"""

import json
from itertools import islice
from pathlib import Path

import pytest

from models.real_server import serving_smollm2
from models.smollm2 import require_smollm2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
TASKS = 5
SHORT = ("--turn-limit", 2, "--agent-max-tokens", 64, "--collaborator-max-tokens", 32)


def real_tasks(colbench_dir: Path, folder: Path, count: int) -> Path:
    folder.mkdir()
    with (colbench_dir / "backend_dev.jsonl").open() as lines:
        (folder / "tasks.jsonl").write_text("".join(islice(lines, count)))
    return folder / "tasks.jsonl"


def hold_and_score(sweetrl, tasks: Path, model: str, folder: Path) -> dict[str, list]:
    """Dialogues of the model with itself, scored; the turns by task."""
    count = len(tasks.read_text().splitlines())
    roles = ("--agent", model, "--collaborator", model, "--concurrency", TASKS, *SHORT)
    held = sweetrl("rollout", "--tasks", tasks, *roles, "-o", folder, "--json")
    assert held.code == 0, held.err
    episodes = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    assert sorted(each["task_id"] for each in episodes) == [f"tasks-{i}" for i in range(count)]
    assert all(each["ending"] in ("answered", "turn_limit") and each["answer"] for each in episodes)
    assert all(turn["output"].strip() for each in episodes for turn in each["turns"])
    scored = sweetrl(
        *("score", "--tasks", tasks, "--episodes", folder / "episodes.jsonl"),
        *("-o", folder / "verdicts.jsonl", "--json"),
    )
    assert scored.code == 0, scored.err
    report = json.loads(scored.out)
    assert report["all"]["success"]["count"] == count
    assert report["fairness"]["dialogues"] == count
    return {each["task_id"]: each["turns"] for each in episodes}


def test_behind_a_real_server(sweetrl, colbench_dir, tmp_path):
    tasks = real_tasks(colbench_dir, tmp_path / "served", TASKS)
    with serving_smollm2(parallel=TASKS) as server:
        hold_and_score(sweetrl, tasks, server.spec, tmp_path / "served")


def test_in_this_process_and_the_same_again_with_the_same_seed(sweetrl, colbench_dir, tmp_path):
    model = f"hf:{require_smollm2()}"
    first = hold_and_score(
        sweetrl, real_tasks(colbench_dir, tmp_path / "first", TASKS), model, tmp_path / "first"
    )
    fewer = hold_and_score(
        sweetrl, real_tasks(colbench_dir, tmp_path / "fewer", 1), model, tmp_path / "fewer"
    )
    assert fewer["tasks-0"] == first["tasks-0"]  # whatever else was in the batch


def test_it_drafts_tasks_of_which_only_sound_ones_are_kept(sweetrl, tmp_path):
    (tmp_path / "topics.txt").write_text("prices of a shop\nlengths of words\n")
    output = tmp_path / "tasks.jsonl"
    with serving_smollm2() as server:
        model = ("--model", server.spec, "--topics", tmp_path / "topics.txt", "--max-tokens", 64)
        ended = sweetrl("tasks", "write", *model, "--n", 1, "-o", output, "--json")
    drafts = [json.loads(line) for line in (tmp_path / "tasks.drafts.jsonl").read_text().splitlines()]
    assert all(each["text"].strip() and not each.get("failure") for each in drafts), ended.err
    kept = [each for each in drafts if not each.get("rejected")]
    reasons = {each["rejected"].partition(":")[0] for each in drafts if each.get("rejected")}
    assert reasons <= {"unreadable", "defective", "repeated"}
    # So small a model hardly ever writes a sound task, and the command says so.
    assert ended.code == (0 if kept else 1), ended.err
    assert len(kept) == len(output.read_text().splitlines())
