"""ColBench through inspect_ai, and how much each turn of its dialogues is worth.

python examples/inspect_colbench.py openai/gpt-5
"""

import sys

from inspect_ai import eval as evaluate
from inspect_ai.model import Model

import sweetrl
from sweetrl.integrations.inspect_ai import colbench, episodes_of

TASKS = "mini-backend:test:20"


def main(model: str | Model, tasks: str = TASKS) -> None:
    """Evaluate a model of inspect's, which keeps a log; then read the log."""
    [log] = evaluate(colbench(tasks, "colleague"), model=model)
    if log.results is None:
        sys.exit(f"the evaluation broke down: {log.error.message if log.error else log.status}")
    for score in log.results.scores:
        print(score.name, score.metrics["mean"].value)
    credit = sweetrl.credit(tasks, list(episodes_of(log)), "scripted:mini-backend")
    for each in credit:
        print(each.episode_id, each.turn, each.advantage)


if __name__ == "__main__":
    main(sys.argv[1])
