"""The vision critic: a vision-language model with a regression head on the mean of all its tokens.

It is shown the reference page as a picture in front of the request (the paper's critic for frontend tasks). It is
trained and asked like the other critics with a head: only the picture, its tokens and its tensors come on top.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from sweetrl.critics.batched import Reading
from sweetrl.critics.critic_type import CriticTools, CriticType, Picture
from sweetrl.learning.critic_cards import CRITIC_CARD, CriticCard
from sweetrl.learning.settings import CriticKind
from sweetrl.prompts import Prompt
from sweetrl.types import Message, Task

if TYPE_CHECKING:
    from sweetrl.learning.pictures import PictureReader
    from sweetrl.learning.vision import VisionEncoder


class VisionCritic:
    """A `TurnCritic` that is shown the reference page."""

    def __init__(
        self,
        model: Any,
        pictures: "PictureReader",
        encoder: "VisionEncoder",
        picture: Picture,
        *,
        prompt: str | None,
        system: str | None,
        name: str,
    ) -> None:
        """`picture` finds or makes the picture of a task's reference; `prompt` is shown beside it."""
        self._model = model
        self._pictures = pictures
        self._encoder = encoder
        self._picture = picture
        self._prompt = prompt
        self._system = system
        self._lock = Lock()
        self.name = name

    async def advantages(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> list[float]:
        """The head's numbers."""
        picture = await self._picture(task)
        return await asyncio.to_thread(self._scores, task, history, outputs, picture)

    def _scores(
        self, task: Task, history: Sequence[Message], outputs: Sequence[str], picture: Path
    ) -> list[float]:
        import torch

        from sweetrl.learning.heads import candidate_scores

        reading = Reading(self._encoder.showing(picture), lambda _: self._system, lambda _: self._prompt)
        with self._lock:
            encoded = reading.candidates(task, history, outputs)
            seen = self._pictures.inputs([picture], torch.tensor([encoded.prefix]))
            [found] = candidate_scores(self._model, [encoded], CriticKind.REGRESSION, seen)
        return found


def load(folder: Path, card: CriticCard, tools: CriticTools) -> VisionCritic:
    """The critic that training left in a folder."""
    from sweetrl.learning.heads import load_score_head
    from sweetrl.learning.networks import critic_name, load_network
    from sweetrl.learning.pictures import load_pictures
    from sweetrl.learning.vision import VisionEncoder

    picture = tools.pictures()
    prompt = None if card.privileged is None else Prompt(card.privileged, source=str(folder / CRITIC_CARD))
    model = load_network(str(folder), vision=True)
    load_score_head(model, folder)
    pictures = load_pictures(str(folder))
    return VisionCritic(
        model,
        pictures,
        VisionEncoder(pictures, max_tokens=card.max_tokens),
        picture,
        prompt=None if prompt is None else prompt.render(),
        system=card.system,
        name=critic_name(f"critic:{folder.name}", card, model),
    )


CRITIC = CriticType(name="vision", cards=("vision",), load=load)
