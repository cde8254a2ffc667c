"""The records that stages exchange, and nothing else.

All are frozen `msgspec` structs: one definition is the JSON format, its validation and the type.
A secret is a type of its own, so that an `Episode` (which agents learn from) can hold none.
"""

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

NonEmpty = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]


class Kind(StrEnum):
    """The two halves of ColBench."""

    BACKEND = "backend"
    FRONTEND = "frontend"


# ---------------------------------------------------------------- tasks


class BackendSecret(Struct, frozen=True, tag_field="kind", tag="backend", forbid_unknown_fields=True):
    """What only the collaborator, the scorer and the critic may see of a programming task."""

    reference: NonEmpty
    """Source of the wanted Python function."""
    tests: Annotated[dict[str, NonEmpty], Meta(min_length=1)]
    """Hidden calls by name, each one Python expression."""


class FrontendSecret(Struct, frozen=True, tag_field="kind", tag="frontend", forbid_unknown_fields=True):
    """What only the collaborator, the scorer and the critic may see of a design task."""

    page: NonEmpty
    """HTML of the wanted page."""


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One problem to collaborate on."""

    schema: Literal["task/1"] = "task/1"
    id: NonEmpty
    kind: Kind
    split: str = ""
    """train, validation, test, or empty where the source does not say."""
    request: NonEmpty
    """What the agent is told at the start."""
    secret: BackendSecret | FrontendSecret
    extra: dict[str, Any] = {}
    """Fields of the file that the task came from which sweetrl does not use; kept for a lossless export."""

    def __post_init__(self) -> None:
        if (self.kind is Kind.BACKEND) != isinstance(self.secret, BackendSecret):
            raise ValueError(f"a {self.kind} task cannot have the secret of the other kind")


# ---------------------------------------------------------------- dialogues


class Role(StrEnum):
    """Who speaks, as chat models call it. The collaborator is the user."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class Message(Struct, frozen=True):
    """One message of a chat."""

    role: Role
    text: str
    images: tuple[bytes, ...] = ()
    """PNG files."""


class Reply(Struct, frozen=True):
    """The collaborator's answer to one turn."""

    text: str
    screenshot: str | None = None
    """Content hash of the page that the agent had shown, for frontend tasks."""
    excuse: str = ""
    """Why `text` is a fixed sentence instead of a reply: the agent's words got none. Empty for a real reply."""


class Unfinished(str):
    """An output that the limit of tokens ended: the agent did not end its turn, and must not learn to there.

    A text like any other, so that whoever does not care need not know; records keep it as a field of their own.
    """

    __slots__ = ()


def _as_given(output: str, *, unfinished: bool) -> str:
    return Unfinished(output) if unfinished else output


class Turn(Struct, frozen=True):
    """One utterance of the agent and the answer to it."""

    output: str
    """The raw generation: what is trained on."""
    said: str
    """What the collaborator and later turns see of it (no thoughts)."""
    reply: Reply | None = None
    """None on the last turn."""
    unfinished: bool = False
    """Whether the limit of tokens ended the output."""
    trouble: str = ""
    """What the agent's own words broke on its side: `agent: CAUSE` if it could not speak, `critic: CAUSE` if
    the first draft was said because no critic could rank them. Empty as a rule."""

    @property
    def answered(self) -> bool:
        """Whether the collaborator replied in its own words."""
        return self.reply is not None and not self.reply.excuse

    @property
    def troubles(self) -> list[str]:
        """What the agent's words broke at this turn, as `side: cause`."""
        excuse = "" if self.reply is None else self.reply.excuse
        return [each for each in (self.trouble, excuse and f"collaborator: {excuse}") if each]

    @property
    def given(self) -> str:
        """The output as the agent gave it."""
        return _as_given(self.output, unfinished=self.unfinished)


class Ending(StrEnum):
    """Why a dialogue ended."""

    ANSWERED = "answered"
    TURN_LIMIT = "turn_limit"
    BROKE_OFF = "broke_off"
    """The agent could not go on, because of what it had said or was writing."""
    FAILED = "failed"


class Failure(Struct, frozen=True):
    """Something of ours broke. Never a judgement on the agent."""

    stage: str
    kind: str
    message: str


