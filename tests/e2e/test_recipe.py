"""`sweetrl run`: a whole recipe from tasks to an evaluated policy, left alone, killed again and again, and real."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from conftest import CHECKOUT, Finished
from models.hostile_server import HostileServer, in_thread
from models.smollm2 import require_smollm2
from models.tiny_llama import save_tiny_llama
from sweetrl.cli import main
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.experiments.local import LocalExecutor
from sweetrl.experiments.pipeline import Stage
from sweetrl.records import read_records
from sweetrl.types import Episode, Task, TurnPair, Verdict

RECORDS = ("episodes", "verdicts", "pairs", "candidates", "ranked", "turn_pairs")
STAGES = 10


def agent(body: dict[str, Any], sample: int) -> str:
    """Asks, then answers: rightly or wrongly by the seed."""
    chat, seed = body["messages"], body["seed"] + sample
    if sum(each["role"] == "assistant" for each in chat) == 0:
        return f"Hm. OUTPUT: Is it {seed % 7}?"
    return f"I WANT TO ANSWER: def f(x): return x + {seed % 2}"


@pytest.fixture
def endpoint() -> Iterator[str]:
    with in_thread(HostileServer(reply=agent)) as server:
        yield f"openai:agent@{server.url}"


@pytest.fixture
def recipe(tmp_path: Path, endpoint: str) -> Path:
    model = save_tiny_llama(tmp_path / "model")
    (tmp_path / "prompt.txt").write_text("Be kind.")
    secret = BackendSecret("def f(x): return x + 1", {"test1": "f(1)", "test2": "f(2)"})
    tasks = [Task(id=f"t{n}", domain="backend", request="Write f.", secret=secret) for n in range(2)]
    (tmp_path / "tasks.jsonl").write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in tasks))
    training = f'model = "{model}"\nlearning_rate = 1e-3\nbatch_size = 2\nmax_steps = 4\nsave_every = 1'
    path = tmp_path / "recipe.toml"
    path.write_text(f"""
output = "{tmp_path}/run"
[tasks]
train = "{tmp_path}/tasks.jsonl"
test = "{tmp_path}/tasks.jsonl"
[agent]
model = "{endpoint}"
prompt = "{tmp_path}/prompt.txt"
max_tokens = 8
[collaborator]
model = "scripted:unsure"
[rollout]
attempts = 4
concurrency = 1
turn_limit = 3
[critic]
{training}
[candidates]
n = 4
concurrency = 1
rank_concurrency = 1
[turn_pairs]
pairs = 1
[policy]
{training}
""")
    return path


def command(recipe: Path, output: Path) -> list[str]:
    return [sys.executable, "-m", "sweetrl", "run", str(recipe), "--set", f"output={output}", "--json"]


def finish(words: list[str]) -> list[int]:
    """Run to the end; how each stage ended."""
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return [stage["code"] for stage in json.loads(ran.stdout)["stages"]]


def content(output: Path) -> dict[str, bytes]:
    """All that a run makes, byte by byte, but for the hours on its cards and the name of its folder."""
    files = [output / f"{name}.jsonl" for name in RECORDS]
    files += [output / part / f"{name}.jsonl" for part in ("untrained", "evaluation") for name in RECORDS[:2]]
    files += [output / model / name for model in ("critic", "policy") for name in ("model.safetensors",)]
    name = str(output).encode()
    return {str(file.relative_to(output)): file.read_bytes().replace(name, b"") for file in files}


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages share one Python, so that PyTorch is loaded once and not four times."""

    def start(_executor: LocalExecutor, _number: int, stage: Stage) -> SimpleNamespace:
        code = main.run(stage.arguments)
        return SimpleNamespace(poll=lambda: code)

    monkeypatch.setattr(LocalExecutor, "start", start)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.filterwarnings("default::DeprecationWarning")
def test_a_recipe_goes_from_tasks_to_an_evaluated_policy(
    sweetrl: Callable[..., Finished], recipe: Path, endpoint: str, tmp_path: Path
) -> None:
    ended = sweetrl("run", recipe)
    assert ended.code == 0, ended.err
    journal = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [each["code"] for each in journal] == [0] * STAGES
    verdicts = list(read_records(tmp_path / "run" / "verdicts.jsonl", Verdict))
    assert {each.success for each in verdicts} == {True, False}
    assert list(read_records(tmp_path / "run" / "turn_pairs.jsonl", TurnPair))
    evaluated = list(read_records(tmp_path / "run" / "evaluation" / "episodes.jsonl", Episode))
    assert {each.agent for each in evaluated} == {f"hf:{tmp_path / 'run' / 'policy'}"}
    assert len(list(read_records(tmp_path / "run" / "evaluation" / "verdicts.jsonl", Verdict))) == 2
    before = list(read_records(tmp_path / "run" / "untrained" / "episodes.jsonl", Episode))
    assert {each.agent for each in before} == {endpoint}
    assert "untrained" in (tmp_path / "run" / "report.html").read_text()


def kill_once_there_is(path: Path, words: list[str]) -> None:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (path.exists() and path.stat().st_size):
        assert process.poll() is None, f"it ended before there was a {path.name}"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_recipe_killed_in_every_stage_ends_with_the_same_files(recipe: Path, tmp_path: Path) -> None:
    finish(command(recipe, tmp_path / "whole"))
    parts = tmp_path / "parts"
    for name in (
        *("episodes.jsonl", "verdicts.jsonl", "pairs.jsonl", "critic/checkpoints/checkpoint-2"),
        *("candidates.jsonl", "ranked.jsonl", "turn_pairs.jsonl", "policy/checkpoints/checkpoint-1"),
        "evaluation/episodes.jsonl",
    ):
        kill_once_there_is(parts / name, command(recipe, parts))
    finish(command(recipe, parts))
    whole, again = content(tmp_path / "whole"), content(parts)
    assert [name for name in whole if whole[name] != again[name]] == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_recipe_for_laptops_runs_on_a_real_language_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = require_smollm2()
    monkeypatch.chdir(CHECKOUT)
    small = {
        **{f"{role}.model": f"hf:{model}" for role in ("agent", "collaborator")},
        **{f"{part}.model": model for part in ("critic", "policy")},
        **{f"{part}.max_steps": 2 for part in ("critic", "policy")},
        "agent.max_tokens": 16,
        "candidates.n": 2,
        "rollout.turn_limit": 2,
    }
    changes = [word for key, value in small.items() for word in ("--set", f"{key}={value}")]
    words = command(CHECKOUT / "recipes" / "laptop.toml", tmp_path / "run")
    assert finish([*words, *changes]) == [0] * (STAGES - 1)
    logged = (tmp_path / "run/critic/log.jsonl").read_text().splitlines()
    losses = [json.loads(line).get("loss") for line in logged]
    assert losses[1] < losses[0]
