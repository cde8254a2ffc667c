"""Recipes whose models real vLLM servers serve, started and stopped by the run; run by `make test-vllm`."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import CHECKOUT, Finished
from integrations.vllm_process import ENVIRONMENT, free_port, vllm_words
from sweetrl.models.shipped import folder
from sweetrl.records import read_records
from sweetrl.types import CandidateSet, Episode

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

MINI = str(folder("mini"))


def server_command(model: str | Path, name: str, port: int, *more: str, **environment: str) -> str:
    """A server as a recipe names it."""
    settings = " ".join(f"{name}={value}" for name, value in {**ENVIRONMENT, **environment}.items())
    return f"exec env {settings} {shlex.join(vllm_words(model, name, port, *more))}"


def journal(run: Path) -> list[dict[str, Any]]:
    """The stages that are done."""
    return list(json.loads((run / "run.json").read_text()))


def starts(log: Path) -> int:
    """How often a server has become ready."""
    return log.read_text().count("Application startup complete")


def test_the_8b_recipe_runs_whole_on_a_tiny_llama(sweetrl: Callable[..., Finished], tmp_path: Path) -> None:
    """Its stages, its launcher and its sharding; its servers but that of the collaborator, who is scripted."""
    base, policy, critic = free_port(), free_port(), free_port()
    run = tmp_path / "run"
    agent = f"openai:base@http://127.0.0.1:{base}/v1"
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(f"""
extends = "{CHECKOUT}/recipes/backend_8b.toml"
output = "{run}"
tasks = {{train = "mini-backend:train:24", test = "mini-backend:test:12"}}
agent = {{model = "{agent}", max_tokens = 128}}
collaborator = {{model = "colleague"}}
rollout = {{attempts = 6, turn_limit = 8}}
evaluation = {{agent = "openai:policy@http://127.0.0.1:{policy}/v1"}}
[critic]
model = "mini"
learning_rate = 1e-4
max_tokens = 1023
max_steps = 4
launcher = ["torchrun", "--standalone", "--nproc_per_node", "2"]
[policy]
model = "mini"
learning_rate = 1e-4
max_tokens = 1023
max_steps = 4
launcher = ["torchrun", "--standalone", "--nproc_per_node", "2"]
[candidates]
n = 4
critic_at = "openai:critic@http://127.0.0.1:{critic}/v1"
reference_at = "{agent}"
[shards]
rank = 2
[[servers]]
command = '''{server_command(MINI, "base", base)}'''
ready = "http://127.0.0.1:{base}/v1/models"
stages = ["rollout", "candidates", "rank"]
keep = true
[[servers]]
command = '''{server_command("{output}/critic", "critic", critic)}'''
ready = "http://127.0.0.1:{critic}/v1/models"
stages = ["rank"]
[[servers]]
command = '''{server_command("{output}/policy", "policy", policy)}'''
ready = "http://127.0.0.1:{policy}/v1/models"
stages = ["evaluate"]
""")
    done = sweetrl("run", recipe, "--set", "episodes=", "--set", "estimate=")
    assert done.code == 0, done.err
    assert [each["stage"] for each in journal(run)] == [
        "rollout",
        "score",
        "pairs",
        "evaluate-untrained",
        "train-critic",
        "candidates",
        "rank",
        "turn-pairs",
        "train-policy",
        "evaluate",
    ]
    assert [starts(run / f"server-{number}.log") for number in range(3)] == [1, 1, 1]
    split = [each["output"] for each in journal(run) if "--shard" in each["arguments"]]
    assert split == [str(run / "critic"), str(run / "policy")]
    _check_ranking(sweetrl, run, tmp_path)
    evaluated = list(read_records(run / "evaluation" / "episodes.jsonl", Episode))
    assert len(evaluated) == 12
    assert not any(each.failure for each in evaluated)


def _check_ranking(sweetrl: Callable[..., Finished], run: Path, folder: Path) -> None:
    """What the servers said of the candidates is what the critic says in this process."""
    again = folder / "again.jsonl"
    words = ["--tasks", "mini-backend:train:24", "--episodes", run / "episodes.jsonl"]
    words += ["--candidates", run / "candidates.jsonl", "--critic", run / "critic", "-o", again]
    assert sweetrl("rank", *words).code == 0
    local = {each.id: each.advantages for each in read_records(again, CandidateSet)}
    served = {each.id: each.advantages for each in read_records(run / "ranked.jsonl", CandidateSet)}
    assert served.keys() == local.keys()
    assert served
    for name, advantages in served.items():
        assert advantages == pytest.approx(local[name], abs=1e-3)


def test_one_server_serves_the_agent_and_then_its_trained_adapter(
    sweetrl: Callable[..., Finished], tmp_path: Path
) -> None:
    port, run = free_port(), tmp_path / "run"
    flags = ("--enable-lora", "--max-lora-rank", "8")
    command = server_command(MINI, "base", port, *flags, VLLM_ALLOW_RUNTIME_LORA_UPDATING="1")
    recipe = tmp_path / "adapter.toml"
    recipe.write_text(f"""
output = "{run}"
algorithm = "rft"
tasks = {{train = "mini-backend:train:24", test = "mini-backend:test:40"}}
agent = {{model = "openai:base@http://127.0.0.1:{port}/v1", temperature = 0.0, max_tokens = 128}}
collaborator = {{model = "colleague"}}
rollout = {{attempts = 2, turn_limit = 8}}
evaluation = {{agent = "openai:policy@http://127.0.0.1:{port}/v1"}}
[policy]
model = "mini"
learning_rate = 5e-3
max_tokens = 1023
max_steps = 8
lora_rank = 8
[[servers]]
command = '''{command}'''
ready = "http://127.0.0.1:{port}/v1/models"
stages = ["rollout", "evaluate"]
keep = true
adapters = {{policy = "{{output}}/policy/adapter"}}
""")
    done = sweetrl("run", recipe)
    assert done.code == 0, done.err
    assert starts(run / "server-0.log") == 1
    served = _evaluated(run / "evaluation")
    assert served != _evaluated(run / "untrained")
    # The merged model that training leaves, in this process.
    words = ["--tasks", "mini-backend:test:40", "--collaborator", "colleague", "--turn-limit", 8]
    words += ["--agent", f"hf:{run}/policy", "--agent-temperature", 0, "--agent-max-tokens", 128]
    assert sweetrl("evaluate", *words, "-o", tmp_path / "local").code == 0
    local = _evaluated(tmp_path / "local")
    assert sum(served[name] == local[name] for name in local) >= 38


def _evaluated(folder: Path) -> dict[str, object]:
    """What was said in each dialogue."""
    return {each.id: each.turns for each in read_records(folder / "episodes.jsonl", Episode)}
