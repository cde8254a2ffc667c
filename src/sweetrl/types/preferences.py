"""Which dialogue or turn is better, and what each turn is worth."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from sweetrl.types.dialogues import Failure, Message, as_given
from sweetrl.types.digests import digest
from sweetrl.types.tasks import Count, NonEmpty


class EpisodePair(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two dialogues on one task, of which the first ended better."""

    schema: Literal["episode_pair/1"] = "episode_pair/1"
    task_id: NonEmpty
    chosen: NonEmpty
    """Id of the episode with the higher reward."""
    rejected: NonEmpty
    margin: float
    """How much the rewards differ."""

    @property
    def id(self) -> str:
        """Unique within a file."""
        return f"{self.chosen}>{self.rejected}"


class CandidateSet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Alternative messages of the agent at one turn of a stored dialogue; once ranked, the value of each."""

    schema: Literal["candidates/1"] = "candidates/1"
    episode_id: NonEmpty
    task_id: NonEmpty
    turn: Count
    """Counted from 0."""
    outputs: tuple[str, ...]
    """Raw generations, in the order in which they were drawn."""
    unfinished: tuple[Count, ...] = ()
    """Which of the outputs, counted from 0, the limit of tokens ended."""
    advantages: tuple[float, ...] | None = None
    """The critic's, one for each output; None until they are ranked."""
    critic: str = ""
    failure: Failure | None = None

    def __post_init__(self) -> None:
        if self.advantages is not None and len(self.advantages) != len(self.outputs):
            raise ValueError(f"{len(self.advantages)} advantages for {len(self.outputs)} outputs")
        if any(index >= len(self.outputs) for index in self.unfinished):
            raise ValueError(f"an unfinished output beyond the {len(self.outputs)} that there are")

    @property
    def given(self) -> list[str]:
        """The outputs as the agent gave them."""
        return [
            as_given(output, unfinished=index in self.unfinished) for index, output in enumerate(self.outputs)
        ]

    @property
    def id(self) -> str:
        """Unique within a file."""
        return turn_id(self.episode_id, self.turn)


class TurnPair(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two possible messages of the agent at one turn, of which the critic prefers the first."""

    schema: Literal["turn_pair/1"] = "turn_pair/1"
    episode_id: NonEmpty
    task_id: NonEmpty
    turn: Count
    history: tuple[Message, ...]
    """The messages that the agent had seen, without the system prompt."""
    chosen: str
    """Raw generation."""
    rejected: str
    chosen_unfinished: bool = False
    """Whether the limit of tokens ended it."""
    rejected_unfinished: bool = False
    margin: float
    """How much the advantages differ."""

    @property
    def id(self) -> str:
        """Unique within a file: by content, because a turn has several pairs."""
        return f"{turn_id(self.episode_id, self.turn)}:{digest(self.chosen)}>{digest(self.rejected)}"

    @property
    def given(self) -> tuple[str, str]:
        """Both outputs as the agent gave them."""
        return (
            as_given(self.chosen, unfinished=self.chosen_unfinished),
            as_given(self.rejected, unfinished=self.rejected_unfinished),
        )


class TokenCredit(Struct, frozen=True):
    """A token of the agent and its share in the advantage of its turn."""

    text: str
    advantage: float


class TurnCredit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A critic's rating of one turn of a dialogue."""

    schema: Literal["credit/1"] = "credit/1"
    episode_id: NonEmpty
    task_id: NonEmpty
    turn: Count
    critic: str
    advantage: float | None
    """None if the critic broke down (see `failure`), which is not zero."""
    tokens: tuple[TokenCredit, ...] | None = None
    """None where the critic judges whole turns only."""
    failure: Failure | None = None
    dialogue: str | UnsetType = UNSET
    """The readable name of the dialogue: its `id` in its log, or its place in it, `#7`."""
    number: Count | UnsetType = UNSET
    """The turn as shown to people, counted from 1. Left out, like `dialogue`, unless the credit is of a log."""

    @property
    def id(self) -> str:
        """Unique within a file."""
        return turn_id(self.episode_id, self.turn)


class OutputValue(Struct, frozen=True):
    """Results of dialogues that were continued from one output of the agent."""

    rewards: Annotated[tuple[float, ...], Meta(min_length=1)]
    """One per replay. A single one if the output ended the dialogue: nothing after it is random."""
    successes: tuple[bool, ...]
    """Whether each replay met everything asked for."""

    def __post_init__(self) -> None:
        if len(self.successes) != len(self.rewards):
            raise ValueError(f"{len(self.successes)} successes for {len(self.rewards)} rewards")


class TurnValues(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of each candidate of a turn, by playing on from it with the same agent and collaborator."""

    schema: Literal["values/1"] = "values/1"
    episode_id: NonEmpty
    task_id: NonEmpty
    turn: Count
    outputs: tuple[str, ...]
    """Raw generations, as the candidates have them."""
    values: tuple[OutputValue, ...] | None
    """One per output; None if a replay broke down (see `failure`)."""
    agent: str
    collaborator: str
    scorer: str
    failure: Failure | None = None

    def __post_init__(self) -> None:
        if self.values is not None and len(self.values) != len(self.outputs):
            raise ValueError(f"{len(self.values)} values for {len(self.outputs)} outputs")

    @property
    def id(self) -> str:
        """Unique within a file."""
        return turn_id(self.episode_id, self.turn)


class Annotation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's rating of one turn of a dialogue. Of several by one author on a turn, the last one counts."""

    schema: Literal["annotation/1"] = "annotation/1"
    episode_id: NonEmpty
    task_id: NonEmpty
    turn: Count
    """Counted from 0."""
    mark: Literal["helped", "hurt", "none"]
    """`none` takes an earlier mark back."""
    note: str = ""
    author: str = ""
    made: str = ""
    """When, in UTC."""

    @property
    def id(self) -> str:
        """The id of the turn that it is about."""
        return turn_id(self.episode_id, self.turn)


def turn_id(episode: str, turn: int) -> str:
    """The id of a turn (from 0) of an episode."""
    return f"{episode}@{turn}"
