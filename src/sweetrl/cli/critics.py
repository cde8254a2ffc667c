"""Critics made from what the command line calls them."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweetrl.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from types import ModuleType

    from sweetrl.dialogue.building import Models
    from sweetrl.protocols import TurnCritic

KINDS = {
    "judge": "judge:MODEL, a language model that is asked",
    "zero": "zero:hf:PATH or zero:mini, a language model that was not trained for it",
    "value": "value:DIR, a trained value function",
    "scripted": "scripted:NAME, a critic without a model",
}

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

    def check(self, spec: str) -> None:
        """Refuse what the critic has no use for."""
        kind = spec.partition(":")[0]
        if kind != "judge" and (self.comparing or self.grading or self.rounds):
            raise UsageError(f"'{spec}' asks no language model; leave out --judge-prompt and --judge-rounds")
        if kind != "zero" and self.telling:
            raise UsageError(
                f"'{spec}' takes no prompt about the reference, only zero:hf:PATH does; leave out --critic-prompt"
            )


AS_USUAL = Judging()


def open_critic(
    spec: str, models: "Models", judging: Judging = AS_USUAL
) -> "tuple[TurnCritic, dict[str, Any]]":
    """The critic, and what of it shapes an advantage. Its chat models are closed with `models`."""
    judging.check(spec)
    kind, colon, rest = spec.partition(":")
    if not (kind in KINDS and colon):
        critic = _trained(spec, models)
    elif not rest:
        raise UsageError(f"'{spec}' lacks its second half; write {KINDS[kind]}")
    elif kind == "judge":
        critic = _judge(rest, models, judging)
    elif kind == "value":
        critic = _value(rest, models)
    else:
        critic = _zero(rest, judging.telling) if kind == "zero" else _scripted(rest)
    return critic, {"critic": critic.name}


def _judge(spec: str, models: "Models", judging: Judging) -> "TurnCritic":
    from sweetrl.candidates.judge import ROUNDS, JudgeCritic
    from sweetrl.dialogue.building import ModelSettings, read_prompt
    from sweetrl.models import FREE
    from sweetrl.types import Sampling

    model = models.of(ModelSettings(spec, Sampling(), FREE))
    return JudgeCritic(
        model,
        rounds=judging.rounds or ROUNDS,
        comparing=read_prompt(judging.comparing),
        grading=read_prompt(judging.grading),
    )


def _scripted(name: str) -> "TurnCritic":
    from sweetrl.candidates.scripted import critic_named

    return critic_named(name)


def _zero(spec: str, prompt_file: Path | None) -> "TurnCritic":
    from sweetrl.dialogue.building import read_prompt
    from sweetrl.models import parse_spec

    model = parse_spec(spec)
    if model.kind not in ("hf", "shipped"):
        raise UsageError(
            f"'zero:{spec}': log-probabilities of a text need the model itself; write zero:hf:PATH"
        )
    told = read_prompt(prompt_file)
    if told is not None:
        told.check(needed=["hidden_information"], offered=["hidden_information"])
    critic: TurnCritic = _critics().load_zero_shot_critic(model.model, privileged=told)
    return critic


def _value(folder: str, models: "Models") -> "TurnCritic":
    if not Path(folder).is_dir():
        raise UsageError(f"{folder}: there is no such folder; write {KINDS['value']}")
    kind = _critics().read_critic_card(Path(folder)).kind
    if kind != "value":
        raise UsageError(f"{folder}: holds a critic of kind {kind}; leave out 'value:' to use it")
    return _trained(folder, models)


def _trained(folder: str, models: "Models") -> "TurnCritic":
    if not Path(folder).is_dir():
        raise UsageError(_complaint(folder))
    critics = _critics()
    if critics.read_critic_card(Path(folder)).vision:
        return _seeing(Path(folder), models)
    critic: TurnCritic = critics.load_critic(Path(folder))
    return critic


def _seeing(folder: Path, models: "Models") -> "TurnCritic":
    from sweetrl.cli.references import References
    from sweetrl.learning.vision import load_seeing_critic

    references = References()
    models.close_too(references)
    return load_seeing_critic(folder, references.of)


def _critics() -> "ModuleType":
    try:
        from sweetrl.learning import critics
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sweetrl"):
            raise
        raise MissingExtra("a critic in this process", "train") from error
    return critics


def _complaint(spec: str) -> str:
    kind, colon, _ = spec.partition(":")
    close = difflib.get_close_matches(kind, KINDS, n=1) if colon else []
    if close:
        return f"there is no kind of critic '{kind}'; did you mean {KINDS[close[0]]}?"
    return f"{spec}: there is no such folder of a critic; give one, or write {'; '.join(KINDS.values())}"
