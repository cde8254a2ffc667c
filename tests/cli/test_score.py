"""`sweetrl score` as its users meet it: one verdict per answer, whatever happens in between."""

import json
import random
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sweetrl.domains.sources import read_tasks
from sweetrl.records import read_records
from sweetrl.types import Verdict

TASKS = [
    {
        "problem_description": "Write def double(x).",
        "ground_truth": "def double(x):\n    return 2 * x",
        "test_cases": {f"test{i}": f"double({i})" for i in range(1, 11)},
    },
    {
        "problem_description": "Write def shout(text).",
        "ground_truth": "def shout(text):\n    return text.upper() + '!'",
        "test_cases": {f"test{i}": f"shout('a{i}')" for i in range(1, 11)},
    },
]
RIGHT = ["def double(x): return x + x", "def shout(text): return f'{text.upper()}!'"]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "tasks.jsonl", TASKS)


def write_lines(path: Path, rows: list) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_answers(path: Path, answers: list[tuple[int, str | None]]) -> Path:
    return write_lines(path, [{"task_id": f"tasks-{task}", "answer": answer} for task, answer in answers])


def read_verdicts(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_right_a_wrong_and_a_missing_answer_get_one_verdict_each(sweetrl, tasks, tmp_path):
    wrong = "def double(x): return 2 if x == 1 else 0"
    answers = write_answers(tmp_path / "answers.jsonl", [(0, RIGHT[0]), (0, wrong), (1, None), (1, RIGHT[1])])
    finished = sweetrl("score", "--tasks", tasks, "--answers", answers, "-o", tmp_path / "v.jsonl")
    assert finished.code == 0, finished.err
    verdicts = read_verdicts(tmp_path / "v.jsonl")
    assert [(v["episode_id"], v["reward"], v["success"]) for v in verdicts] == [
        ("tasks-0#0", 1.0, True),
        ("tasks-0#1", 0.1, False),
        ("tasks-1#0", 0.0, False),
        ("tasks-1#1", 1.0, True),
    ]
    assert [check["outcome"] for check in verdicts[1]["checks"]] == ["passed", *["wrong"] * 9]
    assert all({"task_id", "scorer", "checks", "failure"} <= set(v) for v in verdicts)
    assert "all 2" in finished.err


def test_json_reports_figures_with_and_without_defective_tasks(sweetrl, tmp_path):
    constant = {
        "problem_description": "Write def yes(x).",
        "ground_truth": "def yes(x):\n    return True",
        "test_cases": {"test1": "yes(1)", "test2": "yes(2)"},
    }
    tasks = write_lines(tmp_path / "tasks.jsonl", [*TASKS, constant])
    answers = write_answers(
        tmp_path / "answers.jsonl", [(0, RIGHT[0]), (1, "def shout(t): ..."), (2, "yes = bool")]
    )
    finished = sweetrl("score", "--tasks", tasks, "--answers", answers, "-o", tmp_path / "v.jsonl", "--json")
    report = json.loads(finished.out)
    assert report["defective_tasks"] == ["tasks-2"]
    assert report["all"]["success"]["value"] == pytest.approx(2 / 3)
    assert report["without_defective_tasks"]["success"]["value"] == pytest.approx(1 / 2)
    assert report["all"]["success"]["low"] < 2 / 3 < report["all"]["success"]["high"]
    assert report["all"]["outcomes"]["passed"] == 12
    assert report["answers"] == report["scored_now"] == 3


def test_a_second_run_changes_nothing(sweetrl, tasks, tmp_path):
    answers = write_answers(tmp_path / "answers.jsonl", [(0, RIGHT[0]), (1, RIGHT[1])])
    command = ("score", "--tasks", tasks, "--answers", answers, "-o", tmp_path / "v.jsonl", "--json")
    sweetrl(*command)
    before = (tmp_path / "v.jsonl").read_bytes()
    again = sweetrl(*command)
    assert json.loads(again.out)["scored_now"] == 0
    assert (tmp_path / "v.jsonl").read_bytes() == before


def test_answers_appended_later_are_scored_by_the_same_command(sweetrl, tasks, tmp_path):
    answers = write_answers(tmp_path / "answers.jsonl", [(0, RIGHT[0])])
    command = ("score", "--tasks", tasks, "--answers", answers, "-o", tmp_path / "v.jsonl", "--json")
    sweetrl(*command)
    write_answers(answers, [(0, RIGHT[0]), (1, RIGHT[1])])
    assert json.loads(sweetrl(*command).out)["scored_now"] == 1
    assert [v["episode_id"] for v in read_verdicts(tmp_path / "v.jsonl")] == ["tasks-0#0", "tasks-1#0"]


def test_unscored_verdicts_exit_1_and_are_done_again(sweetrl, tasks, tmp_path, monkeypatch):
    from sweetrl.domains.backend.scorer import BackendScorer
    from sweetrl.errors import SandboxError

    answers = write_answers(tmp_path / "answers.jsonl", [(0, RIGHT[0]), (1, RIGHT[1])])
    command = ("score", "--tasks", tasks, "--answers", answers, "-o", tmp_path / "v.jsonl", "--no-check")
    checks = BackendScorer.checks

    def break_down(self, task, answer):
        if task.id == "tasks-0":
            raise SandboxError("no more processes")
        return checks(self, task, answer)

    with monkeypatch.context() as patch:
        patch.setattr(BackendScorer, "checks", break_down)
        first = sweetrl(*command)
    assert first.code == 1
    assert "1 unscored" in first.err
    broken = read_verdicts(tmp_path / "v.jsonl")[0]
    assert broken["reward"] is None
    assert broken["failure"] == {"stage": "score", "kind": "SandboxError", "message": "no more processes"}
    assert sweetrl(*command).code == 0
    verdicts = read_verdicts(tmp_path / "v.jsonl")
    assert sorted((v["episode_id"], v["reward"]) for v in verdicts) == [
        ("tasks-0#0", 1.0),
        ("tasks-1#0", 1.0),
    ]


def test_episodes_of_ours_and_published_dialogues_get_the_same_rewards(sweetrl, tasks, tmp_path):
    ours = {
        "task_id": "tasks-0",
        "attempt": 0,
        "seed": 1,
        "agent": "a",
        "collaborator": "c",
        "request": TASKS[0]["problem_description"],
        "turns": [{"output": RIGHT[0], "said": RIGHT[0], "reply": None}],
        "ending": "answered",
        "answer": RIGHT[0],
    }
    published = {
        "task": TASKS[0],
        "dialogue_history": [
            {"role": "user", "content": TASKS[0]["problem_description"]},
            {"role": "assistant", "content": RIGHT[0], "input": "...", "output": RIGHT[0]},
        ],
        "answer": RIGHT[0],
    }
    for name, line in (("ours", ours), ("published", published)):
        episodes = write_lines(tmp_path / f"{name}.jsonl", [line])
        output = tmp_path / f"{name}-verdicts.jsonl"
        finished = sweetrl("score", "--tasks", tasks, "--episodes", episodes, "-o", output)
        assert finished.code == 0, finished.err
        assert [(v["task_id"], v["reward"]) for v in read_verdicts(output)] == [("tasks-0", 1.0)]
        assert "dialogues with code of the reference" in finished.err  # fairness stands beside success


def test_a_dialogue_that_failed_is_unscored_and_not_zero(sweetrl, tasks, tmp_path):
    failed = {
        "task_id": "tasks-0",
        "attempt": 0,
        "seed": 1,
        "agent": "a",
        "collaborator": "c",
        "request": "r",
        "turns": [],
        "ending": "failed",
        "answer": None,
        "failure": {"stage": "rollout", "kind": "ModelError", "message": "the endpoint is gone"},
    }
    episodes = write_lines(tmp_path / "episodes.jsonl", [failed])
    finished = sweetrl(
        "score", "--tasks", tasks, "--episodes", episodes, "-o", tmp_path / "v.jsonl", "--json"
    )
    assert finished.code == 1
    verdict = read_verdicts(tmp_path / "v.jsonl")[0]
    assert verdict["reward"] is None
    assert verdict["failure"]["message"] == "the endpoint is gone"
    assert json.loads(finished.out)["all"]["success"]["count"] == 0


# ---------------------------------------------------------------- bad input

GOOD = '{"task_id": "tasks-0", "answer": "x"}\n'
BAD_ANSWERS = {
    "empty": ("", "has no records"),
    "truncated": (GOOD + '{"task_id": "tasks-0", "ans', "answers.jsonl:2: not valid JSON"),
    "binary": ("\x00\x01\x02\udcff" * 100, "answers.jsonl:1: not valid JSON"),
    "wrong type": (
        GOOD + '{"task_id": "tasks-0", "answer": 3}\n',
        "answers.jsonl:2: Expected `str | null`, got `int`",
    ),
    "missing field": ('{"task_id": "tasks-0"}\n', "missing required field `answer`"),
    "unknown task": ('{"task_id": "nobody", "answer": ""}\n', "unknown task 'nobody'"),
    "duplicate": (
        '{"task_id": "tasks-0", "answer": "", "attempt": 1}\n' * 2,
        "tasks-0#1 is there twice",
    ),
    "list": ("[1, 2]\n", "Expected `object`, got `array`"),
}


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_bad_answers_end_in_one_line_and_leave_the_output_alone(case, sweetrl, tasks, tmp_path):
    content, complaint = BAD_ANSWERS[case]
    answers = tmp_path / "answers.jsonl"
    answers.write_bytes(content.encode("utf-8", "surrogateescape"))
    finished = sweetrl("score", "--tasks", tasks, "--answers", answers, "-o", tmp_path / "v.jsonl")
    assert_refused(finished, complaint)
    assert not (tmp_path / "v.jsonl").exists()


def assert_refused(finished, complaint: str) -> None:
    assert finished.code == 2
    assert complaint in finished.err
    assert finished.err.count("\n") == 1
    assert "Traceback" not in finished.err


def test_an_answer_with_half_a_character_is_scored_like_any_other(sweetrl, tasks, tmp_path):
    answers, verdicts = tmp_path / "answers.jsonl", tmp_path / "v.jsonl"
    answers.write_text('{"task_id": "tasks-0", "answer": "\\ud800"}\n' * 2)
    for _ in range(2):
        finished = sweetrl("score", "--tasks", tasks, "--answers", answers, "-o", verdicts, "--no-check")
        assert finished.code == 0
    assert [verdict.reward for verdict in read_records(verdicts, Verdict)] == [0.0, 0.0]


BAD_TASKS = {
    "missing": (None, "no such file"),
    "empty": ("", "has no tasks"),
    "junk": ("\x00\x7f", "not valid JSON"),
    "twice": (
        '{"id": "a", "problem_description": "p", "ground_truth": "g", "test_cases": {"t": "f()"}}\n' * 2,
        "a",
    ),
    "wrong type": ('{"problem_description": 3, "ground_truth": "g", "test_cases": {"t": "f()"}}\n', "str"),
}


@pytest.mark.parametrize("case", BAD_TASKS)
def test_bad_tasks_end_in_one_line(case, sweetrl, tmp_path):
    content, complaint = BAD_TASKS[case]
    tasks = tmp_path / "tasks.jsonl"
    if content is not None:
        tasks.write_text(content)
    answers = tmp_path / "answers.jsonl"
    answers.write_text(GOOD)
    finished = sweetrl("score", "--tasks", tasks, "--answers", answers, "-o", tmp_path / "v.jsonl")
    assert_refused(finished, complaint)


def test_a_folder_for_a_file_is_refused(sweetrl, tasks, tmp_path):
    assert_refused(
        sweetrl("score", "--tasks", tasks, "--answers", tmp_path, "-o", tmp_path / "v.jsonl"), "is a folder"
    )
    answers = write_answers(tmp_path / "answers.jsonl", [(0, "x")])
    assert_refused(sweetrl("score", "--tasks", tasks, "--answers", answers, "-o", tmp_path), "is a folder")


def test_the_output_of_another_run_is_refused_and_untouched(sweetrl, tasks, tmp_path):
    answers = write_answers(tmp_path / "answers.jsonl", [(0, RIGHT[0])])
    output = tmp_path / "v.jsonl"
    sweetrl("score", "--tasks", tasks, "--answers", answers, "-o", output)
    before = output.read_bytes()
    command = ("score", "--tasks", tasks, "--answers", answers, "-o", output)
    assert_refused(sweetrl(*command, "--mode", "official"), "belongs to another run")
    write_answers(answers, [(0, RIGHT[0] + "  # edited")])
    assert_refused(sweetrl(*command), "made from another input")
    assert output.read_bytes() == before
    output.with_suffix(".run.json").unlink()
    assert_refused(sweetrl(*command), "was not written by `sweetrl score`")
    assert output.read_bytes() == before


def test_neither_or_both_inputs_are_refused(sweetrl, tasks, tmp_path):
    assert_refused(
        sweetrl("score", "--tasks", tasks, "-o", tmp_path / "v.jsonl"), "either --answers or --episodes"
    )


def test_a_full_disk_ends_in_one_line_and_the_run_can_go_on(tasks, tmp_path):
    answers = write_answers(tmp_path / "answers.jsonl", [(0, RIGHT[0])] * 30)
    output = tmp_path / "v.jsonl"

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8000, resource.RLIM_INFINITY))

    command = command_line(tasks, answers, output)
    full = subprocess.run(command, capture_output=True, text=True, preexec_fn=small_files, check=False)
    assert full.returncode == 2
    assert full.stderr.splitlines() == [
        f"error: {output}: no space left; free some and rerun the same command to resume"
    ]
    whole = read_verdicts(output)
    assert 0 < len(whole) < 30
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert [v["episode_id"] for v in read_verdicts(output)] == [f"tasks-0#{i}" for i in range(30)]


