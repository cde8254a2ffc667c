"""Turn-level KTO against sums done by hand."""

import json
import math
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from learning.stored_records import Records
from models.tiny_llama import save_tiny_llama, tiny_config
from sweetrl.errors import DataError
from sweetrl.learning.algorithm import Records as Given
from sweetrl.learning.algorithms import default_settings, kto
from sweetrl.learning.batches import Example, collate
from sweetrl.learning.checkpoints import RunFolder, TrainingCard
from sweetrl.learning.datasets import Dataset, Encoding
from sweetrl.learning.loading import load_tokenizer
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.tokens import DialogueEncoder, EncodedSequence
from sweetrl.learning.trainer import train

RECORDS = Records(4)

# Old versions of the same layer are deprecated by libraries that load each other.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_the_loss_by_hand() -> None:
    found = kto.kto_loss(
        torch.tensor([1.0, -2.0]), torch.tensor([True, False]), torch.tensor(0.5), 0.1, (1.0, 3.0)
    )
    assert found.tolist() == pytest.approx(
        [1 - sigmoid(0.1 * (1.0 - 0.5)), 3 * (1 - sigmoid(0.1 * (0.5 - -2.0)))]
    )


def test_chosen_turns_are_desirable_and_a_turn_in_several_pairs_counts_once() -> None:
    turns = kto.labelled_turns([*RECORDS.turn_pairs, *RECORDS.turn_pairs])
    assert len(turns) == 2 * len(RECORDS.turn_pairs)
    chosen = {pair.chosen for pair in RECORDS.turn_pairs}
    assert {turn.output for turn in turns if turn.desirable} == chosen
    assert not chosen & {turn.output for turn in turns if not turn.desirable}


def test_a_mismatched_output_was_said_on_another_task() -> None:
    turns = kto.labelled_turns(RECORDS.turn_pairs)
    next_task = {"t0": "t1", "t1": "t2", "t2": "t3", "t3": "t0"}
    said = {(turn.task_id, turn.output) for turn in turns}
    for turn, other in zip(turns, kto.mismatched(turns), strict=True):
        assert (next_task[turn.task_id], other) in said
    with pytest.raises(DataError, match="on two tasks at least"):
        list(kto.mismatched([turn for turn in turns if turn.task_id == "t0"]))


def test_the_loss_of_a_batch_is_that_of_its_log_ratios_above_the_baseline_of_the_step() -> None:
    torch.manual_seed(0)
    network = LlamaForCausalLM(tiny_config()).eval()
    turn, other = EncodedSequence([5, 6, 7], [-1, 0, 0]), EncodedSequence([5, 6, 9, 4], [-1, -1, 0, 0])
    batch = collate(
        [
            Example("good", (turn, other), reference=(-10.0, -20.0), branch=True),
            Example("bad", (), (other, turn), reference=(-12.0, -15.0), branch=True),
        ],
        pad=0,
    )
    objective = kto.Kto(default_settings("kto", beta=0.3, undesirable_weight=2.0))
    with torch.no_grad():
        own, mismatched = (turn_logprobs(network, batch).sums - batch.reference).view(2, 2).unbind(1)
        assert objective.measure(network, batch).tolist() == mismatched.tolist()
        outcome = objective.given(torch.tensor(1.5))(network, batch)
        below = objective.given(torch.tensor(-1.5))(network, batch)
    good, bad = own.tolist()
    assert outcome.losses.tolist() == pytest.approx(
        [1 - sigmoid(0.3 * (good - 1.5)), 2 * (1 - sigmoid(0.3 * (1.5 - bad)))], rel=1e-4
    )
    assert outcome.metrics["baseline"].tolist() == [1.5, 1.5]
    # The estimate of a divergence is never below zero.
    assert below.metrics["baseline"].tolist() == [0.0, 0.0]


@pytest.fixture(scope="module")
def seed_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("seed"))


def run(model: Path, folder: Path, tokens_per_pass: int, held_out: float = 0.0) -> list[dict[str, float]]:
    tokenizer = load_tokenizer(str(model))
    encoding = Encoding(DialogueEncoder(tokenizer, max_tokens=512), system="Be kind.", branch=True)
    data: Dataset = kto.examples(Given(turn_pairs=RECORDS.turn_pairs), encoding)
    settings = default_settings(
        "kto",
        learning_rate=1e-3,
        batch_size=8,
        epochs=2,
        max_tokens=512,
        tokens_per_pass=tokens_per_pass,
        held_out=held_out,
    )
    with RunFolder(folder) as claimed:
        train(data, tokenizer, claimed.claim(TrainingCard(model=str(model), settings=settings)), claimed)
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if "loss" in line or "held_out_loss" in line]


def test_it_learns_and_the_baseline_is_that_of_the_step_whatever_a_pass_holds(
    seed_model: Path, tmp_path: Path
) -> None:
    whole, parts = run(seed_model, tmp_path / "whole", 20_000), run(seed_model, tmp_path / "parts", 1)
    assert whole[-1]["loss"] < whole[0]["loss"]
    assert max(line["baseline"] for line in whole) > 0.01
    for ours, theirs in zip(whole, parts, strict=True):
        assert theirs["baseline"] == pytest.approx(ours["baseline"], abs=1e-2)
        assert theirs["loss"] == pytest.approx(ours["loss"], abs=1e-3)


def test_the_loss_of_tasks_that_it_does_not_learn_from_is_half_a_weight_at_first(
    seed_model: Path, tmp_path: Path
) -> None:
    measured = [line for line in run(seed_model, tmp_path, 20_000, 0.5) if "held_out_loss" in line]
    # Before the first step all log-ratios are zero, and sigmoid(0) is a half.
    assert measured[0]["held_out_loss"] == pytest.approx(0.5, abs=1e-4)
    assert measured[-1]["held_out_loss"] < 0.5
