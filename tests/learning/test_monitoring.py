import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from learning.stored_records import Records
from models.tiny_llama import save_tiny_llama
from sweetrl.errors import DataError
from sweetrl.learning.algorithms import default_settings, objective
from sweetrl.learning.batches import Example, collate
from sweetrl.learning.checkpoints import RunFolder, TrainingCard
from sweetrl.learning.datasets import Dataset, Encoding, dialogue_pairs, successful_dialogues, turn_pairs
from sweetrl.learning.loading import load_model, load_tokenizer
from sweetrl.learning.monitoring import Monitor, hold_out, mean_turn_tokens, token_kl
from sweetrl.learning.run_options import Progress, RunOptions
from sweetrl.learning.settings import TrainingSettings
from sweetrl.learning.tokens import DialogueEncoder, EncodedSequence
from sweetrl.learning.trainer import train

RECORDS = Records(6)
QUICK = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 2, "max_tokens": 512}

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


@pytest.fixture(scope="module")
def seed_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("seed"))


def examples(model: Path, method: str) -> Dataset:
    encoding = Encoding(DialogueEncoder(load_tokenizer(str(model)), max_tokens=512), branch=True)
    if method == "rft":
        return successful_dialogues(RECORDS.episodes, RECORDS.verdicts, encoding)
    if method == "policy":
        return turn_pairs(RECORDS.turn_pairs, encoding, RECORDS.episodes.values())
    return dialogue_pairs(RECORDS.pairs, RECORDS.episodes, encoding)


def run(model: Path, folder: Path, method: str, run_options: RunOptions, **changes: Any) -> TrainingCard:
    settings = default_settings(method, **{**QUICK, **changes})
    with RunFolder(folder) as claimed:
        card = claimed.claim(TrainingCard(model=str(model), settings=settings))
        return train(examples(model, method), load_tokenizer(str(model)), card, claimed, run_options)


def monitor(model: Path, method: str = "rft", **changes: Any) -> Monitor:
    settings = default_settings(method, **{**QUICK, **changes})
    data, held_out = hold_out(examples(model, method), settings)
    return Monitor(data.examples, held_out, settings, objective(settings), lambda some: collate(some, pad=0))


def log(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def measured(folder: Path) -> list[dict[str, float]]:
    return [line for line in log(folder) if "chosen_turn_tokens" in line]


# ---------------------------------------------------------------- KL


def test_the_kl_of_a_token_is_the_sum_over_the_vocabulary() -> None:
    model = torch.tensor([[0.5, 0.5], [0.9, 0.1], [0.25, 0.75]]).log()
    base = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.5, 0.5]]).log()
    by_hand = [
        0.5 * math.log(5 / 9) + 0.5 * math.log(5),
        0.0,
        0.25 * math.log(1 / 2) + 0.75 * math.log(3 / 2),
    ]
    assert token_kl(model, base).tolist() == pytest.approx(by_hand, abs=1e-6)


def test_kl_is_the_mean_over_the_tokens_that_the_agent_said(seed_model: Path) -> None:
    watched = monitor(seed_model)
    base, model = (load_model(str(seed_model), watched.settings) for _ in range(2))
    watched.start(base)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.3)
    divergences = []
    for sequence in [each for example in watched.examples for each in example.sequences]:
        ids = torch.tensor([sequence.ids])
        with torch.no_grad():
            now, before = (each(input_ids=ids).logits[0].softmax(-1) for each in (model, base))
        kl = (now * (now / before).log()).sum(-1)
        divergences += [float(kl[at - 1]) for at, turn in enumerate(sequence.turns) if turn >= 0]
    expected = sum(divergences) / len(divergences)
    assert expected > 1e-3
    assert watched.measure(model)["kl"] == pytest.approx(expected, rel=1e-4)


