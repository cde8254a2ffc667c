"""The paper's critic: log-ratios of a trained model against the model that its training began with.

A trained critic is a folder: a plain Hugging Face model, `critic.json` and, for those with a head, its file.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweetrl.critics.batched import BatchedCritic, Encoded, Reading, nothing, trained_reading
from sweetrl.critics.critic_type import CriticTools, CriticType
from sweetrl.errors import DataError, UsageError
from sweetrl.learning.critic_cards import CRITIC_CARD, CriticCard
from sweetrl.learning.settings import Normalisation
from sweetrl.protocols import Choice
from sweetrl.types import Message, Task, TokenCredit

if TYPE_CHECKING:
    from torch import Tensor

    from sweetrl.learning.tokens import DialogueEncoder


class LogRatioCritic(BatchedCritic):
    """The paper's critic: a trained model against the one that its training began with."""

    def __init__(
        self,
        model: Any,
        reference: Any,
        reading: Reading,
        normalisation: Normalisation,
        *,
        name: str,
        plain_reference: bool = False,
    ) -> None:
        """With `plain_reference`, only the model sees the secret: the reference model reads the bare dialogue."""
        super().__init__()
        self._model = model
        self._reference = reference
        self._reading = reading
        self._reference_reading = replace(reading, privileged=nothing) if plain_reference else None
        self._normalisation = normalisation
        self.name = name

    def _encoded(self, choice: Choice) -> Encoded:
        told = self._reading.candidates(*choice)
        plain = self._reference_reading
        return (told, told if plain is None else plain.candidates(*choice))

    async def token_advantages(
        self, task: Task, history: Sequence[Message], output: str
    ) -> list[TokenCredit]:
        """The share of each token, the end-of-turn token included."""
        return await asyncio.to_thread(self._credit, Choice(task, history, [output]))

    def _credit(self, choice: Choice) -> list[TokenCredit]:
        encoder = self._reading.encoder
        with self._lock:
            [[shares]] = self._shares([self._encoded(choice)])
            return token_credit(encoder, choice.outputs[0], shares)

    def _advantages(self, read: Sequence[Encoded]) -> list[list[float]]:
        return [[float(share.sum()) for share in shares] for shares in self._shares(read)]

    def _shares(self, read: Sequence[Encoded]) -> "list[list[Tensor]]":
        """For each output of each choice, what each of its tokens adds to the advantage."""
        import torch

        from sweetrl.learning.candidates import candidate_logprobs
        from sweetrl.learning.losses import turn_advantages

        ours = candidate_logprobs(self._model, [told for told, _ in read])
        theirs = candidate_logprobs(self._reference, [plain for _, plain in read])
        return [
            [
                turn_advantages(own - other, torch.tensor(len(own)), self._normalisation)
                for own, other in zip(turn, same, strict=True)
            ]
            for turn, same in zip(ours, theirs, strict=True)
        ]


def token_credit(encoder: "DialogueEncoder", output: str, shares: "Tensor") -> list[TokenCredit]:
    """The tokens of an output as texts, each with its share of the advantage."""
    texts = _token_texts(encoder.tokenizer, encoder.output(output))
    return [TokenCredit(text, share) for text, share in zip(texts, shares.tolist(), strict=True)]


def _token_texts(tokenizer: Any, tokens: Sequence[int]) -> list[str]:
    """The text of each token; a character made of several tokens is given to the last of them."""
    texts, pending = [], []
    for index, token in enumerate(tokens):
        pending.append(token)
        text = tokenizer.decode(pending, clean_up_tokenization_spaces=False)
        broken = text.endswith("\ufffd") and index + 1 < len(tokens)
        texts.append("" if broken else text)
        pending = pending if broken else []
    return texts


def load(folder: Path, card: CriticCard, tools: CriticTools) -> LogRatioCritic:
    """The critic in a folder, and the seed model that its card names, both in one precision."""
    import torch

    from sweetrl.learning.networks import critic_name, load_network

    model = load_network(str(folder), dtype=getattr(torch, tools.precision) if tools.precision else None)
    reading = trained_reading(folder, card)
    if card.reference is None:
        raise DataError("names no reference model to measure advantages against", path=folder / CRITIC_CARD)
    reference = load_network(card.reference, dtype=model.dtype)
    _check_alike(folder, model, card.reference, reference)
    name = critic_name(f"critic:{folder.name}", card, model, reference)
    return LogRatioCritic(
        model, reference, reading, card.normalisation, name=name, plain_reference=card.plain_reference
    )


def _check_alike(folder: Path, model: Any, reference_path: str, reference: Any) -> None:
    own, other = (
        {name: tuple(w.shape) for name, w in each.state_dict().items()} for each in (model, reference)
    )
    if own != other:
        raise UsageError(
            f"{folder}: the critic ({_described(model)}) is of another architecture than its reference "
            f"{reference_path} ({_described(reference)}); give the model that its training began with"
        )


def _described(model: Any) -> str:
    return f"{model.config.model_type}, {model.num_parameters():,} weights"


CRITIC = CriticType(name="log-ratio", cards=("advantage",), load=load, takes=("precision",))
