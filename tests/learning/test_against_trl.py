"""Our DPO beside TRL's on the same model and pairs."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from learning.stored_records import Records
from models.tiny_llama import save_tiny_llama
from sweetrl.learning.algorithms import objective
from sweetrl.learning.batches import collate
from sweetrl.learning.checkpoints import RunFolder, TrainingCard
from sweetrl.learning.datasets import Dataset, Encoding, dialogue_pairs, turn_pairs
from sweetrl.learning.loading import load_tokenizer
from sweetrl.learning.settings import TrainingSettings
from sweetrl.learning.tokens import DialogueEncoder
from sweetrl.learning.trainer import train
from sweetrl.types import Message, Role

pytest.importorskip("trl", reason="needs the package trl")

# Nothing after the end of a turn: TRL would learn that too.
TEMPLATE = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
RATE, BETA = 1e-4, 0.3
RECORDS = Records(4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_tiny_llama(tmp_path_factory.mktemp("model"))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def chat(messages: Any) -> list[dict[str, str]]:
    return [{"role": str(each.role), "content": each.text} for each in messages]


def trl_trainer(model: Path, rows: list[dict[str, Any]], folder: Path) -> Any:
    import datasets
    from trl import DPOConfig, DPOTrainer

    arguments = DPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=len(rows),
        max_steps=1,
        learning_rate=RATE,
        lr_scheduler_type="constant",
        adam_beta2=0.95,
        max_grad_norm=1.0,
        weight_decay=0.0,
        beta=BETA,
        max_length=None,
        bf16=False,
        gradient_checkpointing=False,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
    )
    return DPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        ref_model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        args=arguments,
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=load_tokenizer(str(model)),
    )


def our_card(model: Path, data: Dataset, folder: Path) -> TrainingCard:
    settings = TrainingSettings(
        algorithm="policy",
        epochs=1,
        batch_size=len(data.examples),
        learning_rate=RATE,
        warmup=0.0,
        beta=BETA,
        nll=0.0,
        max_tokens=512,
    )
    run = RunFolder(folder)
    card = run.claim(TrainingCard(model=str(model), settings=settings))
    return train(data, load_tokenizer(str(model)), card, run)


def encoding(model: Path) -> Encoding:
    return Encoding(DialogueEncoder(load_tokenizer(str(model)), max_tokens=512), branch=True)


@pytest.mark.filterwarnings("default")
def test_the_loss_and_one_step_on_single_turns_are_those_of_trl(model: Path, tmp_path: Path) -> None:
    rows = [
        {
            "prompt": chat(pair.history),
            "chosen": [{"role": "assistant", "content": pair.chosen}],
            "rejected": [{"role": "assistant", "content": pair.rejected}],
        }
        for pair in RECORDS.turn_pairs
    ]
    theirs = trl_trainer(model, rows, tmp_path / "theirs")
    theirs.train()
    card = our_card(model, turn_pairs(RECORDS.turn_pairs, encoding(model)), tmp_path / "ours")
    logged = theirs.state.log_history[0]
    assert card.metrics["loss"] == pytest.approx(logged["loss"], abs=1e-5)
    assert card.metrics["grad_norm"] == pytest.approx(logged["grad_norm"], rel=1e-5)
    ours, seed = (AutoModelForCausalLM.from_pretrained(at).state_dict() for at in (tmp_path / "ours", model))
    for name, weight in theirs.model.state_dict().items():
        moved = (weight - seed[name]).abs().mean()
        assert moved > RATE / 10
        torch.testing.assert_close(ours[name], weight, rtol=0, atol=1e-5)
        # The first step of Adam is nearly a sign: where a gradient is rounding error, so is the step.
        assert (ours[name] - weight).abs().mean() < moved / 1000


class HiddenGradients:
    """The gradient that reaches the last hidden state of each token."""

    def __init__(self, model: Any) -> None:
        self._states: list[torch.Tensor] = []
        model.model.register_forward_hook(self._keep)

    def _keep(self, _: Any, __: Any, output: Any) -> None:
        output.last_hidden_state.retain_grad()
        self._states.append(output.last_hidden_state)

    def per_token(self) -> torch.Tensor:
        [states] = self._states
        assert states.grad is not None
        return states.grad.abs().sum(-1)


def multi_turn_row(pair: Any) -> dict[str, Any]:
    chosen, rejected = (RECORDS.episodes[id_] for id_ in (pair.chosen, pair.rejected))
    return {
        "prompt": chat(chosen.history(0)),
        "chosen": chat(whole(chosen)[1:]),
        "rejected": chat(whole(rejected)[1:]),
    }


def whole(played: Any) -> list[Message]:
    last = len(played.turns) - 1
    return [*played.history(last), Message(Role.ASSISTANT, played.turns[last].said)]


def test_only_what_the_agent_said_gets_a_gradient(model: Path) -> None:
    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    gradients = HiddenGradients(network)
    examples = dialogue_pairs(RECORDS.pairs, RECORDS.episodes, encoding(model)).examples
    batch = collate(examples, pad=0)
    settings = TrainingSettings(algorithm="dpo", nll=0.1)
    objective(settings)(network, batch).losses.sum().backward()
    reached = gradients.per_token().flatten()
    learned = torch.zeros_like(reached, dtype=torch.bool)
    learned[batch.predictors] = True
    assert torch.all(reached[~learned] == 0.0)
    assert torch.all(reached[learned] > 0.0)
    # And those predict the agent's tokens, all of them, and nothing else.
    said = sum(turn >= 0 for example in examples for each in example.sequences for turn in each.turns)
    assert int(learned.sum()) <= said == len(batch.targets)


@pytest.mark.filterwarnings("default")
def test_trl_trains_on_what_the_user_said_too(model: Path, tmp_path: Path) -> None:
    rows = [multi_turn_row(pair) for pair in RECORDS.pairs]
    theirs = trl_trainer(model, rows, tmp_path / "theirs")
    gradients = HiddenGradients(theirs.model)
    [inputs] = list(theirs.get_train_dataloader())
    theirs.compute_loss(theirs.model, inputs).backward()
    reached = gradients.per_token()[:, :-1][inputs["completion_mask"][:, 1:] == 1]
    assert torch.all(reached > 0.0)
    [user] = load_tokenizer(str(model)).encode("user\n")[:1]
    assert int((inputs["input_ids"][inputs["completion_mask"] == 1] == user).sum()) > 0