def test_only_as_many_distributions_are_kept_as_memory_allows(
    seed_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = monitor(seed_model)
    model = load_model(str(seed_model), watched.settings)
    monkeypatch.setattr("sweetrl.learning.monitoring.DISTRIBUTIONS_KEPT", 10 * model.config.vocab_size)
    watched.start(model)
    assert watched._base is not None
    assert sum(len(each) for each in watched._base) <= 10 + len(watched._base)
    assert watched.measure(model)["kl"] == pytest.approx(0, abs=1e-6)


# ---------------------------------------------------------------- lengths


def test_turns_are_counted_with_the_token_that_ends_them() -> None:
    sequences = [
        EncodedSequence([7] * 6, [-1, 0, 0, -1, 1, 1]),
        EncodedSequence([7] * 6, [-1, 2, 2, 2, 2, 2]),
    ]
    assert mean_turn_tokens(sequences) == 3.0
    assert mean_turn_tokens([]) is None


def test_a_sampled_turn_ends_with_its_first_end_of_turn(
    seed_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = monitor(seed_model)
    model = load_model(str(seed_model), watched.settings)
    end = watched._ends

    def generate(prompts: torch.Tensor, **_: object) -> torch.Tensor:
        # Two, three and one token, and one turn that is cut off after four.
        said = torch.tensor([[5, end, end, end], [5, 6, end, end], [end, end, end, end], [5, 6, 7, 8]])
        return torch.cat([prompts[:4], said], dim=1)

    monkeypatch.setattr(model, "generate", generate)
    assert watched.measure(model)["turn_tokens"] == 2.5


def test_the_same_model_writes_turns_of_the_same_length(seed_model: Path) -> None:
    watched = monitor(seed_model)
    model = load_model(str(seed_model), watched.settings)
    assert watched.measure(model) == watched.measure(model)


# ---------------------------------------------------------------- held-out examples


def tasks_of(some: list[Example]) -> set[str]:
    return {example.task for example in some}


@pytest.mark.parametrize("method", ["rft", "dpo", "policy"])
def test_a_task_is_held_out_with_all_of_its_examples(method: str, seed_model: Path) -> None:
    data = examples(seed_model, method)
    kept, held_out = hold_out(data, default_settings(method, held_out=0.34))
    assert len(tasks_of(held_out)) == 2
    assert tasks_of(kept.examples) == {f"t{number}" for number in range(6)} - tasks_of(held_out)
    assert len(kept.examples) + len(held_out) == len(data.examples)


def test_the_seed_decides_which_tasks_are_held_out(seed_model: Path) -> None:
    data = examples(seed_model, "dpo")

    def chosen(seed: int) -> frozenset[str]:
        return frozenset(tasks_of(hold_out(data, default_settings("dpo", held_out=0.34, seed=seed))[1]))

    assert chosen(3) == chosen(3)
    assert len({chosen(seed) for seed in range(8)}) > 1


def test_nothing_is_held_out_unless_asked_for(seed_model: Path) -> None:
    data = examples(seed_model, "dpo")
    assert hold_out(data, default_settings("dpo")) == (data, [])


def test_a_single_task_cannot_be_held_out(seed_model: Path) -> None:
    data = examples(seed_model, "dpo")
    alone = replace(data, examples=[each for each in data.examples if each.task == "t0"])
    with pytest.raises(DataError, match="about one task"):
        hold_out(alone, default_settings("dpo", held_out=0.1))


def test_the_held_out_loss_is_the_mean_over_the_held_out_examples(seed_model: Path) -> None:
    watched = monitor(seed_model, held_out=0.34)
    model = load_model(str(seed_model), watched.settings)
    total = tokens = 0.0
    for sequence in [each for example in watched.held_out for each in example.sequences]:
        with torch.no_grad():
            logprobs = model(input_ids=torch.tensor([sequence.ids])).logits[0].log_softmax(-1)
        said = [at for at, turn in enumerate(sequence.turns) if turn >= 0]
        total -= sum(float(logprobs[at - 1, sequence.ids[at]]) for at in said)
        tokens += len(said)
    assert watched.measure(model)["held_out_loss"] == pytest.approx(total / tokens, rel=1e-4)


# ---------------------------------------------------------------- a run


@pytest.mark.parametrize("method", ["rft", "policy"])
def test_monitoring_changes_no_weight(method: str, seed_model: Path, tmp_path: Path) -> None:
    for moments in (0, 3):
        run(seed_model, tmp_path / str(moments), method, RunOptions(monitor=moments))
    unwatched, watched = ((tmp_path / each / "model.safetensors").read_bytes() for each in ("0", "3"))
    assert unwatched == watched
    assert not measured(tmp_path / "0")


def test_measuring_leaves_the_random_numbers_of_training_alone(seed_model: Path) -> None:
    watched = monitor(seed_model)
    model = load_model(str(seed_model), watched.settings).train()
    before = torch.random.get_rng_state()
    watched.start(model)
    watched.measure(model)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert model.training


def test_a_run_is_measured_before_its_first_step_and_after_equal_parts(
    seed_model: Path, tmp_path: Path
) -> None:
    run(seed_model, tmp_path, "policy", RunOptions(monitor=4), max_steps=12, held_out=0.2)
    lines = measured(tmp_path)
    assert [line["step"] for line in lines] == [0, 3, 6, 9, 12]
    assert lines[0]["kl"] == pytest.approx(0, abs=1e-6)
    assert lines[-1]["kl"] > 1e-3
    assert all({"turn_tokens", "rejected_turn_tokens", "held_out_loss"} <= line.keys() for line in lines)
    # Each step still has its own line, with what is its own.
    assert [line["step"] for line in log(tmp_path) if "loss" in line] == list(range(1, 13))
    assert all(("accuracy" in line) == ("loss" in line) for line in log(tmp_path)[:-1])


def test_a_loss_is_called_held_out_only_if_it_is(seed_model: Path, tmp_path: Path) -> None:
    run(seed_model, tmp_path, "rft", RunOptions(monitor=1))
    assert not any("held_out_loss" in line for line in measured(tmp_path))


def test_a_critic_writes_no_turns(seed_model: Path, tmp_path: Path) -> None:
    run(seed_model, tmp_path, "critic", RunOptions(monitor=1))
    assert all(line["kl"] >= -1e-6 and "turn_tokens" not in line for line in measured(tmp_path))


def test_a_critic_with_a_head_has_no_kl(seed_model: Path, tmp_path: Path) -> None:
    run(seed_model, tmp_path, "critic", RunOptions(monitor=1), kind="value", held_out=0.2)
    assert [line.keys() & {"kl", "held_out_loss"} for line in measured(tmp_path)] == [{"held_out_loss"}] * 2


class Interrupted(Exception):  # noqa: N818
    pass


def test_a_resumed_run_measures_what_an_uninterrupted_one_does(seed_model: Path, tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.step == 5:
            raise Interrupted

    options: dict[str, Any] = {"max_steps": 8, "held_out": 0.2}
    run(seed_model, tmp_path / "whole", "rft", RunOptions(monitor=4, save_every=4), **options)
    with pytest.raises(Interrupted):
        run(seed_model, tmp_path / "parts", "rft", RunOptions(4, monitor=4, observe=stop), **options)
    run(seed_model, tmp_path / "parts", "rft", RunOptions(4, monitor=4), **options)
    assert measured(tmp_path / "parts") == measured(tmp_path / "whole")


def test_the_sample_grows_with_the_run_within_bounds() -> None:
    some = [Example(str(at), (EncodedSequence([1, 2], [-1, 0]),)) for at in range(5000)]

    def size(number: int, **changes: Any) -> int:
        settings: TrainingSettings = default_settings("rft", **changes)
        return len(Monitor(some[:number], [], settings, objective(settings), collate)._sample)  # type: ignore[arg-type]

    assert [size(4, epochs=1), size(100, epochs=1), size(1000, epochs=4), size(5000, epochs=50)] == [
        4,
        8,
        20,
        64,
    ]
