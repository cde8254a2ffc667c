"""GRPO by TRL itself on dialogues of ours, and TRL's own reading of our datasets."""

import runpy
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `test-train`")

from datasets import Dataset
from transformers import AutoTokenizer
from trl.data_utils import is_conversational

from conftest import CHECKOUT
from sweetrl.dialogue.rules import Rules
from sweetrl.errors import UsageError
from sweetrl.integrations import trl as ours
from sweetrl.integrations.benchmark import Benchmark
from sweetrl.models.shipped import located
from sweetrl.types import Episode, EpisodePair, Message, Reply, Role, Turn, TurnPair

TASKS = "mini-backend:train:4:7"


@pytest.fixture
def benchmark() -> Any:
    opened = Benchmark(TASKS, "colleague", rules=Rules(turn_limit=8))
    yield opened
    opened.close()


EXAMPLE = runpy.run_path(str(CHECKOUT / "examples/trl_grpo.py"))
SETTINGS: dict[str, Any] = {
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": 96,
    "max_steps": 2,
    "learning_rate": 1e-4,
    "use_cpu": True,
    "report_to": "none",
    "bf16": False,
    "seed": 3,
}


class Watched(ours.DialogueRollout):
    """Keeps what it gave to the trainer."""

    def __init__(self, benchmark: Benchmark) -> None:
        super().__init__(benchmark, seed=5)
        self.given: list[dict[str, list[Any]]] = []

    def __call__(self, prompts: Any, trainer: Any) -> dict[str, list[Any]]:
        self.given.append(super().__call__(prompts, trainer))
        return self.given[-1]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    opened = Benchmark(TASKS, "colleague", rules=Rules(turn_limit=8))
    rollout = Watched(opened)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
        folder = str(tmp_path_factory.mktemp("grpo"))
        trainer = EXAMPLE["trainer_of"](located("mini"), opened, rollout, output_dir=folder, **SETTINGS)
        trainer.train()
    yield trainer, rollout
    opened.close()


def test_grpo_learns_from_rewards_that_differ(run: Any) -> None:
    trainer, rollout = run
    logged = [entry for entry in trainer.state.log_history if "reward_std" in entry]

    assert len(logged) == 2
    rewards = [reward for batch in rollout.given for reward in batch["reward"]]
    assert min(rewards) < max(rewards)
    assert logged[0]["reward"] == pytest.approx(sum(rollout.given[0]["reward"]) / 8)
    assert any(entry["grad_norm"] > 0 for entry in logged)


def test_only_what_the_agent_said_is_learned(run: Any) -> None:
    trainer, rollout = run
    tokenizer = trainer.processing_class
    batch = rollout.given[0]

    for ids, mask in zip(batch["completion_ids"], batch["env_mask"], strict=True):
        assert len(ids) == len(mask)
        assert mask[0] == 1
        turns = sum(now > before for before, now in zip([0, *mask], mask, strict=False))
        told = tokenizer.decode([each for each, own in zip(ids, mask, strict=True) if not own])
        assert told.count("<|agent|>") == turns - 1, "between two turns stands the opening of the next"


def test_the_tokens_are_those_of_the_chat_template(run: Any, benchmark: Benchmark) -> None:
    """A dialogue generated token by token reads as the template writes the finished one."""
    trainer, rollout = run
    tokenizer, batch = trainer.processing_class, rollout.given[0]
    text = tokenizer.decode(batch["prompt_ids"][0] + batch["completion_ids"][0])
    dialogue = benchmark.open(batch["task_id"][0], seed=5)
    for ids in _turns(batch["completion_ids"][0], batch["env_mask"][0]):
        dialogue.say_sync(tokenizer.decode(ids, skip_special_tokens=True))

    chat = benchmark.chat(dialogue)
    rendered = tokenizer.apply_chat_template(chat, tokenize=False)
    assert rendered.startswith(text)
    assert dialogue.conclusion is not None


def test_the_trainer_samples_each_task_as_often_as_it_asked_for(run: Any) -> None:
    _, rollout = run

    for batch in rollout.given:
        assert len(batch["reward"]) == 8
        assert all(batch["task_id"].count(task) == 4 for task in batch["task_id"])


def test_a_prompt_without_a_task_is_refused(benchmark: Benchmark) -> None:
    class Trainer:
        processing_class = AutoTokenizer.from_pretrained(located("mini"))

    with pytest.raises(UsageError, match="names no task"):
        ours.DialogueRollout(benchmark)([[{"role": "user", "content": "hello"}]], Trainer())


def _turns(ids: list[int], mask: list[int]) -> list[list[int]]:
    turns: list[list[int]] = []
    for before, own, token in zip([0, *mask], mask, ids, strict=False):
        if own and not before:
            turns.append([])
        if own:
            turns[-1].append(token)
    return turns


# ---------------------------------------------------------------- datasets

PAIR = TurnPair(
    episode_id="t#0",
    task_id="t",
    turn=0,
    history=(Message(Role.USER, "Please sort."),),
    chosen="Which order?",
    rejected="I WANT TO ANSWER:\nno",
    margin=1.0,
)


def test_turn_pairs_are_rows_that_trl_takes_for_chats() -> None:
    rows = ours.turn_pairs([PAIR], system="Ask.")

    assert rows.column_names == ["prompt", "chosen", "rejected"]
    assert is_conversational(rows[0])
    assert [message["role"] for message in rows[0]["prompt"]] == ["system", "user"]
    assert rows[0]["chosen"] == [{"content": "Which order?", "role": "assistant"}]


def test_a_turn_of_several_pairs_is_labelled_once() -> None:
    rows = ours.labelled_turns([PAIR, PAIR])

    assert [row["label"] for row in rows] == [True, False]
    assert rows[1]["completion"][0]["content"].endswith("no")


def test_dialogue_pairs_have_all_that_follows_the_request() -> None:
    def episode(attempt: int, said: str) -> Episode:
        turns = (Turn("Why?", "Why?", Reply("Because.")), Turn(said, said))
        return Episode(
            task_id="t", attempt=attempt, seed=0, agent="a", collaborator="c", request="Please sort.",
            turns=turns, ending="answered", answer=said,
        )  # fmt: skip

    better, worse = episode(0, "right"), episode(1, "wrong")
    pair = EpisodePair(task_id="t", chosen=better.id, rejected=worse.id, margin=1.0)
    row = ours.dialogue_pairs([pair], [better, worse])[0]

    assert [message["content"] for message in row["chosen"]] == ["Why?", "Because.", "right"]
    assert row["rejected"][-1] == {"content": "wrong", "role": "assistant"}


def test_privileged_prompts_keep_the_reference_apart(benchmark: Benchmark) -> None:
    rows: Dataset = ours.privileged_prompts(benchmark)

    for row, task in zip(rows, benchmark.tasks, strict=True):
        assert row["privileged_context"] == task.secret.reference
        assert task.secret.reference not in str(row["prompt"])
