"""Agents and collaborators, built from the names that users give them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sweetrl.browser.session import BrowserSession
from sweetrl.dialogue.agents import ModelAgent
from sweetrl.dialogue.background import Closable
from sweetrl.dialogue.collaborators import ModelCollaborator, ReplayedCollaborator, ScriptedCollaborator
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.dialogues import read_episodes
from sweetrl.domains.domain import Domain
from sweetrl.domains.prompt_files import read_prompt
from sweetrl.domains.registry import all_domains
from sweetrl.errors import UsageError
from sweetrl.models import (
    FREE,
    EndpointOptions,
    Endpoints,
    Meter,
    Price,
    open_model,
    open_prompt_logprobs,
)
from sweetrl.models.shipped import NAMES as SHIPPED
from sweetrl.prompts import Prompt
from sweetrl.protocols import Agent, ChatModel, Collaborator
from sweetrl.settings import PlayerSettings
from sweetrl.types import Sampling, Task, digest

if TYPE_CHECKING:
    from sweetrl.models.prompt_logprobs import PromptLogprobs

REPLAY = "replay:"


@dataclass(frozen=True)
class ModelSettings:
    """Which model speaks for one side of the dialogues, and how."""

    spec: str
    """`openai:MODEL@URL`, `hf:PATH_OR_ID`, `scripted:NAME`, `mini`, or the name of a scripted agent or collaborator."""
    sampling: Sampling
    price: Price = FREE
    prompt_file: str | None = None


def model_settings(settings: PlayerSettings, price: str | None = None) -> ModelSettings:
    """One side of the dialogues, from its settings."""
    sampling = Sampling(temperature=settings.temperature, max_tokens=settings.max_tokens)
    return ModelSettings(settings.model, sampling, parse_price(price), settings.prompt)


class Models:
    """The chat models of a command, each opened once however many players use it; a context manager closes them."""

    def __init__(self, options: EndpointOptions | None = None, meter: Meter | None = None) -> None:
        self._endpoints = Endpoints(options or EndpointOptions())
        self._meter = meter or Meter()
        self._opened: dict[tuple[str, Price], ChatModel] = {}
        self._others: list[Closable] = []

    def of(self, player: ModelSettings) -> ChatModel:
        """The model that plays a side."""
        key = (player.spec, player.price)
        if key not in self._opened:
            self._opened[key] = open_model(
                player.spec, endpoints=self._endpoints, meter=self._meter, price=player.price
            )
        return self._opened[key]

    def prompt_logprobs(self, spec: str) -> "PromptLogprobs":
        """A model behind an endpoint that says how likely tokens are."""
        opened = open_prompt_logprobs(spec, endpoints=self._endpoints, meter=self._meter)
        self.close_too(opened)
        return opened

    def close_too(self, other: Closable) -> None:
        """Release something else together with the models."""
        self._others.append(other)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Release all of them."""
        for each in (*self._opened.values(), *self._others):
            await each.close()


def build_agent(
    player: ModelSettings, domain: Domain, rules: Rules, models: Models, tasks: Sequence[Task] = ()
) -> tuple[Agent, dict[str, Any]]:
    """The agent, and its settings that shape an episode. Only scripted baselines see the tasks."""
    if _is_scripted(player, domain, "agent"):
        agent: Agent = domain.agents[player.spec](tasks, rules.turn_limit)
        return agent, {"agent": agent.name}
    shipped = domain.prompts.single_turn if rules.single_turn else domain.prompts.agent
    prompt = read_prompt(player.prompt_file) or shipped
    agent = ModelAgent(models.of(player), prompt, player.sampling, turn_limit=rules.turn_limit)
    return agent, _described("agent", agent.name, player, prompt)


