"""What a process keeps of networks for the next command: their weights alone."""

import asyncio
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from models.tiny_llama import save_tiny_llama
from sweetrl.cli import main
from sweetrl.learning import networks
from sweetrl.learning.networks import critic_name, load_network
from sweetrl.models import kept
from sweetrl.models.kept import keep_networks
from sweetrl.models.local import LocalModel
from sweetrl.types import Message, Role, Sampling

ASKED = [Message(Role.USER, "Please write a Python function that returns the average price of the items.")]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("kept") / "llama")


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks are kept until the test ends."""
    monkeypatch.setattr(kept, "_kept", kept._Kept())
    keep_networks()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that weights were read from."""
    read: list[str] = []
    load = AutoModelForCausalLM.from_pretrained

    def noting(path: str, **options: object) -> object:
        read.append(str(path))
        return load(path, **options)

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", noting)
    return read


def reply(path: Path) -> tuple[str, int]:
    """What a model that is opened anew says, and how many tokens it took from earlier texts."""

    async def asked() -> tuple[str, int]:
        model = LocalModel(str(path), name="tiny")
        try:
            sampling = Sampling(max_tokens=12)
            [completion] = await model.complete(ASKED, n=1, sampling=sampling, seed=3)
            return completion.text, model.counters.tokens_reused
        finally:
            await model.close()

    return asyncio.run(asked())


def test_weights_are_read_once_and_nothing_of_what_was_said_is_kept(
    checkpoint: Path, loads: list[str], keeping: None
) -> None:
    first = reply(checkpoint)
    assert first[0]
    assert reply(checkpoint) == first == (first[0], 0)
    assert loads == [str(checkpoint)]


def test_a_process_that_was_not_told_to_reads_them_each_time(checkpoint: Path, loads: list[str]) -> None:
    assert load_network(str(checkpoint)) is not load_network(str(checkpoint))
    assert reply(checkpoint) == reply(checkpoint)
    assert len(loads) == 4


def test_the_mark_of_kept_weights_is_computed_once(
    checkpoint: Path, keeping: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = load_network(str(checkpoint))
    name = critic_name("critic", "", network)
    monkeypatch.setattr(networks, "model_digest", None)
    assert critic_name("critic", "", load_network(str(checkpoint))) == name


def test_precisions_and_purposes_have_networks_of_their_own(checkpoint: Path, keeping: None) -> None:
    import torch

    single, half = load_network(str(checkpoint)), load_network(str(checkpoint), dtype=torch.bfloat16)
    assert single.dtype == torch.float32
    assert half.dtype == torch.bfloat16
    assert load_network(str(checkpoint)) is single


def test_shards_with_kept_models_make_the_records_of_one_process(
    tmp_path: Path, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates of a model, ranked by a critic: in a whole run that keeps nothing, and in shards that keep all."""
    tasks, words = "mini-backend:train:4", ("--agent", "scripted:curious", "--collaborator", "colleague")
    assert main.run(["rollout", "--tasks", tasks, *words, "-o", str(tmp_path), "--quiet"]) == 0
    episodes = ("--tasks", tasks, "--episodes", str(tmp_path / "episodes.jsonl"))
    sampling = ("--agent", "mini", "--agent-max-tokens", "32", "--n", "2", "--concurrency", "1")
    whole, ranked = tmp_path / "candidates.jsonl", tmp_path / "ranked.jsonl"
    ranking = ("rank", *episodes, "--candidates", str(whole), "--critic", "zero:mini")
    assert main.run(["candidates", *episodes, *sampling, "-o", str(whole), "--quiet"]) == 0
    assert main.run([*ranking, "-o", str(ranked), "--quiet"]) == 0
    loads.clear()
    monkeypatch.setattr(kept, "_kept", kept._Kept())
    keep_networks()
    for command, path in ((("candidates", *episodes, *sampling), whole), (ranking, ranked)):
        output, shards = tmp_path / f"sharded-{path.name}", []
        for index in (1, 2, 3):
            shard = ("--shard", f"{index}/3", "-o", str(output), "--quiet")
            assert main.run([*command, *shard]) == 0
            shards.append(str(output.with_name(f"{output.stem}.{index}-of-3.jsonl")))
        assert main.run(["merge", *shards, "-o", str(output), "--quiet"]) == 0
        assert output.read_bytes() == path.read_bytes()
    assert len(loads) == 2
