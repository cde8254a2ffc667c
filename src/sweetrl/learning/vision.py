"""The critic that sees: a vision-language model with a regression head on the mean of all its tokens.

It is shown the reference page as a picture in front of the request (the paper's critic for frontend tasks). It is
trained and asked like the other critics with a head: only the picture, its tokens and its tensors come on top.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, Self

import torch

from sweetrl.errors import DataError
from sweetrl.learning.batches import Example, TokenBatch, collate, rows_of
from sweetrl.learning.critics import CRITIC_CARD, Reading, critic_name, load_network, read_critic_card
from sweetrl.learning.datasets import Encoding
from sweetrl.learning.heads import candidate_scores, load_score_head
from sweetrl.learning.pictures import PictureReader, load_pictures
from sweetrl.learning.settings import CriticKind
from sweetrl.learning.tokens import DialogueEncoder, EncodedSequence
from sweetrl.prompts import Prompt
from sweetrl.types import Episode, Message, Role, Task


class SeeingEncoder(DialogueEncoder):
    """Encodes dialogues in whose first message of the user a picture is shown."""

    def __init__(self, pictures: PictureReader, *, max_tokens: int) -> None:
        """`max_tokens` counts those of the picture too."""
        self._pictures = pictures
        self._shown: Path | None = None
        super().__init__(pictures.tokenizer, max_tokens=max_tokens)

    def showing(self, picture: Path) -> Self:
        """The same encoder with a picture in front of the request."""
        other = copy.copy(self)
        other._shown = picture
        return other

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        prompt = super()._prompt(messages)
        return prompt if self._shown is None else self._pictures.expand(prompt, self._shown)

    def _chat(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """In parts, as templates with pictures have it."""
        chat: list[dict[str, Any]] = []
        waiting = self._shown is not None
        for message in messages:
            parts = [{"type": "text", "text": self._pictures.harmless(message.text)}]
            if waiting and message.role is Role.USER:
                parts.insert(0, {"type": "image"})
                waiting = False
            chat.append({"role": str(message.role), "content": parts})
        return chat


@dataclass(frozen=True)
class SeeingEncoding(Encoding):
    """How records become tokens for a critic that sees; rows never branch."""

    encoder: SeeingEncoder
    picture: Callable[[Task], Path] = field(kw_only=True)
    """Where the picture of a task's reference is."""

    def dialogue(self, episode: Episode, task: Task | None = None) -> tuple[EncodedSequence, ...]:
        """All turns of an episode, in sight of the reference."""
        if task is None:
            raise DataError(f"{episode.id}: a critic that sees needs the task, with its reference page")
        shown = self.picture(task)
        seeing = replace(self, encoder=self.encoder.showing(shown))
        return tuple(replace(each, picture=shown) for each in Encoding.dialogue(seeing, episode, task))


def collate_seeing(examples: Sequence[Example], pictures: PictureReader) -> TokenBatch:
    """One batch of all rows of the examples, with the picture that each of them shows."""
    batch = collate(examples, pad=pictures.pad)
    sequences = [sequence for example in examples for sequence in example.sequences]
    pictured = [sequences[row.pieces[0].sequences[0]].picture for row in rows_of(examples)]
    shown = [picture for picture in pictured if picture is not None]
    return replace(batch, vision=pictures.inputs(shown, batch.ids))


class SeeingCritic:
    """A `TurnCritic` that is shown the reference page."""

    def __init__(
        self,
        model: Any,
        pictures: PictureReader,
        encoder: SeeingEncoder,
        picture: Callable[[Task], Awaitable[Path]],
        *,
        told: str | None,
        system: str | None,
        name: str,
    ) -> None:
        """`picture` finds or makes the picture of a task's reference; `told` is said beside it."""
        self._model = model
        self._pictures = pictures
        self._encoder = encoder
        self._picture = picture
        self._told = told
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
        reading = Reading(self._encoder.showing(picture), lambda _: self._system, lambda _: self._told)
        with self._lock:
            encoded = reading.candidates(task, history, outputs)
            seen = self._pictures.inputs([picture], torch.tensor([encoded.prefix]))
            [found] = candidate_scores(self._model, [encoded], CriticKind.REGRESSION, seen)
        return found


def load_seeing_critic(folder: Path, picture: Callable[[Task], Awaitable[Path]]) -> SeeingCritic:
    """The critic that training left in a folder."""
    card = read_critic_card(folder)
    told = None if card.privileged is None else Prompt(card.privileged, source=str(folder / CRITIC_CARD))
    model = load_network(str(folder), vision=True)
    load_score_head(model, folder)
    pictures = load_pictures(str(folder))
    return SeeingCritic(
        model,
        pictures,
        SeeingEncoder(pictures, max_tokens=card.max_tokens),
        picture,
        told=None if told is None else told.render(),
        system=card.system,
        name=critic_name(f"critic:{folder.name}", card, model),
    )
