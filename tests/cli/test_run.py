import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import CHECKOUT, Finished
from recipe_files import write_recipe
from sweetrl.cli import run
from sweetrl.experiments.pipeline import stages
from sweetrl.records import read_records
from sweetrl.types import Episode

Sweetrl = Callable[..., Finished]
RECIPES = sorted((CHECKOUT / "recipes").glob("*.toml"))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path)


# ---------------------------------------------------------------- the plan


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_shipped_recipe_makes_a_plan(sweetrl: Sweetrl, path: Path) -> None:
    ended = sweetrl("run", path, "--dry-run", "--json")
    plan = json.loads(ended.out)
    assert plan["stages"]
    fatal = [problem["text"] for problem in plan["problems"] if problem["fatal"]]
    assert (ended.code == 2) == bool(fatal)
    # What is published elsewhere and large is not shipped.
    assert all("no such file" in text or "GiB are free" in text for text in fatal), fatal


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_shipped_recipe_says_how_it_is_launched(path: Path) -> None:
    assert f"sweetrl run recipes/{path.name}" in path.read_text().partition("\noutput")[0]


def test_a_dry_run_shows_the_commands_and_writes_nothing(sweetrl: Sweetrl, recipe: Path) -> None:
    ended = sweetrl("run", recipe, "--dry-run")
    assert ended.code == 0
    assert "sweetrl turn-pairs --ranked" in ended.out
    assert " evaluate-untrained " in ended.out  # whole, in a table for 80 columns
    assert not (recipe.parent / "run").exists()


def test_faults_of_a_recipe_are_one_line(sweetrl: Sweetrl, recipe: Path) -> None:
    ended = sweetrl("run", recipe, "--set", "candidats.n=3", "--set", "seed=x")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "did you mean candidates?" in ended.err
    assert "seed: Expected" in ended.err
    server = '[[servers]]\ncommand="x"\nready="http://x"\nstages=["evaluat"]\n'
    recipe.write_text(recipe.read_text() + server)
    assert "did you mean 'evaluate'?" in sweetrl("run", recipe).err


# ---------------------------------------------------------------- running


@pytest.fixture
def short(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, tuple[str, ...]]:
    """A recipe whose stages all exist without a trainer: evaluate an agent, here cut to its first stage."""
    monkeypatch.setattr(run, "stages", lambda loaded: stages(loaded)[:1])
    return recipe, ("run", str(recipe), "--set", "algorithm=none")


def test_stages_run_and_are_not_run_again(sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]]) -> None:
    recipe, command = short
    ended = sweetrl(*command, "--json")
    assert ended.code == 0, ended.err
    [entry] = json.loads(ended.out)["stages"]
    assert (entry["stage"], entry["code"]) == ("evaluate", 0)
    assert json.loads(ended.out)["report"] == str(recipe.parent / "run" / "report.html")
    assert "3 tasks" in (recipe.parent / "run" / "report.html").read_text()
    written = recipe.parent / "run" / "evaluation" / "episodes.jsonl"
    assert len(list(read_records(written, Episode))) == 3
    written.unlink()
    again = sweetrl(*command)
    assert "evaluate: done before" in again.err
    assert not written.exists()


def test_a_stage_that_was_done_with_its_defaults_spelled_out_is_done(
    sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]]
) -> None:
    recipe, command = short
    assert sweetrl(*command).code == 0
    journal = recipe.parent / "run" / "run.json"
    entries = json.loads(journal.read_text())
    entries[0]["arguments"][1:1] = ["--attempts", "1", "--seed", "0"]
    journal.write_text(json.dumps(entries))
    assert "evaluate: done before" in sweetrl(*command).err


def test_a_stage_that_was_done_otherwise_is_an_error(
    sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]]
) -> None:
    _, command = short
    assert sweetrl(*command).code == 0
    ended = sweetrl(*command, "--set", "rollout.turn_limit=2")
    assert ended.code == 2
    assert "was done with other settings (was without, now --turn-limit 2)" in ended.err


@pytest.mark.parametrize(("options", "code"), [((), 1), (("--allow-failures",), 0)])
def test_a_stage_with_failures_stops_the_run_unless_they_are_allowed(
    sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]], options: tuple[str, ...], code: int
) -> None:
    ended = sweetrl(*short[1], "--set", "collaborator.model=replay:" + _replies(short[0]), *options)
    assert ended.code == code, ended.err
    assert "failed" in ended.err


def _replies(recipe: Path) -> str:
    """Dialogues of one turn, which have no reply to repeat at the second."""
    folder = recipe.parent / "old"
    command = [
        "rollout",
        "--tasks",
        f"{recipe.parent}/tasks.jsonl",
        "--agent",
        "scripted:babble",
        "--single-turn",
    ]
    subprocess.run([sys.executable, "-m", "sweetrl", *command, "-o", folder, "-q"], check=True)
    return str(folder / "episodes.jsonl")


