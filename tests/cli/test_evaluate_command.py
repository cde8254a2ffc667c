"""`sweetrl evaluate`: dialogues, verdicts and figures in one folder, resumed like its parts."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from addition_tasks import write_addition_tasks
from conftest import Finished
from models.hostile_server import HostileServer, Trouble, in_thread
from sweetrl.records import read_card, read_records
from sweetrl.types import Episode, RunMetrics, Verdict

Sweetrl = Callable[..., Finished]
SCRIPTED = ("--agent", "scripted:curious", "--collaborator", "scripted:unsure")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_addition_tasks(tmp_path / "tasks.jsonl")


def knowing(body: dict[str, Any], sample: int) -> str:
    """A programmer who guesses right on even tasks, half right on others, and a person who says yes."""
    messages = body["messages"]
    if messages[0]["role"] != "system":
        return "Yes."
    if len(messages) == 2:
        return "Really?"
    number = int(messages[1]["content"].split()[-1].rstrip("."))
    code = f"x + {number}" if number % 2 == 0 else f"{number} + 1"
    return f"I WANT TO ANSWER: def f(x): return {code}"


def model_on(server: HostileServer) -> tuple[str, ...]:
    return ("--agent", f"openai:fake@{server.url}", "--collaborator", f"openai:fake@{server.url}")


def metrics_in(folder: Path) -> RunMetrics:
    return msgspec.json.decode((folder / "metrics.json").read_bytes(), type=RunMetrics)


def test_a_run_is_held_scored_and_measured(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with in_thread(HostileServer(reply=knowing)) as server:
        ended = sweetrl("evaluate", "--tasks", tasks, *model_on(server), "-o", run, "--attempts", 2)
    assert ended.code == 0, ended.err
    assert len(list(read_records(run / "episodes.jsonl", Episode))) == 8
    assert len(list(read_records(run / "verdicts.jsonl", Verdict))) == 8
    figures = metrics_in(run)
    assert (figures.tasks, figures.dialogues, figures.failed, figures.unscored) == (4, 8, 0, 0)
    assert {name: metric.value for name, metric in figures.metrics.items()} == {
        "success": 0.5,
        "success_failures_as_zero": 0.5,
        "reward": 0.75,
        "turns": 2.0,
    }
    assert {metric.name for metric in figures.fairness} >= {"leaking_dialogues", "success_without_leaks"}
    assert figures.run["rollout"]["seed"] == 0
    assert figures.run["score"]["scorer"] == "backend-module/2"
    for word in ("8 dialogues on 4 tasks", "success, %", "50.0", "tests passed, %", "75.0", "2.00"):
        assert word in ended.out


def test_the_files_are_those_of_rollout_and_score_which_go_on_with_them(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert sweetrl("rollout", "--tasks", tasks, *SCRIPTED, "-o", run).code == 0
    assert sweetrl("evaluate", "--tasks", tasks, *SCRIPTED, "-o", run).code == 0
    before = [(run / name).read_bytes() for name in ("episodes.jsonl", "verdicts.jsonl", "metrics.json")]
    episodes, verdicts = run / "episodes.jsonl", run / "verdicts.jsonl"
    assert sweetrl("score", "--tasks", tasks, "--episodes", episodes, "-o", verdicts).code == 0
    assert sweetrl("evaluate", "--tasks", tasks, *SCRIPTED, "-o", run).code == 0
    after = [(run / name).read_bytes() for name in ("episodes.jsonl", "verdicts.jsonl", "metrics.json")]
    assert before == after
    assert (read_card(episodes).command, read_card(verdicts).command) == ("rollout", "score")


def test_more_attempts_extend_a_run(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    command = ("evaluate", "--tasks", tasks, *SCRIPTED, "-o", tmp_path / "run", "--quiet")
    assert sweetrl(*command).code == 0
    assert sweetrl(*command, "--attempts", 3).code == 0
    assert metrics_in(tmp_path / "run").dialogues == 12


def test_two_runs_with_one_seed_have_the_same_figures_to_the_byte(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    delays = random.Random(1)
    runs = []
    for name, latency in (("calm", 0.0), ("shaken", None)):
        slow = (lambda _: delays.choice([0, 0.02])) if latency is None else (lambda _: 0.0)
        with in_thread(HostileServer(reply=knowing, latency=slow)) as server:
            port = ("--agent", f"openai:fake@{server.url}", "--collaborator", "scripted:unsure")
            ended = sweetrl("evaluate", "--tasks", tasks, *port, "--attempts", 3, "-o", tmp_path / name)
            assert ended.code == 0, ended.err
        runs.append(metrics_in(tmp_path / name))
    calm, shaken = runs
    assert (shaken.metrics, shaken.fairness) == (calm.metrics, calm.fairness)


def test_json_has_the_figures_and_nothing_else_is_said(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    ended = sweetrl("evaluate", "--tasks", tasks, *SCRIPTED, "-o", tmp_path / "run", "--json")
    said = json.loads(ended.out)
    assert (ended.code, ended.err) == (0, "")
    assert said["output"] == str(tmp_path / "run" / "metrics.json")
    assert said["metrics"] == json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert said["metrics"]["metrics"]["success"]["value"] == 0.0


def test_dialogues_that_failed_are_no_bad_answers_and_are_done_again(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    with in_thread(HostileServer(reply=knowing, script=[Trouble.SERVER_ERROR])) as server:
        options = ("--tasks", tasks, *model_on(server), "-o", tmp_path / "run", "--concurrency", 1)
        ended = sweetrl("evaluate", *options, "--request-attempts", 1)
        assert ended.code == 1
        assert "1 dialogues failed, 0 are unscored; rerun the same command to do them again" in ended.err
        some = metrics_in(tmp_path / "run")
        assert (some.dialogues, some.failed, some.metrics["success"].count) == (3, 1, 3)
        assert sweetrl("evaluate", *options, "--request-attempts", 1).code == 0
    whole = metrics_in(tmp_path / "run")
    assert (whole.dialogues, whole.failed, whole.metrics["success"].value) == (4, 0, 0.5)


def test_another_setting_is_refused_for_the_same_folder(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    command = ("evaluate", "--tasks", tasks, *SCRIPTED, "-o", tmp_path / "run", "--quiet")
    assert sweetrl(*command).code == 0
    ended = sweetrl(*command, "--seed", 1)
    assert ended.code == 2
    assert "belongs to another run: seed was 0, now 1" in ended.err


def test_nobody_to_talk_to_is_refused_before_anything_is_written(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    ended = sweetrl("evaluate", "--tasks", tasks, "--agent", "scripted:curious", "-o", tmp_path / "run")
    assert (ended.code, (tmp_path / "run").exists()) == (2, False)
    assert "give a --collaborator, or --single-turn" in ended.err


def test_one_interrupt_ends_the_dialogues_and_nothing_is_scored_until_the_run_is_whole(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with in_thread(HostileServer(reply=knowing, allowed=1)) as server:
        command = ["evaluate", "--tasks", tasks, *model_on(server), "--concurrency", 1, "-o", run]
        process = subprocess.Popen(
            [sys.executable, "-m", "sweetrl", *map(str, command)], stderr=subprocess.PIPE, text=True
        )
        while not server.asked:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("finishing the open dialogues")
        server.allowed = None
        assert "are left; rerun the same command to resume" in process.communicate(timeout=120)[1]
        assert process.returncode == 130
        assert not (run / "verdicts.jsonl").exists()
        assert sweetrl(*command, "--quiet").code == 0
    assert metrics_in(run).dialogues == 4


def test_who_knows_what_to_ask_covers_all_facts_and_who_asks_at_random_does_not(
    sweetrl: Sweetrl, tmp_path: Path
) -> None:
    found = {}
    for agent in ("mini-oracle", "mini-random"):
        players = ("--agent", agent, "--collaborator", "colleague")
        ended = sweetrl("evaluate", "--tasks", "mini-backend:test:40", *players, "-o", tmp_path / agent)
        assert ended.code == 0, ended.err
        assert "hidden facts asked about, %" in ended.out
        found[agent] = metrics_in(tmp_path / agent).metrics
    oracle, chance = found["mini-oracle"], found["mini-random"]
    assert (oracle["coverage"].value, oracle["repeats"].value, oracle["premature"].value) == (1.0, 0.0, 0.0)
    assert oracle["success"].value > 0.95
    assert chance["coverage"].value < 0.9
    assert chance["success"].value < oracle["success"].value
