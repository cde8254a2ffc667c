"""A critic without a language model: the fake for tests and examples, and a baseline to beat."""

import difflib
import re
from collections.abc import Callable, Sequence

from sweetrl.critics.critic_type import CriticType
from sweetrl.errors import UsageError
from sweetrl.tasks import mini_backend
from sweetrl.types import BackendSecret, Message, Task

Opinion = Callable[[Task, Sequence[Message], str], float]
"""(task, history, output) -> its advantage."""

_WORD = re.compile(r"[a-z]{3,}|\d+")


class ScriptedCritic:
    """A `TurnCritic` that asks a function about each output."""

    def __init__(self, opinion: Opinion, *, name: str = "scripted") -> None:
        self._opinion = opinion
        self._name = name

    @property
    def name(self) -> str:
        """How records call it."""
        return self._name

    async def advantages(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> list[float]:
        """What the function says of each output."""
        return [self._opinion(task, history, output) for output in outputs]


def overlap(task: Task, history: Sequence[Message], output: str) -> float:
    """Which share of the output's words that nobody has used yet are words of the reference."""
    secret = task.secret
    reference = _words(secret.reference if isinstance(secret, BackendSecret) else secret.page)
    fresh = _words(output).difference(*(_words(message.text) for message in history))
    return len(fresh & reference) / len(fresh) if fresh else 0.0


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


CRITICS: dict[str, Opinion] = {"overlap": overlap, mini_backend.NAME: mini_backend.turn_worth}
"""The second is an oracle, for tasks of that benchmark alone."""


def critic_named(name: str) -> ScriptedCritic:
    """The critic that ships under `name`."""
    if name in CRITICS:
        return ScriptedCritic(CRITICS[name], name=f"scripted:{name}")
    close = difflib.get_close_matches(name, CRITICS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(sorted(CRITICS))}"
    raise UsageError(f"there is no scripted critic '{name}'; {hint}")


CRITIC = CriticType(
    name="scripted",
    usage="scripted:NAME, a critic without a model",
    open=lambda name, _tools: critic_named(name),
)
