"""Options that name a critic and say how it is asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweetrl.errors import MissingExtra

if TYPE_CHECKING:
    from sweetrl.critics.critic_type import CriticTools, Picture
    from sweetrl.dialogue.building import Models
    from sweetrl.protocols import ChatModel, TurnCritic

GradingPrompt = Annotated[
    Path | None,
    typer.Option("--judge-prompt", metavar="FILE", help="How a judge is asked to grade {output}."),
]


@dataclass(frozen=True)
class Judging:
    """How a critic without training is asked; None is as usual."""

    comparing: Path | None = None
    grading: Path | None = None
    rounds: int | None = None
    telling: Path | None = None
    """The prompt around the secret, of a critic `zero:`."""

    def tools(self, models: "Models") -> "CriticTools":
        """What critics are opened with; all that they open is closed with `models`."""
        from sweetrl.critics.critic_type import CriticTools
        from sweetrl.dialogue.building import ModelSettings, read_prompt
        from sweetrl.models import FREE
        from sweetrl.types import Sampling

        def chat_model(spec: str) -> "ChatModel":
            return models.of(ModelSettings(spec, Sampling(), FREE))

        def pictures() -> "Picture":
            from sweetrl.cli.references import References

            references = References()
            models.close_too(references)
            return references.of

        return CriticTools(
            chat_model=chat_model,
            pictures=pictures,
            judge_prompts=(read_prompt(self.comparing), read_prompt(self.grading)),
            judge_rounds=self.rounds,
            prompt=read_prompt(self.telling),
        )


AS_USUAL = Judging()


def open_critic(
    spec: str, models: "Models", judging: Judging = AS_USUAL
) -> "tuple[TurnCritic, dict[str, Any]]":
    """The critic, and what of it shapes an advantage. Its chat models are closed with `models`."""
    from sweetrl import critics

    try:
        critic = critics.open_critic(spec, judging.tools(models))
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sweetrl"):
            raise
        raise MissingExtra("a critic in this process", "train") from error
    return critic, {"critic": critic.name}
