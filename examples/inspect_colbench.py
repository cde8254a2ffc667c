"""ColBench through inspect_ai, and how much each turn of its dialogues is worth.

python examples/inspect_colbench.py openai/gpt-5
"""

import sys

from inspect_ai import eval as evaluate
from inspect_ai.model import Model

import sweetrl
from sweetrl.integrations.inspect_ai import colbench, episodes_of

TASKS = "mini-backend:test:20"


def main(model: str | Model) -> None:
    """Evaluate a model of inspect's, which keeps a log; then read the log."""
    [log] = evaluate(colbench(TASKS, "colleague"), model=model)
    for score in log.results.scores if log.results else ():
        print(score.name, score.metrics["mean"].value)
    credit = sweetrl.credit(TASKS, list(episodes_of(log)), "scripted:mini-backend")
    for each in credit:
        print(each.episode_id, each.turn, each.advantage)


if __name__ == "__main__":
    main(sys.argv[1])
