"""The second stage of SWEET-RL: DPO on pairs of single turns that a critic ranked."""

from typing import TYPE_CHECKING

from sweetrl.domains.domain import lazily
from sweetrl.learning.algorithm import Algorithm, Input, Records, needs_successes

if TYPE_CHECKING:
    from sweetrl.learning.datasets import Dataset, Encoding


def examples(records: Records, encoding: "Encoding") -> "Dataset":
    """Pairs of turns and, where dialogues and verdicts are given, answers that succeeded."""
    from sweetrl.learning.datasets import successful, turn_pairs

    return turn_pairs(records.turn_pairs, encoding, successful(records.episodes, records.verdicts or ()))


ALGORITHM = Algorithm(
    name="policy",
    aliases=("sweet",),
    help="Prefer single turns to others, as a critic ranked them (turn-wise DPO).",
    label="Policy by turn-wise DPO",
    reads={
        "turn_pairs": Input("Pairs of turns, from `sweetrl turn-pairs`."),
        "episodes": Input("Dialogues to imitate, for --sft-weight.", required=False),
        "verdicts": Input("Which dialogues succeeded, for --sft-weight.", required=False),
    },
    examples=examples,
    objective=lazily("sweetrl.learning.objectives:Preference"),
    defaults={"epochs": 1},
    takes=("beta", "nll_weight", "sft_weight"),
    check=needs_successes("episodes", "verdicts"),
)
