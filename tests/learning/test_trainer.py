import asyncio
import json
import math
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from learning.stored_records import Records
from models.tiny_gemma2 import save_tiny_gemma2
from models.tiny_llama import save_tiny_llama
from sweetrl.critics import load_critic
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.errors import DataError, TrainingError
from sweetrl.learning import trainer
from sweetrl.learning.algorithms import default_settings, rft
from sweetrl.learning.batches import collate
from sweetrl.learning.checkpoints import RunFolder, TrainingCard, read_training_card
from sweetrl.learning.critic_cards import tell_secret
from sweetrl.learning.datasets import (
    Dataset,
    Encoding,
    dialogue_pairs,
    successful_dialogues,
    turn_pairs,
)
from sweetrl.learning.loading import load_model, load_tokenizer
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.objectives import Outcome
from sweetrl.learning.run_options import NEVER, Progress, RunOptions
from sweetrl.learning.settings import CriticKind, LoraSettings
from sweetrl.learning.tokens import DialogueEncoder
from sweetrl.learning.trainer import train

RECORDS = Records(6)
SYSTEM = "Be kind."
QUICK = {"learning_rate": 1e-3, "batch_size": 4, "epochs": 2, "max_tokens": 512}

# Old versions of the same layer are deprecated by libraries that load each other.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


@pytest.fixture(scope="module")
def seed_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("seed"))


def examples(model: Path, method: str, *, branch: bool = True) -> Dataset:
    critic = method == "critic"
    prompt = BACKEND.prompts.privileged
    encoding = Encoding(
        DialogueEncoder(load_tokenizer(str(model)), max_tokens=512),
        system=SYSTEM,
        privileged=(lambda task: tell_secret(prompt, task)) if critic else None,
        branch=branch,
    )
    if method == "rft":
        return successful_dialogues(RECORDS.episodes, RECORDS.verdicts, encoding)
    if method == "policy":
        return turn_pairs(RECORDS.turn_pairs, encoding)
    return dialogue_pairs(RECORDS.pairs, RECORDS.episodes, encoding, RECORDS.tasks if critic else None)


def run(
    model: Path,
    folder: Path,
    method: str,
    *,
    run_options: RunOptions | None = None,
    branch: bool = True,
    **changes: Any,
) -> TrainingCard:
    settings = default_settings(method, **{**QUICK, **changes})
    prompt = BACKEND.prompts.privileged.text if method == "critic" else None
    card = TrainingCard(model=str(model), settings=settings, system=SYSTEM, privileged_prompt=prompt)
    with RunFolder(folder) as claimed:
        card = claimed.claim(card)
        data = examples(model, method, branch=branch)
        return train(data, load_tokenizer(str(model)), card, claimed, run_options)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def assert_equal(one: Path, other: Path, *, within: float = 0.0) -> None:
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], rtol=0, atol=within)


@pytest.mark.parametrize("method", ["rft", "dpo", "critic", "policy"])
def test_every_method_learns_what_it_is_for(method: str, seed_model: Path, tmp_path: Path) -> None:
    card = run(seed_model, tmp_path, method, epochs=6)
    losses = [line["loss"] for line in log(tmp_path) if "loss" in line]
    assert losses[-1] < losses[0]
    assert card.finished is not None
    assert read_training_card(tmp_path) == card
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert not torch.equal(model.lm_head.weight, weights(seed_model)["lm_head.weight"])
    assert AutoTokenizer.from_pretrained(tmp_path).chat_template
    assert not list(tmp_path.rglob("*.bin"))


