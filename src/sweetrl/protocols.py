"""Small interfaces between the stages and the world.

Each has a shipped fake and one contract suite (`tests/contracts/`) that every implementation passes.
Failures of the implementation itself are raised as `StageError`; anything else is a bug.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from sweetrl.errors import StageError
from sweetrl.types import Completion, Episode, Message, Reply, Sampling, Shot, Task, TokenCredit, Verdict


class ChatModel(Protocol):
    """A language model that continues a chat."""

    @property
    def name(self) -> str:
        """The specification it was made from, without secrets."""
        ...

    async def complete(
        self, messages: Sequence[Message], *, n: int, sampling: Sampling, seed: int
    ) -> list[Completion]:
        """`n` samples. The same seed gives the same samples wherever the model can promise it."""
        ...

    async def close(self) -> None:
        """Release connections and memory; safe to call twice."""
        ...


class Agent(Protocol):
    """The side that is trained and evaluated. It is never given a `Task`."""

    @property
    def name(self) -> str:
        """Its name in records."""
        ...

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """`n` raw outputs for the next turn: 1 in dialogues, 16 for candidates, by one prompt path.

        One that was cut for its length is `Unfinished`.
        """
        ...


class Collaborator(Protocol):
    """The person's side: a model, a script, a replay or a human."""

    @property
    def name(self) -> str:
        """Its name in records."""
        ...

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        """An answer to the last message of `history`, which is the agent's.

        `WordsError` if that message is certainly the reason that there is none; if the reason is uncertain, a
        `StageError`: it is then asked again with other words.
        """
        ...


class Scorer(Protocol):
    """Judges the outcome of an episode."""

    @property
    def name(self) -> str:
        """`name/version`; the version changes whenever a verdict could."""
        ...

    async def score(self, task: Task, episode: Episode) -> Verdict:
        """A verdict; an unscored one (`reward=None`) when the scorer itself broke down."""
        ...


class TurnCritic(Protocol):
    """Judges single turns at training time, when the task's secret may be used."""

    @property
    def name(self) -> str:
        """Its name in records; two critics that may disagree have different names."""
        ...

    async def advantages(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> list[float]:
        """For each raw output, how much better than usual it would be as the next turn."""
        ...


@runtime_checkable
class TokenCritic(TurnCritic, Protocol):
    """A critic that also gives an advantage to each token of a turn."""

    async def token_advantages(
        self, task: Task, history: Sequence[Message], output: str
    ) -> list[TokenCredit]:
        """The tokens of `output` in order, its end-of-turn token included; they add up to its advantage."""
        ...


class Choice(NamedTuple):
    """A turn and the messages to compare at it."""

    task: Task
    history: Sequence[Message]
    outputs: Sequence[str]


@runtime_checkable
class BatchCritic(TurnCritic, Protocol):
    """A critic that is quicker with several turns at a time."""

    async def judge_together(self, choices: Sequence[Choice]) -> list[list[float] | StageError]:
        """For each choice its advantages, or why there are none; the same choices give the same bits."""
        ...


class Renderer(Protocol):
    """Renders untrusted HTML to a picture. The same page always gives the same bytes."""

    async def render(self, html: str) -> Shot:
        """Render the whole page; `PageError` if the page itself is the reason that this fails."""
        ...

    async def close(self) -> None:
        """End the browsers; safe to call twice."""
        ...
