import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

from learning.stored_records import Records
from models.tiny_llama import save_tiny_llama, tiny_config
from sweetrl.errors import DataError
from sweetrl.learning import sharding
from sweetrl.learning.heads import SCORE_HEAD, add_score_head
from sweetrl.learning.loading import read_weights
from sweetrl.learning.sharding import load_progress, save_progress, save_whole


@pytest.mark.parametrize("file_bytes", [5 << 30, 100_000])
def test_a_whole_model_is_written_to_one_file_or_many_without_its_score_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_bytes: int
) -> None:
    monkeypatch.setattr(sharding, "MODEL_FILE_BYTES", file_bytes)
    model = LlamaForCausalLM(tiny_config())
    add_score_head(model)
    save_whole(model, tmp_path, without=SCORE_HEAD, main=True)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == (file_bytes < 1 << 20)
    assert read_weights(tmp_path).keys() == LlamaForCausalLM(tiny_config()).state_dict().keys()
    loaded, report = LlamaForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert torch.equal(loaded.lm_head.weight, model.lm_head.weight)


def test_weights_that_are_tied_are_written_once(tmp_path: Path) -> None:
    model = LlamaForCausalLM(tiny_config(tie_word_embeddings=True))
    save_whole(model, tmp_path, without=SCORE_HEAD, main=True)
    assert "lm_head.weight" not in read_weights(tmp_path)
    loaded = LlamaForCausalLM.from_pretrained(tmp_path)
    assert torch.equal(loaded.lm_head.weight, model.lm_head.weight)


ALONE = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")


def trained(
    size: int = 4, more: Sequence[dict[str, list[Any]]] = ()
) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Linear(size, size)
    optimiser = torch.optim.AdamW([{"params": list(model.parameters())}, *more])
    model(torch.ones(size)).sum().backward()
    optimiser.step()
    optimiser.zero_grad()
    return model, optimiser


@ALONE
@pytest.mark.parametrize("more", [[], [{"params": []}]], ids=["one group", "a group without weights"])
def test_weights_and_optimiser_come_back_as_they_were(
    tmp_path: Path, more: list[dict[str, list[Any]]]
) -> None:
    model, optimiser = trained(more=more)
    save_progress(model, optimiser, tmp_path)
    other = torch.nn.Linear(4, 4)
    fresh = torch.optim.AdamW([{"params": list(other.parameters())}, *more])
    load_progress(other, fresh, tmp_path)
    assert torch.equal(other.weight, model.weight)
    assert torch.equal(fresh.state[other.weight]["exp_avg_sq"], optimiser.state[model.weight]["exp_avg_sq"])


@ALONE
@pytest.mark.parametrize("wrong", ["missing", "cut", "another model"])
def test_a_checkpoint_that_cannot_be_read_is_one_clear_line(tmp_path: Path, wrong: str) -> None:
    save_progress(*trained(5 if wrong == "another model" else 4), tmp_path)
    if wrong == "cut":
        for part in (tmp_path / "shards").glob("*.distcp"):
            part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(DataError, match="no checkpoint of this model in shards") as caught:
        load_progress(*trained(), tmp_path / "none" if wrong == "missing" else tmp_path)
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------- real processes


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def sums(folder: Path) -> dict[str, list[float]]:
    lines = [line for file in (folder / "reference").iterdir() for line in file.read_text().split("\n")]
    return {entry["key"]: entry["sums"] for entry in map(json.loads, filter(None, lines))}


def interrupted(words: list[str], checkpoint: Path) -> None:
    """Kill a run, all of its processes, once it has written a checkpoint."""
    process = subprocess.Popen([sys.executable, *words], env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    while not checkpoint.exists():
        assert process.poll() is None
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 2
    for each in (process.pid, *map(int, children)):
        os.kill(each, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--lora-rank", "4"]], ids=["all weights", "adapters"])
def test_a_split_run_that_was_killed_resumes_to_the_weights_of_one_process(
    tmp_path: Path, options: list[str]
) -> None:
    files, seed_model = Records(6).write(tmp_path), save_tiny_llama(tmp_path / "seed")
    given = ["--model", seed_model, *files.options("dpo"), "--learning-rate", "1e-3", "--batch-size", "4"]
    given += ["--epochs", "10", "--save-every", "3", *options]
    words = ["-m", "sweetrl", "train", "dpo", *map(str, given), "-o"]
    alone, split = tmp_path / "alone", tmp_path / "split"
    subprocess.run([sys.executable, *words, str(alone)], env=ENVIRONMENT, check=True, capture_output=True)
    together = [*TORCHRUN, *words, str(split), "--shard"]
    interrupted(together, split / "checkpoints" / "checkpoint-6")
    assert not (split / "config.json").exists()
    ran = subprocess.run([sys.executable, *together], env=ENVIRONMENT, check=True, capture_output=True)
    assert b"resuming from checkpoint-" in ran.stderr
    ours, theirs = (load_file(each / "model.safetensors") for each in (alone, split))
    assert ours.keys() == theirs.keys()
    assert max(float((ours[name] - theirs[name]).abs().max()) for name in ours) < 1e-5
    expected, found = sums(alone), sums(split)
    assert found.keys() == expected.keys()
    assert all(found[key] == pytest.approx(expected[key], rel=1e-5) for key in expected)
