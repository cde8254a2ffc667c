"""The card of a trained critic, `critic.json`: what must be known of a model to use it as a critic."""

from pathlib import Path
from typing import Literal

from msgspec import Struct

from sweetrl.domains.registry import reference_text
from sweetrl.errors import DataError
from sweetrl.learning.settings import Normalisation
from sweetrl.prompts import Prompt
from sweetrl.records import read_json, write_json
from sweetrl.types import Task

CRITIC_CARD = "critic.json"
EVEN_CHANCE = 0.5
"""The chance of success where a critic learns from pairs: one of two succeeds."""


class CriticCard(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The properties of a trained model that are needed to use it as a critic."""

    schema: Literal["critic/1"] = "critic/1"
    kind: str
    """Which file of `critics/` opens it, if `vision` does not say so: advantage, value or regression."""
    normalisation: Normalisation = Normalisation.TURN_MEAN
    """The length normalisation of an advantage critic."""
    beta: float = 0.1
    """That its loss was computed with; advantages are without it."""
    reference: str | None = None
    """The seed model: a folder or a name on the hub. None for critics with a head."""
    plain_reference: bool = False
    """Whether the seed model reads turns without the secret when they are ranked, as in the published code."""
    privileged: str | None = None
    """The text around the secret, with the field {hidden_information}; None if the critic sees no secret."""
    system: str | None = None
    """The agent's prompt."""
    max_tokens: int
    """Context: longer histories lose their oldest turns."""
    start: float = EVEN_CHANCE
    """A value function's value before the first turn: the share of successes that it was trained on."""
    vision: bool = False
    """Whether it is shown the reference page as a picture (see `vision.py`)."""


def write_critic_card(folder: Path, card: CriticCard) -> None:
    """Make a model's folder a critic."""
    write_json(folder / CRITIC_CARD, card)


def read_critic_card(folder: Path) -> CriticCard:
    """The card in the folder of a critic."""
    if not (folder / CRITIC_CARD).exists():
        raise DataError(
            f"has no {CRITIC_CARD}: not a critic; train one with `sweetrl train critic`", path=folder
        )
    return read_json(folder / CRITIC_CARD, CriticCard, "the card of a critic")


def tell_secret(prompt: Prompt, task: Task) -> str:
    """The text about a task's secret that a critic reads."""
    return prompt.render(hidden_information=reference_text(task))