def log(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_the_schedule_rises_then_falls_along_a_cosine_to_a_tenth(seed_model: Path, tmp_path: Path) -> None:
    run(seed_model, tmp_path, "rft", epochs=50, batch_size=6, warmup=0.1)
    rates = [line["learning_rate"] for line in log(tmp_path) if "loss" in line]
    assert len(rates) == 50
    assert rates[:6] == pytest.approx([1e-3 * step / 5 for step in range(6)])
    halfway = 5 + (49 - 4) // 2
    assert rates[halfway] == pytest.approx(1e-3 * (0.1 + 0.9 * (1 + math.cos(math.pi * 22 / 45)) / 2))
    assert rates == sorted(rates[:5]) + sorted(rates[5:], reverse=True)
    assert rates[-1] == pytest.approx(1e-4, rel=0.02)


def test_memory_changes_no_result(seed_model: Path, tmp_path: Path) -> None:
    run(seed_model, tmp_path / "large", "policy", tokens_per_pass=10_000)
    run(seed_model, tmp_path / "small", "policy", tokens_per_pass=1, gradient_checkpointing=True)
    assert_equal(tmp_path / "large", tmp_path / "small", within=1e-5)


def test_shared_histories_change_no_result(seed_model: Path, tmp_path: Path) -> None:
    # One step an epoch: the order of the data depends on the length of rows.
    for branch in (True, False):
        run(seed_model, tmp_path / str(branch), "policy", branch=branch, batch_size=100, epochs=3)
    assert_equal(tmp_path / "True", tmp_path / "False", within=1e-5)


class Interrupted(Exception):  # noqa: N818
    pass


def interrupt(at: int) -> Callable[[Progress], None]:
    def observe(progress: Progress) -> None:
        if progress.step == at:
            raise Interrupted

    return observe


@pytest.mark.parametrize("lora", [None, LoraSettings(rank=4)])
def test_a_run_goes_on_where_it_stopped_to_the_last_bit(
    seed_model: Path, tmp_path: Path, lora: LoraSettings | None
) -> None:
    run(seed_model, tmp_path / "whole", "dpo", epochs=4, lora=lora)
    stopped = RunOptions(save_every=2, observe=interrupt(5))
    with pytest.raises(Interrupted):
        run(seed_model, tmp_path / "parts", "dpo", epochs=4, lora=lora, run_options=stopped)
    assert not (tmp_path / "parts" / "config.json").exists()
    steps: list[int] = []
    resumed = RunOptions(observe=lambda progress: steps.append(progress.step))
    card = run(seed_model, tmp_path / "parts", "dpo", epochs=4, lora=lora, run_options=resumed)
    assert steps == [5, 6, 7, 8]
    assert [line["step"] for line in log(tmp_path / "parts") if "loss" in line] == list(range(1, 9))
    assert_equal(tmp_path / "whole", tmp_path / "parts")
    assert card.finished


def test_a_finished_folder_is_trained_no_further(seed_model: Path, tmp_path: Path) -> None:
    run(seed_model, tmp_path, "rft")
    before = weights(tmp_path)
    steps: list[Progress] = []
    run(seed_model, tmp_path, "rft", run_options=RunOptions(observe=steps.append))
    assert steps == []
    assert all(torch.equal(weight, before[name]) for name, weight in weights(tmp_path).items())


@pytest.mark.parametrize(("minutes", "kept"), [(1, ["checkpoint-2", "checkpoint-4"]), (60, ["checkpoint-4"])])
def test_checkpoints_are_written_by_time(
    seed_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: int, kept: list[str]
) -> None:
    clock = count(step=30)  # each question is half a minute after the last
    monkeypatch.setattr(
        trainer, "time", SimpleNamespace(monotonic=lambda: next(clock), perf_counter=time.perf_counter)
    )
    options = RunOptions(save_every=NEVER, save_minutes=minutes)
    run(seed_model, tmp_path, "rft", run_options=options)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == kept


def test_a_checkpoint_is_a_model_by_itself(seed_model: Path, tmp_path: Path) -> None:
    run(seed_model, tmp_path, "rft", run_options=RunOptions(save_every=1, keep=2))
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["checkpoint-3", "checkpoint-4"]
    AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoints" / "checkpoint-3")
    assert read_training_card(tmp_path / "checkpoints" / "checkpoint-3").finished is None
    assert "Not finished" in (tmp_path / "checkpoints" / "checkpoint-3" / "README.md").read_text()


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_good_checkpoint(
    seed_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = rft.imitation, []

    def explode(model: Any, batch: Any) -> Outcome:
        calls.append(batch)
        outcome = real(model, batch)
        return Outcome(outcome.losses * (math.nan if len(calls) > 3 else 1.0))

    monkeypatch.setattr(rft, "imitation", explode)
    with pytest.raises(
        TrainingError, match=r"the loss is not a number in step 4; .*checkpoint-3; try a lower"
    ):
        run(seed_model, tmp_path, "rft", epochs=4, run_options=RunOptions(save_every=1))
    kept = weights(tmp_path / "checkpoints" / "checkpoint-3")
    assert all(torch.isfinite(weight).all() for weight in kept.values())
    assert not (tmp_path / "model.safetensors").exists()


def test_a_gradient_that_is_no_number_stops_the_run_before_it_changes_a_weight(
    seed_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Any] = []

    def load(*arguments: Any, **options: Any) -> Any:
        model = load_model(*arguments, **options)
        next(model.parameters()).register_hook(lambda gradient: gradient * math.nan)
        loaded.append((model, [weight.detach().clone() for weight in model.parameters()]))
        return model

    monkeypatch.setattr("sweetrl.learning.trainer.load_model", load)
    with pytest.raises(TrainingError, match=r"the gradient is not a number in step 1"):
        run(seed_model, tmp_path, "rft")
    [(model, before)] = loaded
    assert all(torch.equal(now, then) for now, then in zip(model.parameters(), before, strict=True))


def test_a_checkpoint_of_another_architecture_is_refused(seed_model: Path, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(
            seed_model,
            tmp_path / "run",
            "rft",
            run_options=RunOptions(save_every=1, observe=interrupt(3)),
        )
    other = save_tiny_llama(tmp_path / "other", hidden_size=32)
    (other / "model.safetensors").replace(tmp_path / "run/checkpoints/checkpoint-2/model.safetensors")
    with pytest.raises(DataError, match="checkpoint-2: holds another architecture"):
        run(seed_model, tmp_path / "run", "rft")


def test_adapters_leave_a_plain_model_and_themselves(seed_model: Path, tmp_path: Path) -> None:
    run(seed_model, tmp_path, "rft", lora=LoraSettings(rank=4))
    assert (tmp_path / "adapter" / "adapter_config.json").is_file()
    from peft import PeftModel

    merged = AutoModelForCausalLM.from_pretrained(tmp_path)
    adapted = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(seed_model), str(tmp_path / "adapter")
    )
    ids = torch.arange(5, 25)[None]
    torch.testing.assert_close(merged(ids).logits, adapted(ids).logits, rtol=0, atol=1e-4)
    assert weights(tmp_path).keys() == weights(seed_model).keys()


def advantages(critic: Path) -> list[float]:
    judge = load_critic(critic)
    return [
        asyncio.run(
            judge.advantages(RECORDS.tasks[played.task_id], played.history(turn), [played.turns[turn].output])
        )[0]
        for played in RECORDS.episodes.values()
        for turn in range(len(played.turns))
    ]


@pytest.mark.parametrize("lora", [None, LoraSettings(rank=4)])
def test_ranking_reproduces_the_advantages_of_training(
    seed_model: Path, tmp_path: Path, lora: LoraSettings | None
) -> None:
    run(seed_model, tmp_path, "critic", lora=lora)
    seed, trained = (AutoModelForCausalLM.from_pretrained(each) for each in (seed_model, tmp_path))
    batch = collate(examples(seed_model, "critic").examples, pad=0)
    with torch.no_grad():
        means = turn_logprobs(trained, batch).means - turn_logprobs(seed, batch).means
    # A pair has the turns of the first attempt, then those of the second: the order of the episodes.
    assert advantages(tmp_path) == pytest.approx(means.tolist(), abs=1e-5)
    assert max(map(abs, means.tolist())) > 0.01


def test_a_model_that_caps_the_logits_of_attention_is_trained_and_judges(tmp_path: Path) -> None:
    seed_model = save_tiny_gemma2(tmp_path / "seed")
    card = run(seed_model, tmp_path / "critic", "critic", branch=False, epochs=4)
    assert card.metrics["accuracy"] > 0.5
    seed, trained = (AutoModelForCausalLM.from_pretrained(each) for each in (seed_model, tmp_path / "critic"))
    batch = collate(examples(seed_model, "critic", branch=False).examples, pad=0)
    with torch.no_grad():
        means = turn_logprobs(trained, batch).means - turn_logprobs(seed, batch).means
    assert advantages(tmp_path / "critic") == pytest.approx(means.tolist(), abs=1e-5)


@pytest.mark.parametrize("kind", [CriticKind.VALUE, CriticKind.REGRESSION])
@pytest.mark.parametrize("lora", [None, LoraSettings(rank=4)])
def test_a_critic_with_a_head_tells_good_dialogues_from_bad_ones(
    seed_model: Path, tmp_path: Path, kind: CriticKind, lora: LoraSettings | None
) -> None:
    rate = 1e-3 if lora is None else 1e-2
    card = run(seed_model, tmp_path, "critic", kind=kind, lora=lora, epochs=10, learning_rate=rate)
    assert card.metrics["accuracy"] > 0.9
    assert weights(tmp_path).keys() == weights(seed_model).keys()
    assert len(set(advantages(tmp_path))) > 1


def test_a_head_survives_an_interruption(seed_model: Path, tmp_path: Path) -> None:
    run(seed_model, tmp_path / "whole", "critic", kind="value")
    stopped = RunOptions(save_every=1, observe=interrupt(3))
    with pytest.raises(Interrupted):
        run(seed_model, tmp_path / "parts", "critic", kind="value", run_options=stopped)
    run(seed_model, tmp_path / "parts", "critic", kind="value")
    assert_equal(tmp_path / "whole", tmp_path / "parts")
    head, other = (load_file(tmp_path / name / "score_head.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(weight, other[name]) for name, weight in head.items())


def test_the_log_can_be_read_by_tensorboard(seed_model: Path, tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("tensorboard")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "tensorboard"))
    run(seed_model, tmp_path / "run", "rft", run_options=RunOptions(reports=("tensorboard",)))
    assert list((tmp_path / "tensorboard").glob("events.*"))
