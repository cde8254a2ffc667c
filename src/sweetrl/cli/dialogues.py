"""The episodes.jsonl of a command."""

from sweetrl.experiments.stages.rollout import open_episodes

__all__ = ["open_episodes"]
