"""The commands against a real vLLM server with the model that ships; run by `make test-vllm`."""

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import Finished
from integrations.vllm_process import VllmServer, vllm_server
from sweetrl.critics.batched import Reading
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.sources import load_tasks
from sweetrl.learning.candidates import candidate_logprobs
from sweetrl.learning.critic_cards import CriticCard, write_critic_card
from sweetrl.learning.networks import load_encoder, load_network
from sweetrl.models import open_model
from sweetrl.models.probe import probe
from sweetrl.models.shipped import folder
from sweetrl.records import read_records
from sweetrl.types import CandidateSet, Episode, Message, Role, Sampling

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TASKS = "mini-backend:train:40"
MINI = str(folder("mini"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    with vllm_server(MINI, "mini", tmp_path_factory.mktemp("vllm")) as running:
        yield running


def rollout_words(agent: str, output: Path, *more: object) -> list[str]:
    words = ["rollout", "--tasks", TASKS, "--agent", agent, "--collaborator", "colleague", "--seed", 3]
    return [str(each) for each in (*words, "-o", output, *more)]


def episodes(output: Path) -> list[Episode]:
    """All records, in the order of their names."""
    return sorted(read_records(output / "episodes.jsonl", Episode), key=lambda each: each.id)


def candidates(path: Path) -> list[CandidateSet]:
    return sorted(read_records(path, CandidateSet), key=lambda each: each.id)


@pytest.fixture(scope="module")
def undisturbed(server: VllmServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dialogues that nothing disturbed, one after the other."""
    output = tmp_path_factory.mktemp("undisturbed")
    words = rollout_words(server.spec, output, "--concurrency", 1)
    subprocess.run([sys.executable, "-m", "sweetrl", *words], check=True)
    return output


@pytest.fixture(scope="module")
def drawn(server: VllmServer, undisturbed: Path) -> Path:
    """Candidates for some of the dialogues."""
    path = undisturbed / "candidates.jsonl"
    words = ["--episodes", undisturbed / "episodes.jsonl", "--tasks", TASKS, "--agent", server.spec]
    command = ["candidates", *words, "--n", 8, "--fraction", 0.2, "--json", "-o", path]
    done = subprocess.run(
        [sys.executable, "-m", "sweetrl", *map(str, command)], check=True, stdout=subprocess.PIPE
    )
    path.with_name("tally.json").write_bytes(done.stdout)
    return path


def test_the_probe_finds_that_vllm_honours_all_that_it_is_asked(server: VllmServer) -> None:
    found = asyncio.run(probe(server.spec))
    assert {name for name in found.__struct_fields__ if not getattr(found, name)} == set()


def test_the_same_seed_gives_the_same_dialogues_however_many_are_open(
    sweetrl: Callable[..., Finished], server: VllmServer, undisturbed: Path, tmp_path: Path
) -> None:
    assert sweetrl(*rollout_words(server.spec, tmp_path / "run", "--concurrency", 16)).code == 0
    found = episodes(tmp_path / "run")
    assert len(found) == 40
    assert not any(each.failure for each in found)
    assert found == episodes(undisturbed)


def test_an_evaluation_is_that_of_the_model_in_this_process(
    sweetrl: Callable[..., Finished], server: VllmServer, tmp_path: Path
) -> None:
    results = {}
    for name, agent in (("served", server.spec), ("local", "mini")):
        words = ["--tasks", "mini-backend:test:20", "--agent", agent, "--collaborator", "colleague"]
        assert sweetrl("evaluate", *words, "--agent-temperature", 0, "-o", tmp_path / name).code == 0
        metrics = json.loads((tmp_path / name / "metrics.json").read_text())["metrics"]
        results[name] = metrics["success"]["value"]
    same = [
        one.turns == other.turns
        for one, other in zip(episodes(tmp_path / "served"), episodes(tmp_path / "local"), strict=True)
    ]
    # Two likeliest tokens may be equally likely to the last bit of one of the two.
    assert sum(same) >= 19
    assert results["served"] == pytest.approx(results["local"], abs=0.05)


def test_candidates_come_with_one_request_for_each_turn(drawn: Path) -> None:
    sets = candidates(drawn)
    assert sets
    assert all(len(each.given) == 8 for each in sets)
    assert any(len(set(each.given)) > 1 for each in sets)
    assert json.loads(drawn.with_name("tally.json").read_text())["requests"] == len(sets)


def test_logprobs_of_what_is_sampled_are_those_of_the_network(server: VllmServer) -> None:
    task = next(iter(load_tasks("mini-backend:train:1").values()))
    messages = [Message(Role.USER, task.request)]

    async def sampled() -> Any:
        model = open_model(server.spec, logprobs=True)
        try:
            [completion] = await model.complete(messages, n=1, sampling=Sampling(max_tokens=64), seed=5)
        finally:
            await model.close()
        return completion

    completion = asyncio.run(sampled())
    read = Reading(load_encoder(MINI, 1024)).candidates(task, messages, [completion.text])
    [[expected]] = candidate_logprobs(load_network(MINI), [read])
    assert list(completion.logprobs) == pytest.approx(expected.tolist(), abs=1e-3)


# ---------------------------------------------------------------- ranking


@pytest.fixture(scope="module")
def critic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as training leaves it: noise on the weights stands for what was learned."""
    path = tmp_path_factory.mktemp("trained") / "critic"
    shutil.copytree(MINI, path)
    torch.manual_seed(0)
    weights = load_file(path / "model.safetensors")
    noisy = {name: weight + 0.02 * torch.randn_like(weight) for name, weight in weights.items()}
    save_file(noisy, path / "model.safetensors", metadata={"format": "pt"})
    told = BACKEND.prompts.privileged.text
    write_critic_card(
        path, CriticCard(kind="advantage", reference=MINI, privileged=told, system="", max_tokens=1023)
    )
    return path


def test_ranking_through_vllm_is_ranking_in_this_process(
    sweetrl: Callable[..., Finished],
    server: VllmServer,
    undisturbed: Path,
    drawn: Path,
    critic: Path,
    tmp_path: Path,
) -> None:
    words = ["--tasks", TASKS, "--episodes", undisturbed / "episodes.jsonl", "--candidates", drawn]
    with vllm_server(critic, "critic", tmp_path) as second:
        spec = f"served:{critic},{second.spec},{server.spec}"
        assert sweetrl("rank", *words, "--critic", spec, "-o", tmp_path / "served.jsonl").code == 0
    assert sweetrl("rank", *words, "--critic", critic, "-o", tmp_path / "local.jsonl").code == 0
    served, local = candidates(tmp_path / "served.jsonl"), candidates(tmp_path / "local.jsonl")
    assert len(served) == len(local) == len(candidates(drawn))
    gaps = [
        abs(one - other)
        for each, same in zip(served, local, strict=True)
        for one, other in zip(each.advantages or (), same.advantages or (), strict=True)
    ]
    assert len(gaps) == 8 * len(served)
    assert max(gaps) < 1e-3
    assert len({round(each, 3) for one in local for each in one.advantages or ()}) > len(local)


# ---------------------------------------------------------------- a server that dies


def test_a_killed_server_is_noticed_and_the_run_goes_on_with_a_new_one(
    undisturbed: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with vllm_server(MINI, "mini", tmp_path) as first:
        # The address is part of what dialogues are named after, so theirs differ in nothing else.
        words = rollout_words(first.spec, run, "--concurrency", 4, "--patience", 5, "--quiet")
        command = [sys.executable, "-m", "sweetrl", *words]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            records = run / "episodes.jsonl"
            while process.poll() is None and not (records.exists() and records.read_bytes().count(b"\n") > 4):
                time.sleep(0.02)
            first.kill()
            killed = time.monotonic()
            assert process.stderr is not None
            said = process.stderr.read()
            assert process.wait() == 2
            assert time.monotonic() - killed < 10
    [line] = said.splitlines()
    assert "no connection" in line
    assert line.endswith("start the server and rerun the same command to resume")
    # Dialogues that were open have failed, and are rolled out again.
    kept = [each for each in episodes(run) if each.failure is None]
    assert 4 < len(kept) < 40
    with vllm_server(MINI, "mini", tmp_path, port=first.port):
        subprocess.run(command, check=True)
    found = episodes(run)
    assert all(each in found for each in kept)
    assert [_but_address(each) for each in found] == [_but_address(each) for each in episodes(undisturbed)]


def _but_address(episode: Episode) -> dict[str, Any]:
    """An episode without the name of its agent, in which the port is."""
    fields = {name: getattr(episode, name) for name in episode.__struct_fields__}
    return {**fields, "agent": episode.agent.partition("@")[0]}
