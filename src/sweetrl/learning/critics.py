"""Critics made of language models in this process: they judge turns with the task's secret in hand.

    LogRatioCritic   log pi_theta - log pi_ref of a trained model against its seed model (the paper's); of a model
                     against itself, once with the secret and once without, it needs no training
    HeadCritic       a number from a trained head: a value function, or a regression

A trained critic is a folder: a plain Hugging Face model, `critic.json` and, for those with a head, its file.
Turns that are judged together share the networks' runs (see `candidates.py`).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import msgspec
import torch
from msgspec import Struct
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer

from sweetrl.domains.registry import domain_of, reference_text
from sweetrl.errors import DataError, ModelError, StageError, UsageError
from sweetrl.learning.candidates import candidate_logprobs
from sweetrl.learning.gathering import Gathering
from sweetrl.learning.heads import candidate_scores, load_score_head
from sweetrl.learning.losses import Normalisation, turn_advantages
from sweetrl.learning.reference import model_digest
from sweetrl.learning.settings import CriticKind
from sweetrl.learning.tokens import DialogueEncoder, EncodedCandidates, TooLongError
from sweetrl.models.local.network import GROUPED_ATTENTION, no_progress_bars
from sweetrl.models.shipped import located
from sweetrl.prompts import Prompt, agent_instructions
from sweetrl.protocols import Choice, TurnCritic
from sweetrl.records import unreadable, write_atomically
from sweetrl.types import Message, Role, Task, TokenCredit, digest

CRITIC_CARD = "critic.json"
UNBOUNDED_CONTEXT = 16384
"""Tokens that are read by a model which names no bound (paper, section 5)."""
EVEN_CHANCE = 0.5
"""Of success, in pairs."""


class CriticCard(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must be known of a trained model to use it as a critic."""

    schema: Literal["critic/1"] = "critic/1"
    kind: CriticKind
    normalisation: Normalisation = Normalisation.TURN_MEAN
    """Of an advantage critic."""
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
    """Of a value function: its value before the first turn, the share of successes that it was trained on."""
    vision: bool = False
    """Whether it is shown the reference page as a picture (see `vision.py`)."""


def write_critic_card(folder: Path, card: CriticCard) -> None:
    """Make a model's folder a critic."""
    write_atomically(folder / CRITIC_CARD, msgspec.json.format(msgspec.json.encode(card)) + b"\n")


def read_critic_card(folder: Path) -> CriticCard:
    """What the folder of a critic says of it."""
    path = folder / CRITIC_CARD
    try:
        return msgspec.json.decode(path.read_bytes(), type=CriticCard)
    except FileNotFoundError:
        raise DataError(
            f"has no {CRITIC_CARD}: not a critic; train one with `sweetrl train critic`", path=folder
        ) from None
    except OSError as error:
        raise unreadable(path, error) from error
    except msgspec.DecodeError as error:
        raise DataError(f"not the card of a critic: {error}", path=path) from None


def tell_secret(prompt: Prompt, task: Task) -> str:
    """What a critic is told of a task."""
    return prompt.render(hidden_information=reference_text(task))


def _nothing(_: Task) -> None:
    return None