def _is_scripted(player: ModelSettings, domain: Domain, role: str) -> bool:
    """Whether the domain has a script of this name; refuses that of another domain, and a prompt for it."""
    if player.spec not in getattr(domain, f"{role}s"):
        for other in all_domains():
            if player.spec in getattr(other, f"{role}s"):
                raise UsageError(
                    f"the {role} {player.spec} is for {other.name} tasks only; "
                    f"choose another {role} for {domain.name} tasks"
                )
        refuse_misspelt(player.spec, domain, role)
        return False
    if player.prompt_file is not None:
        raise UsageError(f"{player.spec} takes no prompt; leave out --{role}-prompt")
    return True


def refuse_misspelt(spec: str, domain: Domain, role: str) -> None:
    """Stop where a name that no model has is nearly that of a script."""
    if ":" in spec or spec in SHIPPED:
        return
    if close := get_close_matches(spec, getattr(domain, f"{role}s"), n=1, cutoff=0.8):
        raise UsageError(f"there is no {role} {spec!r} for {domain.name} tasks; did you mean {close[0]!r}?")


def build_collaborator(
    player: ModelSettings | None,
    domain: Domain,
    tasks: list[Task],
    models: Models,
    session: BrowserSession | None = None,
) -> tuple[Collaborator, dict[str, Any]]:
    """The collaborator, and its settings that shape an episode; None makes one that is never asked.

    Without a `session` nobody is shown pages as pictures.
    """
    if player is None:
        return ScriptedCollaborator([], name="none"), {"collaborator": "none"}
    if player.spec.startswith(REPLAY):
        return _replayed(player, tasks)
    collaborator: Collaborator
    if (scripted := scripted_collaborator(player, domain, tasks, session)) is not None:
        return scripted, {"collaborator": scripted.name}
    model, own, sampling = models.of(player), read_prompt(player.prompt_file), player.sampling
    if domain.pictures is not None and session is not None and session.pictures:
        prompt = own or domain.pictures.collaborator_prompt
        collaborator = domain.pictures.collaborator(
            model, prompt, session.renderer, sampling=sampling, keep=session.keep
        )
    else:
        prompt = own or domain.prompts.collaborator
        collaborator = ModelCollaborator(model, prompt, domain=domain, sampling=sampling)
    return collaborator, _described("collaborator", collaborator.name, player, prompt)


def scripted_collaborator(
    player: ModelSettings, domain: Domain, tasks: list[Task], session: BrowserSession | None = None
) -> Collaborator | None:
    """The scripted collaborator of a name; None if the domain has none. It refuses tasks that it cannot play."""
    if not _is_scripted(player, domain, "collaborator"):
        return None
    collaborator = domain.collaborators[player.spec](session or BrowserSession())
    if (check := getattr(collaborator, "check", None)) is not None:
        check(tasks)  # or each dialogue would fail, one after the other
    return collaborator


def _replayed(player: ModelSettings, tasks: list[Task]) -> tuple[Collaborator, dict[str, Any]]:
    if player.prompt_file is not None:
        raise UsageError("a replayed collaborator takes no prompt; leave out --collaborator-prompt")
    path = Path(player.spec.removeprefix(REPLAY))
    known = {task.id for task in tasks}
    # Published dialogues have no ids of their own; ours may cover more tasks than are to be replayed.
    stored = [episode for episode in read_episodes(path) if episode.task_id in known]
    stored = stored or list(read_episodes(path, tasks))
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return ReplayedCollaborator(stored, name=player.spec), {
        "collaborator": player.spec,
        "collaborator_episodes": content,
    }


def _described(role: str, name: str, player: ModelSettings, prompt: Prompt) -> dict[str, Any]:
    return {
        role: name,
        f"{role}_sampling": player.sampling,
        f"{role}_prompt": f"{prompt.source} {digest(prompt.text)}",
    }


def parse_price(text: str | None) -> Price:
    """`IN/OUT` per million tokens; nothing is free."""
    if text is None:
        return FREE
    prompt, _, completion = text.partition("/")
    try:
        price = Price(float(prompt), float(completion))
    except ValueError:
        price = Price(-1.0)
    if not (0 <= price.prompt < float("inf") and 0 <= price.completion < float("inf")):
        raise UsageError(f"{text!r} is not a price; write IN/OUT per million tokens, for example 0.5/1.5")
    return price
