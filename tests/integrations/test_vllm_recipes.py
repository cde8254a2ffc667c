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


def served(
    model: str | Path, name: str, port: int, stages: list[str], *flags: str, **environment: str
) -> str:
    """A server as a recipe names it."""
    settings = " ".join(f"{name}={value}" for name, value in {**ENVIRONMENT, **environment}.items())
    return f"""
[[servers]]
command = '''exec env {settings} {shlex.join(vllm_words(model, name, port, *flags))}'''
ready = "http://127.0.0.1:{port}/v1/models"
stages = {json.dumps(stages)}
"""


def at(name: str, port: int) -> str:
    """A model of a server, as commands name it."""
    return f"openai:{name}@http://127.0.0.1:{port}/v1"


def trained(section: str, *more: str, rate: float, steps: int) -> str:
    """The training of the model that ships."""
    lines = [f"[{section}]", 'model = "mini"', f"learning_rate = {rate}", "max_tokens = 1023"]
    return "\n".join([*lines, f"max_steps = {steps}", *more, ""])


def run_recipe(sweetrl: Callable[..., Finished], folder: Path, text: str, *words: str) -> Path:
    """Run a recipe to its end; the folder of the run."""
    run, recipe = folder / "run", folder / "recipe.toml"
    recipe.write_text(f'output = "{run}"\n{text}')
    done = sweetrl("run", recipe, *words)
    assert done.code == 0, done.err
    return run


def journal(run: Path) -> list[dict[str, Any]]:
    """The stages that are done."""
    return list(json.loads((run / "run.json").read_text()))


def starts(log: Path) -> int:
    """How often a server has become ready."""
    return log.read_text().count("Application startup complete")


def tiny_8b(base: int, policy: int, critic: int) -> str:
    """The recipe for 8B models with the model that ships: its stages, its launcher, and servers at these ports."""
    agent, launcher = at("base", base), 'launcher = ["torchrun", "--standalone", "--nproc_per_node", "2"]'
    return f"""
extends = "{CHECKOUT}/recipes/backend_8b.toml"
tasks = {{train = "mini-backend:train:24", test = "mini-backend:test:12"}}
agent = {{model = "{agent}", max_tokens = 128}}
collaborator = {{model = "colleague"}}
rollout = {{attempts = 6, turn_limit = 8}}
evaluation = {{agent = "{at("policy", policy)}"}}
candidates = {{n = 4, critic_at = "{at("critic", critic)}", reference_at = "{agent}"}}
shards = {{rank = 2}}
{trained("critic", launcher, rate=1e-4, steps=4)}
{trained("policy", launcher, rate=1e-4, steps=4)}
{served(MINI, "base", base, ["rollout", "candidates", "rank"])}
keep = true
{served("{output}/critic", "critic", critic, ["rank"])}
{served("{output}/policy", "policy", policy, ["evaluate"])}
"""


STAGES = (
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
)


def test_the_8b_recipe_runs_whole_on_a_tiny_llama(sweetrl: Callable[..., Finished], tmp_path: Path) -> None:
    """Its stages, its launcher and its sharding; its servers but that of the collaborator, who is scripted."""
    recipe = tiny_8b(free_port(), free_port(), free_port())
    run = run_recipe(sweetrl, tmp_path, recipe, "--set", "episodes=", "--set", "estimate=")
    assert tuple(each["stage"] for each in journal(run)) == STAGES
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


def with_adapter(port: int) -> str:
    """One server for the agent and, under another name, for the adapter that is trained for it."""
    stages, flags = ["rollout", "evaluate"], ("--enable-lora", "--max-lora-rank", "8")
    return f"""
algorithm = "rft"
tasks = {{train = "mini-backend:train:24", test = "mini-backend:test:40"}}
agent = {{model = "{at("base", port)}", temperature = 0.0, max_tokens = 128}}
collaborator = {{model = "colleague"}}
rollout = {{attempts = 2, turn_limit = 8}}
evaluation = {{agent = "{at("policy", port)}"}}
{trained("policy", "lora_rank = 8", rate=5e-3, steps=8)}
{served(MINI, "base", port, stages, *flags, VLLM_ALLOW_RUNTIME_LORA_UPDATING="1")}
keep = true
adapters = {{policy = "{{output}}/policy/adapter"}}
"""


def test_one_server_serves_the_agent_and_then_its_trained_adapter(
    sweetrl: Callable[..., Finished], tmp_path: Path
) -> None:
    run = run_recipe(sweetrl, tmp_path, with_adapter(free_port()))
    assert starts(run / "server-0.log") == 1
    found = _evaluated(run / "evaluation")
    assert found != _evaluated(run / "untrained")
    # The merged model that training leaves, in this process.
    words = ["--tasks", "mini-backend:test:40", "--collaborator", "colleague", "--turn-limit", 8]
    words += ["--agent", f"hf:{run}/policy", "--agent-temperature", 0, "--agent-max-tokens", 128]
    assert sweetrl("evaluate", *words, "-o", tmp_path / "local").code == 0
    local = _evaluated(tmp_path / "local")
    assert sum(found[name] == local[name] for name in local) >= 38


def _evaluated(folder: Path) -> dict[str, object]:
    """What was said in each dialogue."""
    return {each.id: each.turns for each in read_records(folder / "episodes.jsonl", Episode)}
