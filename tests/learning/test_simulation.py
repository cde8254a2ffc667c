"""Memory of training steps of models with two layers, simulated; each in a process of its own, as `--dry-run` does."""

import json
import subprocess
import sys
from typing import Any

import pytest

MODEL = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 4096,
}
WEIGHTS = 2 * 4096 * 512 + 2 * (3 * 512 * 1024 + 2 * 512 * 512 + 2 * 512 * 256)
"""Without those of the norms."""


def peak(*, shard: bool = True, processes: int = 8, **settings: Any) -> int:
    step = {"model": MODEL, "processes": processes, "shard": shard}
    step["settings"] = {"method": "dpo", "precision": "bfloat16", "max_tokens": 2048, **settings}
    ran = subprocess.run(
        [sys.executable, "-m", "sweetrl.learning.simulation"],
        input=json.dumps(step).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return int(ran.stdout)


@pytest.fixture(scope="module")
def split() -> int:
    return peak(gradient_checkpointing=True)


def test_a_step_takes_more_than_weights_gradients_and_moments_of_its_share(split: int) -> None:
    assert 16 * WEIGHTS / 8 < split < 16 * WEIGHTS / 8 + (1 << 30)


def test_checkpointing_of_activations_saves_memory(split: int) -> None:
    assert split < peak()


def test_a_model_that_is_not_split_takes_more(split: int) -> None:
    assert split + 16 * WEIGHTS * 7 / 8 < 1.1 * peak(shard=False, gradient_checkpointing=True)