# ---------------------------------------------------------------- ends that nobody planned


def command_line(tasks: Path, answers: Path, output: Path, *more: str) -> list[str]:
    arguments = ["--tasks", tasks, "--answers", answers, "-o", output, "--no-check", "--workers", "2", *more]
    return [sys.executable, "-m", "sweetrl", "score", *map(str, arguments)]


def test_killed_at_twenty_moments_and_resumed_it_equals_an_uninterrupted_run(tasks, tmp_path):
    slow = "def double(x):\n    import time\n    time.sleep(0.003)\n    return 2 * x"
    rows = [(i % 2, [slow, RIGHT[1]][i % 2]) for i in range(300)]
    answers = write_answers(tmp_path / "answers.jsonl", rows)
    subprocess.run(command_line(tasks, answers, tmp_path / "whole.jsonl"), check=True, capture_output=True)
    moments = random.Random(7)
    output = tmp_path / "v.jsonl"
    killed = 0
    for _ in range(20):
        process = subprocess.Popen(command_line(tasks, answers, output), stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=moments.uniform(0.1, 0.9))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
    assert killed > 3
    subprocess.run(command_line(tasks, answers, output), check=True, capture_output=True)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert_no_processes_left()


def assert_no_processes_left() -> None:
    """No sandbox outlives the command that started it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        left = [path for path in Path("/proc").glob("[0-9]*") if _is_orphaned_zygote(path)]
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(f"left over: {left}")


def _is_orphaned_zygote(process: Path) -> bool:
    try:
        command = (process / "cmdline").read_bytes()
        status = (process / "status").read_text()
    except OSError:
        return False
    return b"inside" in command.split(b"\0") and bool(re.search(r"^PPid:\t1$", status, re.MULTILINE))


def test_an_interrupt_keeps_what_is_scored_and_says_how_to_go_on(tasks, tmp_path):
    slow = "def double(x):\n    import time\n    time.sleep(0.02)\n    return 2 * x"
    answers = write_answers(tmp_path / "answers.jsonl", [(0, slow)] * 200)
    output = tmp_path / "v.jsonl"
    process = subprocess.Popen(command_line(tasks, answers, output), stderr=subprocess.PIPE, text=True)
    while not (output.exists() and output.read_bytes().count(b"\n") >= 3):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    scored = len(read_verdicts(output))
    assert 3 <= scored < 200
    assert err.splitlines() == [f"interrupted: {scored} of 200 scored; rerun the same command to resume"]


def test_an_unknown_similarity_is_refused_before_anything_is_written(sweetrl, tmp_path):
    answers, output = tmp_path / "answers.jsonl", tmp_path / "verdicts.jsonl"
    [task] = read_tasks("mini-frontend:test:1")
    answers.write_text(json.dumps({"task_id": task.id, "answer": "<html></html>"}) + "\n")
    command = ("score", "--tasks", "mini-frontend:test:1", "--answers", answers, "-o", output)
    finished = sweetrl(*command, "--similarity", "ssim")
    assert (finished.code, output.exists()) == (2, False)
    assert "no similarity is called 'ssim'; there are layout and clip:PATH_OR_ID" in finished.err


def test_a_limit_scores_the_answers_to_the_first_tasks_and_a_later_run_the_others(sweetrl, tasks, tmp_path):
    answers = write_answers(tmp_path / "answers.jsonl", [(0, RIGHT[0]), (1, RIGHT[1])])
    command = ("score", "--tasks", tasks, "--answers", answers, "-o", tmp_path / "v.jsonl", "--no-check")
    assert sweetrl(*command, "--limit", 1).code == 0
    assert [each["task_id"] for each in read_verdicts(tmp_path / "v.jsonl")] == ["tasks-0"]
    assert sweetrl(*command).code == 0
    assert [each["task_id"] for each in read_verdicts(tmp_path / "v.jsonl")] == ["tasks-0", "tasks-1"]
