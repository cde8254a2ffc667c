"""Shared code of critics that run language models in this process: reading dialogues, and batching turns.

Turns that are scored together share the networks' runs (see `learning/candidates.py`).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock

from sweetrl.errors import ModelError, StageError
from sweetrl.learning.critic_cards import CRITIC_CARD, CriticCard, tell_secret
from sweetrl.learning.gathering import Gathering
from sweetrl.learning.tokens import DialogueEncoder, EncodedCandidates, TooLongError
from sweetrl.prompts import Prompt
from sweetrl.protocols import Choice
from sweetrl.types import Message, Task


def nothing(_: Task) -> None:
    """No prompt, for a critic that sees no secret."""
    return


@dataclass(frozen=True)
class Reading:
    """How a critic reads a task and a dialogue: as it was trained to."""

    encoder: DialogueEncoder
    system: Callable[[Task], str | None] = nothing
    """The agent's prompt."""
    privileged: Callable[[Task], str | None] = nothing
    """The text about the secret that the critic reads."""

    def candidates(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> EncodedCandidates:
        """The tokens of a history and of each output."""
        try:
            return self.encoder.candidates(
                history, outputs, system=self.system(task), privileged=self.privileged(task), name=task.id
            )
        except TooLongError as error:
            # The critic cannot score this item; the others continue.
            raise ModelError(f"{error.reason} that the critic reads", kind="context_length") from error


Encoded = tuple[EncodedCandidates, ...]


class BatchedCritic:
    """A critic whose networks score together all turns that wait for it at the same time."""

    _reading: Reading

    def __init__(self) -> None:
        # One thread at a time: networks are hooked into while they run, and tokenizers refuse a second thread.
        self._lock = Lock()
        self._gathering = Gathering[Choice, list[float]](self._score)

    async def advantages(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> list[float]:
        """Log-ratios of the outputs, normalised as in training, or the numbers of a head."""
        return await self._gathering.ask(Choice(task, history, outputs))

    async def judge_together(self, choices: Sequence[Choice]) -> list[list[float] | StageError]:
        """The advantages of each choice. A choice that is too long for the critic fails alone."""
        return await asyncio.to_thread(self._score, choices)

    def _score(self, choices: Sequence[Choice]) -> list[list[float] | StageError]:
        with self._lock:
            read = [self._read(choice) for choice in choices]
            readable = [each for each in read if not isinstance(each, StageError)]
            scored = iter(self._advantages(readable) if readable else [])
        return [each if isinstance(each, StageError) else next(scored) for each in read]

    def _read(self, choice: Choice) -> Encoded | StageError:
        try:
            return self._encoded(choice)
        except StageError as error:
            return error

    def _encoded(self, choice: Choice) -> Encoded:
        """Everything that the networks must read to score a choice."""
        return (self._reading.candidates(*choice),)

    def _advantages(self, read: Sequence[Encoded]) -> list[list[float]]:
        """For each choice, one number per output."""
        raise NotImplementedError


def trained_reading(folder: Path, card: CriticCard) -> Reading:
    """How a trained critic reads: as its card says."""
    from sweetrl.learning.networks import load_encoder

    encoder = load_encoder(str(folder), card.max_tokens)
    if card.privileged is None:
        return Reading(encoder, lambda _: card.system)
    prompt = Prompt(card.privileged, source=str(folder / CRITIC_CARD))
    return Reading(encoder, lambda _: card.system, partial(tell_secret, prompt))
