"""The paper's critic with both of its models behind endpoints: vLLM computes the log-probabilities.

The folder says how dialogues are read and turned into tokens, so the servers see exactly the tokens that the critic
in this process reads. Each different output of a turn costs both models the whole history (see
`models/prompt_logprobs.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sweetrl.critics.batched import Reading, nothing, trained_reading
from sweetrl.critics.critic_type import CriticTools, CriticType
from sweetrl.critics.log_ratio import token_credit
from sweetrl.errors import UsageError
from sweetrl.learning.critic_cards import CRITIC_CARD, CriticCard, read_critic_card
from sweetrl.models.concurrency import all_of
from sweetrl.protocols import Choice
from sweetrl.records import fingerprint
from sweetrl.types import Message, Task, TokenCredit, digest

if TYPE_CHECKING:
    from torch import Tensor

    from sweetrl.learning.tokens import EncodedCandidates
    from sweetrl.models.prompt_logprobs import PromptLogprobs


TRAINING_CARD = "sweetrl.json"
USAGE = "served:DIR,openai:CRITIC@URL,openai:REFERENCE@URL"


class ServedCritic:
    """A trained model against the one that its training began with, wherever the two are served."""

    def __init__(
        self,
        model: "PromptLogprobs",
        reference: "PromptLogprobs",
        reading: Reading,
        card: CriticCard,
        *,
        name: str,
    ) -> None:
        self.name = name
        self._model = model
        self._reference = reference
        self._reading = reading
        self._reference_reading = replace(reading, privileged=nothing) if card.plain_reference else reading
        self._normalisation = card.normalisation

    async def advantages(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> list[float]:
        """Log-ratios of the outputs, normalised as in training."""
        return [float(share.sum()) for share in await self._shares(Choice(task, history, outputs))]

    async def token_advantages(
        self, task: Task, history: Sequence[Message], output: str
    ) -> list[TokenCredit]:
        """The share of each token, the end-of-turn token included."""
        [shares] = await self._shares(Choice(task, history, [output]))
        return token_credit(self._reading.encoder, output, shares)

    async def _shares(self, choice: Choice) -> "list[Tensor]":
        """For each output, what each of its tokens adds to the advantage."""
        import torch

        from sweetrl.learning.losses import turn_advantages

        readings = ((self._model, self._reading), (self._reference, self._reference_reading))
        ours, theirs = await all_of(
            _logprobs(model, reading.candidates(*choice)) for model, reading in readings
        )
        return [
            turn_advantages(
                torch.tensor(own) - torch.tensor(other), torch.tensor(len(own)), self._normalisation
            )
            for own, other in zip(ours, theirs, strict=True)
        ]


async def _logprobs(model: "PromptLogprobs", turn: "EncodedCandidates") -> list[list[float]]:
    """The log-probability of each token of each continuation; equal continuations are requested once."""
    different = list(dict.fromkeys(map(tuple, turn.continuations)))
    found = await all_of(model.of(turn.prefix, each) for each in different)
    known = dict(zip(different, found, strict=True))
    return [known[tuple(each)] for each in turn.continuations]


def read_spec(spec: str) -> tuple[str, list[str]]:
    """The folder, and how the two models are called, in what stands after `served:`."""
    folder, *endpoints = spec.split(",openai:")
    if not folder or len(endpoints) != 2:
        raise UsageError(
            f"cannot read 'served:{folder}', which has {len(endpoints)} endpoints; write {USAGE}"
        )
    return folder, [f"openai:{each}" for each in endpoints]


def open_served(spec: str, tools: CriticTools) -> ServedCritic:
    """The critic of a folder, with the two endpoints named after it."""
    folder, endpoints = read_spec(spec)
    card = read_critic_card(Path(folder))
    if card.kind != "advantage" or card.vision:
        raise UsageError(f"{folder}: only a log-ratio critic of texts can be served; give the folder itself")
    model, reference = map(tools.prompt_logprobs, endpoints)
    name = f"served:{Path(folder).name}@{_mark(Path(folder), model.name, reference.name)}"
    return ServedCritic(model, reference, trained_reading(Path(folder), card), card, name=name)


def _mark(folder: Path, *models: str) -> str:
    """Changes with how the critic reads, with every training, and with the servers."""
    cards = [folder / CRITIC_CARD, folder / TRAINING_CARD]
    return digest(" ".join([*(fingerprint(each) for each in cards if each.exists()), *models]))[:8]


CRITIC = CriticType(
    name="served",
    usage=f"{USAGE}, a trained critic that vLLM serves",
    open=open_served,
    argument="served folder",
)
