"""Multi-turn DPO: prefer whole dialogues to others on the same task."""

from typing import TYPE_CHECKING

from sweetrl.domains.domain import lazily
from sweetrl.learning.algorithm import Algorithm, Input, Records, needs_successes

if TYPE_CHECKING:
    from sweetrl.learning.datasets import Dataset, Encoding


def examples(records: Records, encoding: "Encoding") -> "Dataset":
    """Pairs of dialogues and, where verdicts are given, answers that succeeded."""
    from sweetrl.learning.datasets import dialogue_pairs, successful

    successes = successful(records.episodes, records.verdicts or ())
    return dialogue_pairs(records.pairs, records.episodes, encoding, successes=successes)


ALGORITHM = Algorithm(
    name="dpo",
    help="Prefer whole dialogues to others (multi-turn DPO).",
    label="Policy by multi-turn DPO",
    reads={
        "pairs": Input("Pairs of dialogues, from `sweetrl pairs`."),
        "episodes": Input("The dialogues."),
        "verdicts": Input("Which dialogues succeeded, for --sft-weight.", required=False),
        "tasks": Input("Their tasks, if the dialogues are published ones.", required=False),
    },
    examples=examples,
    objective=lazily("sweetrl.learning.objectives:Preference"),
    takes=("beta", "nll_weight", "sft_weight"),
    check=needs_successes("verdicts"),
)
