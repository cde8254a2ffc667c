"""Dialogues with a picture as tokens and tensors, for the vision critic (`critics/vision.py`)."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from sweetrl.errors import DataError
from sweetrl.learning.batches import Example, TokenBatch, collate, rows_of
from sweetrl.learning.datasets import Encoding
from sweetrl.learning.pictures import PictureReader
from sweetrl.learning.tokens import DialogueEncoder, EncodedSequence
from sweetrl.types import Episode, Message, Role, Task


class VisionEncoder(DialogueEncoder):
    """Encodes dialogues in whose first message of the user a picture is shown."""

    def __init__(self, pictures: PictureReader, *, max_tokens: int) -> None:
        """`max_tokens` counts those of the picture too."""
        self._pictures = pictures
        self._shown: Path | None = None
        super().__init__(pictures.tokenizer, max_tokens=max_tokens)

    def showing(self, picture: Path) -> Self:
        """A copy of the encoder that puts a picture in front of the request."""
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
class VisionEncoding(Encoding):
    """Encodes records for a critic that sees; rows never branch."""

    encoder: VisionEncoder
    picture: Callable[[Task], Path] = field(kw_only=True)
    """The path of the picture of a task's reference."""

    def dialogue(self, episode: Episode, task: Task | None = None) -> tuple[EncodedSequence, ...]:
        """All turns of an episode, in sight of the reference."""
        if task is None:
            raise DataError(f"{episode.id}: a critic that sees needs the task, with its reference page")
        shown = self.picture(task)
        seeing = replace(self, encoder=self.encoder.showing(shown))
        return tuple(replace(each, picture=shown) for each in Encoding.dialogue(seeing, episode, task))


def collate_vision(examples: Sequence[Example], pictures: PictureReader) -> TokenBatch:
    """One batch of all rows of the examples, with the picture that each of them shows."""
    batch = collate(examples, pad=pictures.pad)
    sequences = [sequence for example in examples for sequence in example.sequences]
    pictured = [sequences[row.pieces[0].sequences[0]].picture for row in rows_of(examples)]
    shown = [picture for picture in pictured if picture is not None]
    return replace(batch, vision=pictures.inputs(shown, batch.ids))
