"""A critic without training: how much likelier the hidden information makes a turn, to a model as it is."""

from typing import Any

from sweetrl.critics.batched import Reading
from sweetrl.critics.critic_type import CriticTools, CriticType
from sweetrl.critics.log_ratio import LogRatioCritic
from sweetrl.domains.registry import domain_of
from sweetrl.errors import UsageError
from sweetrl.learning.critic_cards import tell_secret
from sweetrl.learning.settings import Normalisation
from sweetrl.models import parse_spec
from sweetrl.prompts import Prompt, agent_instructions

UNBOUNDED_CONTEXT = 16384
"""Tokens that are read by a model which names no bound (paper, section 5)."""


class ZeroShotCritic(LogRatioCritic):
    """A model against itself: once with the hidden information and once without."""

    def __init__(self, model: Any, reading: Reading, *, name: str) -> None:
        """The `reading` has the hidden information."""
        super().__init__(model, model, reading, Normalisation.TURN_MEAN, name=name, plain_reference=True)


def load_zero_shot_critic(path: str, *, privileged: Prompt | None = None) -> ZeroShotCritic:
    """A critic that measures how much likelier the secret makes a turn to the untrained model at `path`.

    `privileged` is a prompt of one's own around the secret.
    """
    from sweetrl.learning.networks import context_of, critic_name, load_encoder, load_network

    model = load_network(path)
    reading = Reading(
        load_encoder(path, context_of(model, UNBOUNDED_CONTEXT)),
        lambda task: agent_instructions(domain_of(task).prompts.agent),
        lambda task: tell_secret(privileged or domain_of(task).prompts.privileged, task),
    )
    told = "" if privileged is None else privileged.text
    name = critic_name(f"zero:hf:{path}", told, model)
    return ZeroShotCritic(model, reading, name=name)


def open_zero_shot(spec: str, tools: CriticTools) -> ZeroShotCritic:
    """The critic of a model in this process; refuses endpoints."""
    model = parse_spec(spec)
    if model.kind not in ("hf", "shipped"):
        raise UsageError(
            f"'zero:{spec}': log-probabilities of a text need the model itself; write zero:hf:PATH"
        )
    if tools.prompt is not None:
        tools.prompt.check(needed=["hidden_information"], offered=["hidden_information"])
    return load_zero_shot_critic(model.model, privileged=tools.prompt)


CRITIC = CriticType(
    name="zero",
    usage="zero:hf:PATH or zero:mini, a language model that was not trained for it",
    open=open_zero_shot,
    takes=("prompt",),
    argument="model",
)
