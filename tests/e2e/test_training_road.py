"""The whole road on a real language model: critic, candidates, rank, turn pairs, policy."""

import json
from pathlib import Path

import msgspec
import pytest

from models.smollm2 import require_smollm2
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.types import Ending, Episode, Reply, Task, Turn, Verdict, digest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ANSWERS = ("def double(x):\n    return 2 * x", "def double(x):\n    return x")


def write(path: Path, records: list[object]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in records))
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Two dialogues on one task, of which the first succeeded."""
    secret = BackendSecret(ANSWERS[0], {"one": "double(2)"})
    task = Task(id="double", domain="backend", request="Write double(x).", secret=secret)
    questions = ("Should it return 2 * x?", "Do you like cats?")
    episodes = [
        Episode(
            task_id="double",
            attempt=attempt,
            seed=0,
            agent="a",
            collaborator="c",
            request=task.request,
            turns=(
                Turn(questions[attempt], questions[attempt], Reply("Yes.")),
                Turn(f"I WANT TO ANSWER:\n{answer}", f"I WANT TO ANSWER:\n{answer}"),
            ),
            ending=Ending.ANSWERED,
            answer=answer,
        )
        for attempt, answer in enumerate(ANSWERS)
    ]
    verdicts = [
        Verdict(
            task_id="double",
            episode_id=each.id,
            scorer="s/1",
            answer_digest=digest(each.answer),
            reward=1.0 - each.attempt,
            success=each.attempt == 0,
        )
        for each in episodes
    ]
    (tmp_path / "prompt.txt").write_text("Help your colleague. Ask, then answer.")
    return {
        "tasks": write(tmp_path / "tasks.jsonl", [task]),
        "episodes": write(tmp_path / "episodes.jsonl", episodes),
        "verdicts": write(tmp_path / "verdicts.jsonl", verdicts),
        "agent-prompt": tmp_path / "prompt.txt",
    }


def test_smollm2_goes_from_dialogues_to_a_trained_policy(
    sweetrl, files: dict[str, Path], tmp_path: Path
) -> None:
    model = require_smollm2()

    def given(*names: str) -> list[object]:
        return [word for name in names for word in (f"--{name}", files[name])]

    def do(*arguments: object) -> None:
        finished = sweetrl(*arguments)
        assert finished.code == 0, finished.err

    lora = ["--lora-rank", "4", "--learning-rate", "1e-3", "--max-tokens", "512"]
    files["pairs"] = tmp_path / "pairs.jsonl"
    do("pairs", *given("episodes", "verdicts"), "-o", files["pairs"])
    critic = tmp_path / "critic"
    told = given("pairs", "episodes", "tasks", "agent-prompt")
    do("train", "critic", "--model", model, *told, *lora, "--epochs", "4", "-o", critic)
    metrics = json.loads((critic / "sweetrl.json").read_text())["metrics"]
    assert metrics["margin"] > 0

    files["candidates"] = tmp_path / "candidates.jsonl"
    draw = ["--agent", f"hf:{model}", "--n", "4", "--agent-max-tokens", "8"]
    do("candidates", *given("episodes", "agent-prompt"), *draw, "-o", files["candidates"])
    files["ranked"] = tmp_path / "ranked.jsonl"
    do("rank", "--critic", critic, *given("tasks", "episodes", "candidates"), "-o", files["ranked"])
    turn_pairs = tmp_path / "turn_pairs.jsonl"
    do("turn-pairs", *given("ranked", "episodes"), "--pairs", "2", "-o", turn_pairs)

    policy = tmp_path / "policy"
    options = [*given("agent-prompt"), *lora, "--pairs", turn_pairs]
    do("train", "policy", "--model", model, *options, "--epochs", "3", "-o", policy)
    losses = [json.loads(line).get("loss") for line in (policy / "log.jsonl").read_text().splitlines()]
    assert losses[-2] < losses[0]

    from transformers import AutoModelForCausalLM, AutoTokenizer

    trained, tokenizer = AutoModelForCausalLM.from_pretrained(policy), AutoTokenizer.from_pretrained(policy)
    chat = [{"role": "user", "content": "Write double(x)."}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt")
    reply = trained.generate(**prompt, max_new_tokens=4, do_sample=False)
    assert reply.shape[1] > prompt["input_ids"].shape[1]
