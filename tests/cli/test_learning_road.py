"""From scored dialogues to a trained policy and credit, with a tiny model: every command on the files before it."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from conftest import Finished
from models.tiny_llama import save_tiny_llama
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.records import read_card, read_records
from sweetrl.types import (
    CandidateSet,
    Ending,
    Episode,
    Reply,
    Task,
    Turn,
    TurnCredit,
    TurnPair,
    Verdict,
    digest,
)

Sweetrl = Callable[..., Finished]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two tasks with two scored dialogues each, and a tiny model."""
    save_tiny_llama(tmp_path / "model", max_position_embeddings=2048)
    tasks, episodes, verdicts = [], [], []
    for number in range(2):
        secret = BackendSecret(f"def f(x):\n    return x + {number}\n", {"test1": "f(1)"})
        tasks.append(Task(id=f"t{number}", domain="backend", request="Write f.", secret=secret))
        for attempt in range(2):
            answer = f"def f(x): return x + {number * attempt}"
            turns = (
                Turn("What is added?", "What is added?", Reply("A number.")),
                Turn(f"I WANT TO ANSWER: {answer}", f"I WANT TO ANSWER: {answer}"),
            )
            held = Episode(
                task_id=f"t{number}",
                attempt=attempt,
                seed=0,
                agent="a",
                collaborator="c",
                request="Write f.",
                turns=turns,
                ending=Ending.ANSWERED,
                answer=answer,
            )
            episodes.append(held)
            verdicts.append(
                Verdict(
                    task_id=held.task_id,
                    episode_id=held.id,
                    scorer="s/1",
                    answer_digest=digest(answer),
                    reward=float(attempt),
                    success=attempt == 1,
                )
            )
    for name, records in (("tasks", tasks), ("episodes", episodes), ("verdicts", verdicts)):
        content = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        (tmp_path / f"{name}.jsonl").write_bytes(content)
    return tmp_path


@pytest.mark.slow
def test_each_command_reads_what_the_one_before_it_wrote(sweetrl: Sweetrl, folder: Path) -> None:
    def done(*words: object) -> None:
        ended = sweetrl(*words, "--quiet")
        assert ended.code == 0, (words, ended.err)

    def at(name: str) -> tuple[str, Path]:
        return f"--{name.replace('_', '-')}", folder / f"{name}.jsonl"

    model = ("--model", folder / "model")
    numbers = ("--max-steps", 2, "--learning-rate", 1e-3, "--batch-size", 2, "--max-tokens", 2048)
    done("pairs", *at("episodes"), *at("verdicts"), "-o", folder / "pairs.jsonl")
    done(
        *("train", "critic", *model, *at("tasks"), *at("episodes"), *at("pairs")),
        *(*numbers, "-o", folder / "critic"),
    )
    agent = ("--agent", f"hf:{folder / 'model'}", "--agent-max-tokens", 8)
    done("candidates", *at("episodes"), *agent, "--n", 4, "-o", folder / "candidates.jsonl")
    critic = ("--critic", folder / "critic")
    ranking = ("rank", *critic, *at("tasks"), *at("episodes"), *at("candidates"))
    done(*ranking, "-o", folder / "ranked.jsonl")
    done(*ranking, "--precision", "bfloat16", "-o", folder / "half.jsonl")
    single, half = (read_card(folder / name).config for name in ("ranked.jsonl", "half.jsonl"))
    assert ("precision" in single, half["precision"]) == (False, "bfloat16")
    assert single["critic"] != half["critic"]
    ended = sweetrl(*ranking, "-o", folder / "half.jsonl")
    assert (ended.code, "belongs to another run" in ended.err) == (2, True)
    done("turn-pairs", *at("ranked"), *at("episodes"), "-o", folder / "turn_pairs.jsonl")
    pairs = ("--pairs", folder / "turn_pairs.jsonl")
    done("train", "policy", *model, *pairs, *numbers, "-o", folder / "policy")

    ranked = list(read_records(folder / "ranked.jsonl", CandidateSet))
    assert len(ranked) == 8
    assert all(each.critic.startswith("critic:") and any(each.advantages or ()) for each in ranked)
    assert list(read_records(folder / "turn_pairs.jsonl", TurnPair))
    assert (folder / "policy" / "config.json").is_file()

    for name, spec in (("trained", folder / "critic"), ("zero", f"zero:hf:{folder / 'model'}")):
        output = folder / f"credit-{name}.jsonl"
        done("credit", "--dialogues", folder / "episodes.jsonl", *at("tasks"), "--critic", spec, "-o", output)
        for each in read_records(output, TurnCredit):
            assert each.advantage is not None
            assert each.tokens
            said = "".join(token.text for token in each.tokens)
            assert said.startswith(("What is added?", "I WANT TO ANSWER: def f"))
            total = sum(token.advantage for token in each.tokens)
            assert total == pytest.approx(each.advantage, abs=1e-6)


