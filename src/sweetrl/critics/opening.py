"""Opens critics by name, with the chat models and pages that they ask for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sweetrl import critics
from sweetrl.critics.critic_type import CriticTools, Picture
from sweetrl.dialogue.building import Models, ModelSettings
from sweetrl.domains.prompt_files import read_prompt
from sweetrl.domains.reference_pages import References
from sweetrl.errors import needs_extra
from sweetrl.protocols import ChatModel, TurnCritic
from sweetrl.types import Sampling


@dataclass(frozen=True)
class Judging:
    """How a critic without training is asked; None is as usual."""

    comparing: str | Path | None = None
    grading: str | Path | None = None
    rounds: int | None = None
    telling: str | Path | None = None
    """The prompt around the secret, of a critic `zero:`."""
    precision: Literal["float32", "bfloat16"] | None = None
    """Number format in which a trained critic computes."""

    def tools(self, models: Models) -> CriticTools:
        """The tools that open critics; everything that they open is closed with `models`."""

        def chat_model(spec: str) -> ChatModel:
            return models.of(ModelSettings(spec, Sampling()))

        def pictures() -> Picture:
            references = References()
            models.close_too(references)
            return references.of

        return CriticTools(
            chat_model=chat_model,
            prompt_logprobs=models.prompt_logprobs,
            pictures=pictures,
            judge_prompts=(read_prompt(self.comparing), read_prompt(self.grading)),
            judge_rounds=self.rounds,
            prompt=read_prompt(self.telling),
            precision=self.precision,
        )


AS_USUAL = Judging()


def open_with_models(spec: str, models: Models, judging: Judging = AS_USUAL) -> TurnCritic:
    """The critic that `--critic` names. Its chat models are closed with `models`."""
    with needs_extra("a critic in this process", "train"):
        return critics.open_critic(spec, judging.tools(models))