def test_a_stage_that_cannot_run_stops_the_run(sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]]) -> None:
    ended = sweetrl(*short[1], "--set", f"collaborator.model=replay:{short[0]}")  # it holds no dialogues
    assert ended.code == 2
    assert "the stage evaluate ended with code 2" in ended.err
    assert not (short[0].parent / "run" / "run.json").exists()


# ---------------------------------------------------------------- servers


def with_server(recipe: Path, command: str, port: int, **settings: Any) -> None:
    lines = [
        f"command = {json.dumps(command)}",
        f'ready = "http://127.0.0.1:{port}/"',
        'stages = ["evaluate"]',
    ]
    lines += [f"{name} = {value}" for name, value in settings.items()]
    recipe.write_text(recipe.read_text() + "[[servers]]\n" + "\n".join(lines) + "\n")


def free_port() -> int:
    """A port that nobody listens on, below those that the system gives away by itself."""
    for port in random.sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def test_a_server_runs_during_its_stages_and_ends_with_them(
    sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]]
) -> None:
    recipe, command = short
    port = free_port()
    pid = recipe.parent / "pid"
    with_server(
        recipe, f"echo $$ > {pid}; exec {sys.executable} -m http.server {port} --bind 127.0.0.1", port
    )
    ended = sweetrl(*command)
    assert ended.code == 0, ended.err
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert "GET / " in (recipe.parent / "run" / "server-0.log").read_text()


@pytest.mark.parametrize(
    ("command", "settings", "complaint"),
    [("exit 3", {}, "ended with code 3"), ("sleep 60", {"timeout": 1}, "did not answer within 1 s")],
)
def test_a_server_that_does_not_come_up_is_one_line(
    sweetrl: Sweetrl,
    short: tuple[Path, tuple[str, ...]],
    command: str,
    settings: dict[str, int],
    complaint: str,
) -> None:
    with_server(short[0], command, free_port(), **settings)
    ended = sweetrl(*short[1])
    assert ended.code == 2
    assert complaint in ended.err
    assert "Traceback" not in ended.err


# ---------------------------------------------------------------- ends that nobody planned


@pytest.fixture
def endless(recipe: Path) -> Iterator["subprocess.Popen[str]"]:
    """A run in the middle of a stage that would take very long, in a session of its own."""
    changes = ("--set", "algorithm=none", "--set", "evaluation.attempts=9000")
    words = [sys.executable, "-m", "sweetrl", "run", str(recipe), *changes]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        written = recipe.parent / "run" / "evaluation" / "episodes.jsonl"
        while not (written.exists() and written.stat().st_size):
            assert process.poll() is None
            time.sleep(0.05)
        yield process
        process.kill()


@pytest.fixture
def served(recipe: Path) -> Path:
    """Adds a server to the recipe, of two processes; the file that it writes the second one's id to."""
    port, pid = free_port(), recipe.parent / "pid"
    server = f"{sys.executable} -m http.server {port} --bind 127.0.0.1 & echo $! > {pid}; wait"
    with_server(recipe, server, port)
    return pid


def children_of(process: int) -> set[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return {int(each) for each in listed}.union(*(children_of(int(each)) for each in listed))


def await_end_of(processes: set[int]) -> None:
    while any(Path(f"/proc/{each}").exists() for each in processes):
        time.sleep(0.05)


def test_a_request_to_end_leaves_neither_stage_nor_server(
    served: Path, endless: "subprocess.Popen[str]"
) -> None:
    started = children_of(endless.pid)
    assert int(served.read_text()) in started
    endless.terminate()
    _, said = endless.communicate(timeout=120)
    assert endless.returncode == 130, said
    assert said.splitlines()[-1] == "interrupted: in the stage evaluate; rerun the same command to resume"
    await_end_of(started)


def test_a_killed_run_takes_stage_and_server_with_it(served: Path, endless: "subprocess.Popen[str]") -> None:
    started = children_of(endless.pid)
    assert int(served.read_text()) in started
    endless.kill()
    await_end_of(started)


def test_an_interrupt_reaches_the_stage_and_the_same_command_goes_on(
    recipe: Path, endless: "subprocess.Popen[str]"
) -> None:
    written = recipe.parent / "run" / "evaluation" / "episodes.jsonl"
    os.killpg(endless.pid, signal.SIGINT)
    _, said = endless.communicate(timeout=120)
    assert endless.returncode == 130, said
    assert said.endswith("rerun the same command to resume\n")
    held = len(list(read_records(written, Episode)))
    assert 0 < held < 27000
