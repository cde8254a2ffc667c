"""`Domain`: everything that differs between one kind of task and another, as one object.

    SQL = Domain(
        name="sql", secret=SqlSecret, reference=lambda secret: secret.query, prompts=Prompts(...),
        scoring=plain_scoring(SqlScorer), generators={"mini-sql": make_tasks},
    )

The rest of the package asks the domain of a task and knows none of them. `registry.py` finds it by name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sweetrl.domains.facts import Fact
from sweetrl.errors import ConfigError, DataError, UsageError
from sweetrl.outputs import marked_answer
from sweetrl.prompts import Prompt
from sweetrl.protocols import Agent, Collaborator
from sweetrl.types import Message, Secret, Task

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sweetrl.browser.session import BrowserSession
    from sweetrl.domains.leaks.detection import Reference
    from sweetrl.domains.scoring import OpenScoring, ScoringBackend
    from sweetrl.settings import ScorerSettings


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """The prompts of models, by the part that they play."""

    agent: Prompt
    single_turn: Prompt
    """For an agent that has one message, which is the answer."""
    collaborator: Prompt
    privileged: Prompt
    """The text about the secret that a critic reads before the request. Agents never see it."""
    more: tuple[Prompt, ...] = ()
    """Further prompts, selected by name."""

    def __post_init__(self) -> None:
        for name in ("agent", "single_turn", "collaborator", "privileged"):
            if not isinstance(getattr(self, name), Prompt):
                raise ConfigError(f"Prompts.{name} is no prompt; write {name}=Prompt(TEXT, source=NAME)")

    def __iter__(self) -> Iterator[Prompt]:
        yield from (self.agent, self.single_turn, self.collaborator, self.privileged, *self.more)


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Words for the parts of a task in reports, games and transcripts."""

    task: str = ""
    """The agent's job, in one sentence: the second line of a report."""
    agent: str = "Agent"
    """The agent, in the transcript that the collaborator reads."""
    collaborator: str = "collaborator"
    """The one who answers the agent, in reports."""
    reference: str = "reference"
    """The information that the collaborator has and the agent does not."""
    language: str = "text"
    """Language of the reference and the answer, for syntax highlighting."""
    reward: str = "reward"
    """The reward, as the heading of a column."""
    share: bool = True
    """Whether the reward is between 0 and 1, and shown as a percentage."""
    meaning: str = "The mean reward of the answers."
    """The meaning of the reward, for readers of a report."""
    checks: str = "checks passed"
    """After `3 of 10`, for a scored answer."""
    goal: str = "Ask about what the request leaves open, then hand in your answer."
    """The job of a person who plays the agent, in one sentence."""


class SecretPart(NamedTuple):
    """A part of a secret as a person is shown it."""

    title: str
    text: str
    language: str


@dataclass(frozen=True)
class FactTracker:
    """The facts of a benchmark, and which of them a message asks about."""

    facts: Callable[[Task], frozenset[str]]
    """The hidden facts that matter for a task."""
    asked: Callable[[str], str | None]
    """The fact that a message of the agent asks about, whether it matters or not; None if about none."""
    explain: Callable[[Task, str], str] = lambda _task, fact: fact
    """A fact of a task for a person: how to ask about it, and what the reply is."""


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Prompts for models that see pictures, where reference and answers are pages."""

    page: Callable[[Any], str]
    """HTML of the wanted page, from the secret."""
    collaborator: Callable[..., Collaborator]
    """(model, prompt, renderer, sampling=, keep=) -> a collaborator who is shown both pages."""
    collaborator_prompt: Prompt
    privileged_prompt: Prompt


@dataclass(frozen=True, kw_only=True)
class TaskWriter:
    """How a language model writes tasks of a domain."""

    prompt: Prompt
    """Its one field is `inspiration`: a topic, or a piece of somebody's code or text."""
    read: Callable[[str], tuple[str, Secret]]
    """A model's reply -> request and secret; a `ValueError` explains in a few words what is wrong with it."""
    normal_form: Callable[[Any], str]
    """A secret -> a text that is the same for secrets which differ in nothing that matters."""


Generator = Callable[[str, int, int], Iterator[Task]]
"""(split, count, seed) -> tasks; the same arguments give the same tasks."""
Opinion = Callable[[Task, Sequence[Message], str], float]
"""(task, history, output) -> the advantage of the output."""


def last_message(said: Sequence[str]) -> str | None:
    """The answer where it is text: what follows the marker in the last message, or all of it."""
    marked = marked_answer(said[-1])
    return said[-1] if marked is None else marked


