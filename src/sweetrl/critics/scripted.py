"""A critic without a language model: the fake for tests and examples, and a baseline to beat."""

import re
from collections.abc import Sequence

from sweetrl.critics.critic_type import CriticType
from sweetrl.domains.domain import Opinion
from sweetrl.domains.registry import all_domains, reference_text
from sweetrl.errors import UsageError, suggestion
from sweetrl.types import Message, Task

_WORD = re.compile(r"[a-z]{3,}|\d+")


class ScriptedCritic:
    """A `TurnCritic` that asks a function about each output."""

    def __init__(self, opinion: Opinion, *, name: str = "scripted") -> None:
        self._opinion = opinion
        self.name = name

    async def advantages(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> list[float]:
        """The function's value for each output."""
        return [self._opinion(task, history, output) for output in outputs]


def overlap(task: Task, history: Sequence[Message], output: str) -> float:
    """The share of the output's new words, used by nobody before, that are words of the reference."""
    reference = _words(reference_text(task))
    fresh = _words(output).difference(*(_words(message.text) for message in history))
    return len(fresh & reference) / len(fresh) if fresh else 0.0


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def critic_named(name: str) -> ScriptedCritic:
    """The critic `overlap`, or the oracle that a domain has under `name`, for tasks that it knows alone."""
    critics: dict[str, Opinion] = {"overlap": overlap}
    for domain in all_domains():
        critics |= domain.oracles
    if name in critics:
        return ScriptedCritic(critics[name], name=f"scripted:{name}")
    raise UsageError(f"there is no scripted critic '{name}'; {suggestion(name, sorted(critics))}")


CRITIC = CriticType(
    name="scripted",
    usage="scripted:NAME, a critic without a model",
    open=lambda name, _tools: critic_named(name),
)