class Episode(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One whole dialogue. It holds nothing that the agent may not see."""

    schema: Literal["episode/1"] = "episode/1"
    task_id: NonEmpty
    attempt: Count
    seed: int
    agent: str
    collaborator: str
    request: str
    turns: tuple[Turn, ...]
    ending: Ending
    answer: str | None
    """The code, or the HTML of the last page shown; None where there is none."""
    failure: Failure | None = None
    extra: dict[str, Any] = {}
    """Fields of an imported dialogue that sweetrl does not use; kept for a lossless export."""

    @property
    def id(self) -> str:
        """Unique within a run."""
        return episode_id(self.task_id, self.attempt)

    def history(self, turn: int) -> tuple[Message, ...]:
        """What the agent had seen when it spoke at `turn` (0-based), system prompt apart."""
        return history_of(self.request, self.turns[:turn])


def history_of(request: str, turns: Iterable[Turn]) -> tuple[Message, ...]:
    """What the agent has seen of a dialogue so far, system prompt apart."""
    messages = [Message(Role.USER, request)]
    for past in turns:
        messages.append(Message(Role.ASSISTANT, past.said))
        if past.reply is not None:
            messages.append(Message(Role.USER, past.reply.text))
    return tuple(messages)


def episode_id(task_id: str, attempt: int) -> str:
    """The id of the `attempt`-th dialogue (from 0) on a task."""
    return f"{task_id}#{attempt}"


# ---------------------------------------------------------------- scores


class Outcome(StrEnum):
    """How one hidden test ended."""

    PASSED = "passed"
    WRONG = "wrong"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    UNUSABLE = "unusable"


class Check(Struct, frozen=True):
    """The result of one hidden test."""

    name: str
    outcome: Outcome
    detail: str = ""


class Screenshots(Struct, frozen=True):
    """The pictures that a frontend verdict rests on, by content hash: files in `screenshots` beside the verdicts."""

    reference: str
    answer: str | None = None
    """None where the answer has no page, or one that cannot be shown."""


class Verdict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scorer's judgement on one episode or answer."""

    schema: Literal["verdict/1"] = "verdict/1"
    task_id: NonEmpty
    episode_id: NonEmpty
    scorer: str
    """Name and version of the scorer, for example `backend-module/2`."""
    answer_digest: str
    """Short hash of what was judged, so that a resumed run notices a changed answer."""
    reward: float | None
    """None means unscored (see `failure`), which is not zero."""
    success: bool
    checks: tuple[Check, ...] = ()
    screenshots: Screenshots | None = None
    """None for backend tasks, and where none were kept."""
    failure: Failure | None = None


class Metric(Struct, frozen=True):
    """A figure with its 95 % interval."""

    name: str
    value: float | None
    """None where it rests on nothing, as are the ends of its interval."""
    low: float | None
    high: float | None
    count: int
    """How many scored items it rests on."""
    unscored: int = 0


class RunMetrics(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The figures of a run, and what they rest on."""

    schema: Literal["metrics/1"] = "metrics/1"
    tasks: Count
    """Those with a whole dialogue."""
    dialogues: Count
    """Whole ones: answered, at the turn limit, or broken off by the agent."""
    failed: Count
    """Dialogues that broke down through no fault of the agent."""
    unscored: Count
    """Whole dialogues without a reward."""
    broke_off: Count = 0
    """Whole dialogues that the agent could not finish, because of its own words."""
    unanswered: Count = 0
    """Messages that got a fixed sentence instead of a reply, because of what the agent wrote."""
    metrics: dict[str, Metric]
    """By name: success, success_failures_as_zero, reward, turns and, where hidden facts are known, coverage,
    repeats and premature."""
    fairness: tuple[Metric, ...] = ()
    """What the collaborator gave away."""
    run: dict[str, Any] = {}
    """Where the figures come from: the configurations of the run cards, and versions."""


# ---------------------------------------------------------------- preferences and credit


class EpisodePair(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two dialogues on one task, of which the first ended better."""

    schema: Literal["episode_pair/1"] = "episode_pair/1"
    task_id: NonEmpty
    chosen: NonEmpty
    """Id of the episode with the higher reward."""
    rejected: NonEmpty
    margin: float
    """By how much the rewards differ."""

    @property
    def id(self) -> str:
        """Unique within a file."""
        return f"{self.chosen}>{self.rejected}"


class CandidateSet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the agent might have said at one turn of a stored dialogue; once ranked, what each is worth."""

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
            _as_given(output, unfinished=index in self.unfinished)
            for index, output in enumerate(self.outputs)
        ]

    @property
    def id(self) -> str:
        """Unique within a file."""
        return turn_id(self.episode_id, self.turn)


class TurnPair(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two things that the agent might have said at one turn, of which the critic prefers the first."""

    schema: Literal["turn_pair/1"] = "turn_pair/1"
    episode_id: NonEmpty
    task_id: NonEmpty
    turn: Count
    history: tuple[Message, ...]
    """What the agent had seen, system prompt apart."""
    chosen: str
    """Raw generation."""
    rejected: str
    chosen_unfinished: bool = False
    """Whether the limit of tokens ended it."""
    rejected_unfinished: bool = False
    margin: float
    """By how much the advantages differ."""

    @property
    def id(self) -> str:
        """Unique within a file: by content, because a turn has several pairs."""
        return f"{turn_id(self.episode_id, self.turn)}:{digest(self.chosen)}>{digest(self.rejected)}"

    @property
    def given(self) -> tuple[str, str]:
        """Both as the agent gave them."""
        return (
            _as_given(self.chosen, unfinished=self.chosen_unfinished),
            _as_given(self.rejected, unfinished=self.rejected_unfinished),
        )


class TokenCredit(Struct, frozen=True):
    """A token of the agent and its share in the advantage of its turn."""

    text: str
    advantage: float


class TurnCredit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a critic thinks of one turn of a dialogue."""

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

    @property
    def id(self) -> str:
        """Unique within a file."""
        return turn_id(self.episode_id, self.turn)


class OutputValue(Struct, frozen=True):
    """How dialogues ended that went on from one output of the agent."""

    rewards: Annotated[tuple[float, ...], Meta(min_length=1)]
    """One for each replay; a single one where the output ended the dialogue, so that nothing is left to chance."""
    successes: tuple[bool, ...]
    """Whether each replay met everything asked for."""

    def __post_init__(self) -> None:
        if len(self.successes) != len(self.rewards):
            raise ValueError(f"{len(self.successes)} successes for {len(self.rewards)} rewards")


class TurnValues(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each candidate of a turn is worth, by playing on from it with the same agent and collaborator."""

    schema: Literal["values/1"] = "values/1"
    episode_id: NonEmpty
    task_id: NonEmpty
    turn: Count
    outputs: tuple[str, ...]
    """Raw generations, as the candidates have them."""
    values: tuple[OutputValue, ...] | None
    """One for each output; None if a replay broke down (see `failure`)."""
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


def turn_id(episode: str, turn: int) -> str:
    """The id of a turn (from 0) of an episode."""
    return f"{episode}@{turn}"


# ---------------------------------------------------------------- rendered pages


class Box(Struct, frozen=True, kw_only=True):
    """One element of a rendered page: where it is and how it looks. Lengths are CSS pixels."""

    tag: str
    """Lower case, for example `div`."""
    x: float
    """From the left edge of the page, not of the window."""
    y: float
    width: float
    height: float
    text: str = ""
    """The element's own words, without those of its children; white space collapsed."""
    color: str = "#000000"
    """Of the text: `#rrggbb`, or `#rrggbbaa` where it is not opaque."""
    background: str = ""
    """Like `color`; empty where the element paints none of its own."""
    image: bool = False
    """Whether it shows a picture or a gradient: an `img` or `svg`, or a CSS background image."""
    font_size: float = 16.0
    font_weight: int = 400
    text_align: str = "start"
    border_radius: float = 0.0
    """Of the top left corner."""
    border_width: float = 0.0
    """Of the widest side."""
    border_color: str = ""
    """Of that side; empty where there is no border."""
    depth: int = 0
    """How many elements contain it; 0 for the body."""
    parent: int = -1
    """Index of the nearest element around it among the boxes of the page; -1 for the body."""
    visible: bool = True
    """Has an area, and is neither hidden nor fully transparent."""


class Shot(Struct, frozen=True, kw_only=True):
    """What a page looks like."""

    png: bytes
    width: int
    height: int
    boxes: tuple[Box, ...] = ()
    """In document order, from the body on."""
    blocked: tuple[str, ...] = ()
    """Addresses that the page asked for and did not get: sorted, each once."""
    warnings: tuple[str, ...] = ()
    """What else is not as its author may expect: a page that was cut, for example."""


# ---------------------------------------------------------------- chat models


class Sampling(Struct, frozen=True, kw_only=True):
    """How a chat model draws its reply."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    """Upper bound of new tokens (paper, section 5)."""
    stop: tuple[str, ...] = ()


class Usage(Struct, frozen=True):
    """Tokens that a request took."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class Completion(Struct, frozen=True, kw_only=True):
    """One sampled reply of a chat model."""

    text: str
    finish: Literal["stop", "length"]
    usage: Usage = Usage()
    """Of a request with several samples, the prompt is counted on the first one only."""
    logprobs: tuple[float, ...] | None = None
    """Log-probability of each generated token, where the model offers it."""


def digest(text: str | None) -> str:
    """A short content hash: 16 hexadecimal digits; `-` where there is no text."""
    if text is None:
        return "-"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def picture_digest(png: bytes) -> str:
    """The content hash that a screenshot is stored and referred to by: 32 hexadecimal digits."""
    return hashlib.blake2b(png, digest_size=16).hexdigest()
