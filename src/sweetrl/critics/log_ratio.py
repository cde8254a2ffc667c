"""The paper's critic: log-ratios of a trained model against the model that its training began with.

A trained critic is a folder: a plain Hugging Face model, `critic.json` and, for those with a head, its file.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweetrl.critics.batched import Encoded, Reading, TokenwiseCritic, nothing, trained_reading
from sweetrl.critics.critic_type import CriticTools, CriticType
from sweetrl.errors import DataError, UsageError
from sweetrl.learning.critic_cards import CRITIC_CARD, CriticCard
from sweetrl.learning.settings import Normalisation
from sweetrl.protocols import Choice

if TYPE_CHECKING:
    from torch import Tensor


class LogRatioCritic(TokenwiseCritic):
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

    def _log_ratios(self, read: Sequence[Encoded]) -> "list[list[Tensor]]":
        from sweetrl.learning.candidates import candidate_logprobs

        return _differences(
            candidate_logprobs(self._model, [told for told, _ in read]),
            candidate_logprobs(self._reference, [plain for _, plain in read]),
        )


def _differences(ours: "Sequence[list[Tensor]]", theirs: "Sequence[list[Tensor]]") -> "list[list[Tensor]]":
    return [
        [own - other for own, other in zip(turn, same, strict=True)]
        for turn, same in zip(ours, theirs, strict=True)
    ]


def load(folder: Path, card: CriticCard, _: CriticTools) -> LogRatioCritic:
    """The critic in a folder, and the seed model that its card names."""
    from sweetrl.learning.networks import critic_name, load_network

    model = load_network(str(folder))
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


CRITIC = CriticType(name="log-ratio", cards=("advantage",), load=load)