def lazily(spec: str) -> Callable[..., Any]:
    """The function or class `package.module:NAME`, imported when it is first called: domains are loaded often."""

    def call(*given: Any, **options: Any) -> Any:
        module, _, name = spec.partition(":")
        return getattr(import_module(module), name)(*given, **options)

    return call


def _as_it_is(text: str) -> str:
    return text


def _nothing_more(_: Sequence[Message]) -> dict[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Domain:
    """The subject of tasks. Everything from `collaborators` on is optional."""

    name: str
    """As tasks name it; a scorer's name begins with it and a hyphen."""
    secret: type[Secret]
    reference: Callable[[Any], str]
    """The text of a secret that critics and collaborators read."""
    prompts: Prompts
    labels: Labels = Labels()
    answer: Callable[[Sequence[str]], str | None] = last_message
    """The answer in what the agent said, message by message, `I WANT TO ANSWER:` included; None where there is none.
    If left out: what follows these words in the last message, or all of that message."""
    reply_limit: int = 400
    """Characters that the agent gets to see of a reply (400 in the paper, section 4; 1000 for pages)."""
    scoring: "OpenScoring | None" = None
    """Opens the scorer; None where outcomes are given."""
    by_success: bool = True
    """Whether runs are compared by success; by reward if answers are hardly ever perfect."""

    collaborators: "Mapping[str, Callable[[BrowserSession], Collaborator]]" = field(default_factory=dict)
    """Scripted ones by name. One with a method `check(tasks)` may refuse tasks that it cannot play: `UsageError`."""
    agents: Mapping[str, Callable[[Sequence[Task], int], Agent]] = field(default_factory=dict)
    """Scripted ones by name: (tasks, turn limit) -> agent. Baselines that may know the tasks."""
    generators: Mapping[str, Generator] = field(default_factory=dict)
    """Tasks from a seed, by name."""
    turn_limits: Mapping[str, int] = field(default_factory=dict)
    """The agent's turn limit on generated tasks, by generator, where it is not 10."""
    writer: TaskWriter | None = None
    """For tasks written by a language model."""
    parse_line: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    """A line of a format of one's own as fields of a task; `LookupError`, `TypeError`, `ValueError` refuse it."""
    published_line: Callable[[Task], bytes] | None = None
    """A task as a line of the published format, newline included."""
    secret_parts: Callable[[Any], Sequence[SecretPart]] | None = None
    """A secret as people are shown it; without it, the reference alone."""
    in_transcript: Callable[[str], str] = _as_it_is
    """A message of the agent as the transcript for the collaborator has it."""
    collaborator_fields: Callable[[Sequence[Message]], dict[str, str]] = _nothing_more
    """More fields of the collaborator's prompt, from the dialogue; always the same names."""
    pictures: Pictures | None = None
    leak_index: "Callable[[str], Reference] | None" = None
    """Indexes the reference, to find code of it in replies; by default it is taken for Python."""
    facts: Callable[[Any, str], Sequence[Fact]] = lambda _secret, _request: ()
    """(secret, request) -> what else there is to know, for measuring what replies give away."""
    tracker: Callable[[Mapping[str, Task]], FactTracker | None] = lambda _: None
    """The facts to ask about in these tasks, where they are known."""
    oracles: Mapping[str, Opinion] = field(default_factory=dict)
    """Critics that know the true value of a turn, by name."""

    def secret_of(self, task: Task) -> Any:
        """The task's secret, which is of the domain's own type."""
        if not isinstance(task.secret, self.secret):
            raise DataError(f"task {task.id} is a {task.domain} task, and not one of the domain {self.name}")
        return task.secret

    def open_scoring(
        self, settings: "ScorerSettings", *, screenshots: Path | None = None
    ) -> "AbstractContextManager[ScoringBackend]":
        """The scorer of this domain's tasks, within the block; it may keep pictures in `screenshots`."""
        if self.scoring is None:
            raise UsageError(
                f"{self.name} tasks have no scorer; `sweetrl episodes import` takes the outcomes that they come with"
            )
        return self.scoring(settings, screenshots)

    def parts_of(self, task: Task) -> Sequence[SecretPart]:
        """The task's secret as people are shown it, the reference first."""
        secret = self.secret_of(task)
        if self.secret_parts is not None:
            return self.secret_parts(secret)
        return [SecretPart(self.labels.reference, self.reference(secret), self.labels.language)]
