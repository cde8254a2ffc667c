"""GRPO by TRL on whole dialogues with a person: the replies are masked out of the loss, the reward is the scorer's.

python examples/trl_grpo.py path/to/model
"""

import sys
from typing import Any

from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from sweetrl.integrations.benchmark import Benchmark
from sweetrl.integrations.trl import DialogueRollout, prompts, reward


def trainer_of(model: str, benchmark: Benchmark, rollout: DialogueRollout, **settings: Any) -> GRPOTrainer:
    """A trainer of the model in a folder or on the hub; `max_completion_length` limits one turn."""
    defaults = {"num_generations": 8, "max_completion_length": 256, "logging_steps": 1}
    return GRPOTrainer(
        AutoModelForCausalLM.from_pretrained(model),
        processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
        train_dataset=prompts(benchmark),
        rollout_func=rollout,
        reward_funcs=reward,
        args=GRPOConfig(**{**defaults, **settings}),
    )


def main(model: str) -> None:
    """Train the model, and leave it in runs/grpo."""
    benchmark = Benchmark("mini-backend:train:100", "colleague")
    trainer = trainer_of(model, benchmark, DialogueRollout(benchmark, seed=1), output_dir="runs/grpo")
    trainer.train()
    trainer.save_model()
    benchmark.close()


if __name__ == "__main__":
    main(sys.argv[1])