@pytest.mark.parametrize("kept", [0, 1, 5, 7])
def test_a_file_ranked_again_in_two_parts_or_backwards_has_the_same_bytes(
    sweetrl: Sweetrl, folder: Path, kept: int
) -> None:
    questions = ("Why?", "What is added?", "What is added?", "I WANT TO ANSWER: def f(x): return x")
    drawn = [
        CandidateSet(episode_id=f"t{number}#{attempt}", task_id=f"t{number}", turn=turn, outputs=questions)
        for number in range(2)
        for attempt in range(2)
        for turn in range(2)
    ]
    content = b"".join(msgspec.json.encode(each) + b"\n" for each in drawn)
    (folder / "candidates.jsonl").write_bytes(content)
    names = ("tasks", "episodes", "candidates")
    files = [word for name in names for word in (f"--{name}", folder / f"{name}.jsonl")]
    given = ("rank", "--critic", f"zero:hf:{folder / 'model'}", *files, "-o")
    for name in ("whole.jsonl", "cut.jsonl"):
        assert sweetrl(*given, folder / name).code == 0
    whole = (folder / "whole.jsonl").read_bytes()
    assert (folder / "cut.jsonl").read_bytes() == whole
    lines = whole.splitlines(keepends=True)
    assert len(lines) == 8
    (folder / "cut.jsonl").write_bytes(b"".join(lines[:kept]) + lines[kept][:20])
    assert sweetrl(*given, folder / "cut.jsonl").code == 0
    assert (folder / "cut.jsonl").read_bytes() == whole

    backwards = b"".join(reversed(content.splitlines(keepends=True)))
    (folder / "candidates.jsonl").write_bytes(backwards)
    assert sweetrl(*given, folder / "backwards.jsonl").code == 0
    assert (folder / "backwards.jsonl").read_bytes() == whole


def test_a_turn_that_the_critic_cannot_read_is_recorded_and_the_others_are_ranked(
    sweetrl: Sweetrl, folder: Path
) -> None:
    long = "I WANT TO ANSWER: " + "x = 1\n" * 1000
    drawn = [
        CandidateSet(episode_id=f"t{number}#0", task_id=f"t{number}", turn=0, outputs=("Why?", outputs))
        for number, outputs in enumerate((long, "What is added?"))
    ]
    content = b"".join(msgspec.json.encode(each) + b"\n" for each in drawn)
    (folder / "candidates.jsonl").write_bytes(content)
    names = ("tasks", "episodes", "candidates")
    files = [word for name in names for word in (f"--{name}", folder / f"{name}.jsonl")]
    critic = ("--critic", f"zero:hf:{folder / 'model'}")
    ended = sweetrl("rank", *critic, *files, "-o", folder / "ranked.jsonl")
    assert ended.code == 1, ended.err
    assert "1 turns, 1 failed" in ended.err
    failed, ranked = sorted(
        read_records(folder / "ranked.jsonl", CandidateSet), key=lambda each: each.episode_id
    )
    assert ranked.advantages is not None
    assert failed.advantages is None
    assert failed.failure is not None
    assert (failed.failure.stage, failed.failure.kind) == ("critic", "context_length")