@dataclass(frozen=True)
class Reading:
    """How a critic reads a task and a dialogue: as it was trained to."""

    encoder: DialogueEncoder
    system: Callable[[Task], str | None] = _nothing
    """The agent's prompt."""
    privileged: Callable[[Task], str | None] = _nothing
    """What the critic is told of the secret."""

    def candidates(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> EncodedCandidates:
        """The tokens of a history and of each output."""
        try:
            return self.encoder.candidates(
                history, outputs, system=self.system(task), privileged=self.privileged(task), name=task.id
            )
        except TooLongError as error:
            # One item that the critic cannot judge: the others go on.
            raise ModelError(f"{error.reason} that the critic reads", kind="context_length") from error


_Read = tuple[EncodedCandidates, ...]


class _Together:
    """What critics have in common: turns that wait for them at the same time share their networks' runs."""

    _reading: Reading

    def __init__(self) -> None:
        # One thread at a time: networks are hooked into while they run, and tokenizers refuse a second thread.
        self._lock = Lock()
        self._gathering = Gathering[Choice, list[float]](self._judge)

    async def advantages(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> list[float]:
        """Log-ratios of the outputs, normalised as in training, or the numbers of a head."""
        return await self._gathering.ask(Choice(task, history, outputs))

    async def judge_together(self, choices: Sequence[Choice]) -> list[list[float] | StageError]:
        """The same for each choice; one that is too long for the critic is alone in failing."""
        return await asyncio.to_thread(self._judge, choices)

    def _judge(self, choices: Sequence[Choice]) -> list[list[float] | StageError]:
        with self._lock:
            read = [self._read(choice) for choice in choices]
            readable = [each for each in read if not isinstance(each, StageError)]
            judged = iter(self._advantages(readable) if readable else [])
        return [each if isinstance(each, StageError) else next(judged) for each in read]

    def _read(self, choice: Choice) -> _Read | StageError:
        try:
            return self._encoded(choice)
        except StageError as error:
            return error

    def _encoded(self, choice: Choice) -> _Read:
        """Everything that the networks must read to judge a choice."""
        return (self._reading.candidates(*choice),)

    def _advantages(self, read: Sequence[_Read]) -> list[list[float]]:
        """Of each choice, a number for each output."""
        raise NotImplementedError


class _ByTokens(_Together):
    """What critics have in common whose advantage is a sum over tokens."""

    _normalisation: Normalisation

    async def token_advantages(
        self, task: Task, history: Sequence[Message], output: str
    ) -> list[TokenCredit]:
        """The share of each token, the end-of-turn token included."""
        return await asyncio.to_thread(self._credit, Choice(task, history, [output]))

    def _credit(self, choice: Choice) -> list[TokenCredit]:
        encoder = self._reading.encoder
        with self._lock:
            [[shares]] = self._shares([self._encoded(choice)])
            texts = _token_texts(encoder.tokenizer, encoder.output(choice.outputs[0]))
        return [TokenCredit(text, share) for text, share in zip(texts, shares.tolist(), strict=True)]

    def _advantages(self, read: Sequence[_Read]) -> list[list[float]]:
        return [[float(share.sum()) for share in shares] for shares in self._shares(read)]

    def _shares(self, read: Sequence[_Read]) -> list[list[Tensor]]:
        return [
            [turn_advantages(each, torch.tensor(len(each)), self._normalisation) for each in ratios]
            for ratios in self._log_ratios(read)
        ]

    def _log_ratios(self, read: Sequence[_Read]) -> list[list[Tensor]]:
        """Of each choice and each output, a number for each of its tokens."""
        raise NotImplementedError


class LogRatioCritic(_ByTokens):
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
        self._reference_reading = replace(reading, privileged=_nothing) if plain_reference else None
        self._normalisation = normalisation
        self.name = name

    def _encoded(self, choice: Choice) -> _Read:
        told = self._reading.candidates(*choice)
        plain = self._reference_reading
        return (told, told if plain is None else plain.candidates(*choice))

    def _log_ratios(self, read: Sequence[_Read]) -> list[list[Tensor]]:
        return _differences(
            candidate_logprobs(self._model, [told for told, _ in read]),
            candidate_logprobs(self._reference, [plain for _, plain in read]),
        )


def _differences(ours: Sequence[list[Tensor]], theirs: Sequence[list[Tensor]]) -> list[list[Tensor]]:
    return [
        [own - other for own, other in zip(turn, same, strict=True)]
        for turn, same in zip(ours, theirs, strict=True)
    ]


class HeadCritic(_Together):
    """A critic with a trained head: for a value function, what the turn adds to the chance of success."""

    def __init__(
        self, model: Any, kind: CriticKind, reading: Reading, *, name: str, start: float = EVEN_CHANCE
    ) -> None:
        """`start` is the value before the first turn."""
        super().__init__()
        self._model = model
        self._kind = kind
        self._start = start
        self._reading = reading
        self.name = name

    def _encoded(self, choice: Choice) -> _Read:
        turn = self._reading.candidates(*choice)
        before = self._turn_before(choice) if self._kind is CriticKind.VALUE else None
        return (turn,) if before is None else (turn, self._reading.candidates(*before))

    def _turn_before(self, choice: Choice) -> Choice | None:
        """What was said last, as a choice of its own."""
        spoken = [at for at, message in enumerate(choice.history) if message.role is Role.ASSISTANT]
        if not spoken:
            return None
        return Choice(choice.task, choice.history[: spoken[-1]], [choice.history[spoken[-1]].text])

    def _advantages(self, read: Sequence[_Read]) -> list[list[float]]:
        """The head's numbers; those of a value function less its value after the turn before."""
        turns = [turn for each in read for turn in each]
        scores = iter(candidate_scores(self._model, turns, self._kind))
        return [self._gains([next(scores) for _ in each]) for each in read]

    def _gains(self, scores: Sequence[list[float]]) -> list[float]:
        """Those of one choice, from the scores of its outputs and, if there was one, of the turn before."""
        if self._kind is CriticKind.REGRESSION:
            return scores[0]
        before = _chance(scores[1][0]) if len(scores) > 1 else self._start
        return [_chance(score) - before for score in scores[0]]


def _chance(logit: float) -> float:
    return float(torch.tensor(logit).sigmoid())


# ---------------------------------------------------------------- loading


def load_critic(folder: Path) -> TurnCritic:
    """The critic that training left in a folder."""
    card = read_critic_card(folder)
    if card.vision:
        raise UsageError(f"{folder}: this critic sees pages; load it with load_seeing_critic")
    model = load_network(str(folder))
    reading = _reading(folder, card)
    if card.kind is not CriticKind.ADVANTAGE:
        load_score_head(model, folder)
        name = critic_name(f"critic:{folder.name}", card, model)
        return HeadCritic(model, card.kind, reading, name=name, start=card.start)
    if card.reference is None:
        raise DataError("names no reference model to measure advantages against", path=folder / CRITIC_CARD)
    reference = load_network(card.reference, dtype=model.dtype)
    _check_alike(folder, model, card.reference, reference)
    name = critic_name(f"critic:{folder.name}", card, model, reference)
    return LogRatioCritic(
        model, reference, reading, card.normalisation, name=name, plain_reference=card.plain_reference
    )


def critic_name(label: str, told: CriticCard | str, *models: Any) -> str:
    """A label with a mark that changes whenever an advantage could."""
    parts = [msgspec.json.encode(told).decode(), *map(model_digest, models)]
    return f"{label}@{digest(' '.join(parts))[:8]}"


def _reading(folder: Path, card: CriticCard) -> Reading:
    encoder = _encoder(str(folder), card.max_tokens)
    if card.privileged is None:
        return Reading(encoder, lambda _: card.system)
    prompt = Prompt(card.privileged, source=str(folder / CRITIC_CARD))
    return Reading(encoder, lambda _: card.system, partial(tell_secret, prompt))


def load_zero_shot_critic(path: str, *, privileged: Prompt | None = None) -> LogRatioCritic:
    """How much likelier the secret makes a turn, to the model at `path` as it is.

    `privileged` is a prompt of one's own around the secret.
    """
    model = load_network(path)
    window = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    reading = Reading(
        _encoder(path, window or UNBOUNDED_CONTEXT),
        lambda task: agent_instructions(domain_of(task).prompts.agent),
        lambda task: tell_secret(privileged or domain_of(task).prompts.privileged, task),
    )
    told = "" if privileged is None else privileged.text
    name = critic_name(f"zero:hf:{path}", told, model)
    return LogRatioCritic(model, model, reading, Normalisation.TURN_MEAN, name=name, plain_reference=True)


def load_network(path: str, *, vision: bool = False, dtype: torch.dtype | None = None) -> Any:
    """A language model for reading, on the GPU if there is one; refuses one with missing weights.

    Two models whose log-probabilities are compared must have one `dtype`; without it, a GPU keeps that of the files.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chosen = dtype or (torch.float32 if device.type == "cpu" else "auto")
    kind: Any = AutoModelForImageTextToText if vision else AutoModelForCausalLM
    try:
        with no_progress_bars():
            model, found = kind.from_pretrained(
                located(path), dtype=chosen, output_loading_info=True, trust_remote_code=False
            )
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().split("\n", maxsplit=1)[0]
        raise UsageError(f"{path}: cannot load a language model from there: {reason}") from error
    if found["missing_keys"]:
        raise UsageError(
            f"{path}: the weights are of another architecture than the {model.config.model_type} that config.json "
            f"names: {sorted(found['missing_keys'])[0]} is missing; give the folder that they were saved to"
        )
    if device.type == "cpu" and not vision and model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(GROUPED_ATTENTION)
    return model.to(device).eval()


def _encoder(path: str, max_tokens: int) -> DialogueEncoder:
    try:
        tokenizer = AutoTokenizer.from_pretrained(located(path), trust_remote_code=False)
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n", maxsplit=1)[0]
        raise UsageError(f"{path}: cannot load a tokenizer from there: {reason}") from error
    return DialogueEncoder(tokenizer, max_tokens=max_tokens)


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
