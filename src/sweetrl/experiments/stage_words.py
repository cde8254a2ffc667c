"""The stages of a study in plain words, for the quickstart."""

from sweetrl.experiments.pipeline import Stage
from sweetrl.settings import Study

WORDS = {
    "rollout": "the untrained agent runs dialogues to learn from",
    "score": "hidden tests score their answers",
    "pairs": "better dialogues are paired with worse ones on the same task",
    "candidates": "the agent drafts alternatives for each turn",
    "rank": "the critic ranks these alternatives",
    "turn-pairs": "better turns are paired with worse ones",
    "train rft": "{label}: learns from the dialogues that succeeded",
    "train dpo": "{label}: learns from pairs of dialogues",
    "train critic": "a critic who sees the solution learns which turns earned the reward",
    "train policy": "{label}: learns from pairs of turns",
    "evaluate": "{label}: works on tasks that it has never seen",
    "values": "alternatives are played to the end, to measure their true value",
    "select": "some of the dialogues are selected",
}


def in_words(study: Study, stage: Stage) -> str:
    """A stage in plain words."""
    command = " ".join(stage.arguments[: 2 if stage.arguments[0] == "train" else 1])
    method = study.methods.get(stage.output.name)
    label = (method.label if method is not None else "") or stage.output.name
    seed = f"{stage.name.partition('/')[0]}, " if study.seeds > 1 else ""
    return seed + WORDS[command].format(label=label)
