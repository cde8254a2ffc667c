"""`CriticType`: how `--critic` names a kind of critic and how it is opened; one object per file of this folder.

Those files import nothing heavy at the top: the command line reads them all to know what there is.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sweetrl.errors import UsageError
from sweetrl.learning.critic_cards import CriticCard
from sweetrl.prompts import Prompt
from sweetrl.protocols import ChatModel, TurnCritic
from sweetrl.types import Task

if TYPE_CHECKING:
    from sweetrl.models.prompt_logprobs import PromptLogprobs

Picture = Callable[[Task], Awaitable[Path]]
"""Finds or makes a picture of a task's reference page."""


def _no_models(spec: str) -> ChatModel:
    raise UsageError(f"{spec}: no chat models can be opened here; give tools that open them")


def _no_prompt_logprobs(spec: str) -> "PromptLogprobs":
    raise UsageError(f"{spec}: no endpoints can be asked here; give tools that open them")


def _no_pictures() -> Picture:
    raise UsageError("this critic is shown pages; give tools that render them")


@dataclass(frozen=True, kw_only=True)
class CriticTools:
    """What a critic needs in order to open. None means the critic's own default."""

    chat_model: Callable[[str], ChatModel] = _no_models
    """Opens a model; the owner of the tools closes it."""
    prompt_logprobs: "Callable[[str], PromptLogprobs]" = _no_prompt_logprobs
    """Opens a model behind an endpoint that returns log-probabilities of tokens; the owner of the tools closes it."""
    pictures: Callable[[], Picture] = _no_pictures
    """Starts the renderer of reference pages; the owner of the tools ends it."""
    judge_prompts: tuple[Prompt | None, Prompt | None] = (None, None)
    """How a judge is asked to compare two turns, and to grade one."""
    judge_rounds: int | None = None
    prompt: Prompt | None = None
    """The text around the hidden information, of a critic without training."""
    precision: Literal["float32", "bfloat16"] | None = None
    """Number format in which a log-ratio critic and its reference model compute."""

    def unused(self, critic: "CriticType", spec: str) -> str | None:
        """A complaint about what was given that the critic has no use for."""
        if "judge" not in critic.takes and (any(self.judge_prompts) or self.judge_rounds):
            return f"'{spec}' asks no language model; leave out --judge-prompt and --judge-rounds"
        if "prompt" not in critic.takes and self.prompt:
            return f"'{spec}' takes no prompt about the reference, only zero:hf:PATH does; leave out --critic-prompt"
        if "precision" not in critic.takes and self.precision:
            return f"'{spec}' has no precision to choose, only trained log-ratio critics have; leave out --precision"
        return None


NO_TOOLS = CriticTools()


@dataclass(frozen=True, kw_only=True)
class CriticType:
    """A kind of critic: one that `--critic NAME:...` opens, one that training leaves in a folder, or both."""

    name: str
    usage: str = ""
    """How to write it and what it is: `judge:MODEL, a language model that is asked`. Empty for folders."""
    open: Callable[[str, CriticTools], TurnCritic] | None = None
    """Opens the critic from what stands after the colon."""
    cards: tuple[str, ...] = ()
    """The `kind` in the cards of trained critics that it loads."""
    load: Callable[[Path, CriticCard, CriticTools], TurnCritic] | None = None
    """Loads the critic from the folder of a trained one."""
    takes: tuple[str, ...] = ()
    """Which tools it uses beside its models: `judge`, `prompt`, `precision`."""
    argument: Literal["model", "folder", "served folder"] | None = None
    """What stands after the colon, if its existence can be checked before the critic is opened."""
    needs_reference: bool = True
    """Whether it can say nothing about a task without a reference."""
