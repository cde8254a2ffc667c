"""A game: a person plays the agent in one dialogue and then learns what each turn was worth.

    game = Game(task, collaborator)
    game.goal, game.turn, game.turn_limit                 # what to show before each message
    await game.say("What about empty names?")             # a `Reply`
    await game.say("def shorten(s): ...", answer=True)    # a `Conclusion`
    debrief = game.debrief(verdict)                       # the reference, facts missed, advantages

The terminal (`sweetrl play`) and a web page play through it, so that both have the same rules and the same record.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sweetrl.browser.session import BrowserSession
from sweetrl.dialogue.dialogue import Dialogue
from sweetrl.dialogue.rules import ANSWER_MARKER, Conclusion, Rules
from sweetrl.domains.domain import Domain, Opinion, SecretPart
from sweetrl.domains.facts import sentences, told
from sweetrl.domains.registry import domain_of, reference_text
from sweetrl.errors import UsageError
from sweetrl.prompts import TURN_LIMIT
from sweetrl.protocols import Collaborator
from sweetrl.settings import ScorerSettings
from sweetrl.types import Ending, Episode, Reply, Task, Turn, Verdict, episode_id

HUMAN = "human"
"""How records call a person."""
STARTER = "mini-backend:validation:50"
"""Tasks for those who name none: they need no model, and the exact worth of each turn is known."""
STARTER_COLLABORATOR, STARTER_AGENT = "colleague", "mini"


@dataclass(frozen=True)
class Debrief:
    """What a player learns after the dialogue."""

    episode: Episode
    verdict: Verdict | None
    """None where the answer cannot be scored on this machine."""
    parts: tuple[SecretPart, ...]
    """The secret: the reference first."""
    missed: tuple[str, ...]
    """Facts that mattered and never came up, one sentence each."""
    advantages: tuple[float, ...] | None
    """How much each turn changed the chance of success, computed exactly; None where no oracle is known."""


class Played:
    """One dialogue with a person on either side."""

    def __init__(
        self,
        task: Task,
        collaborator: Collaborator,
        agent: str,
        *,
        seed: int = 0,
        attempt: int = 0,
        turn_limit: int | None = None,
        past: Sequence[Turn] = (),
    ) -> None:
        """Without a `turn_limit`, that of the benchmark which the task is from. `past`: turns already taken."""
        self.task = task
        self.turn_limit = turn_limit or turn_limit_of(task)
        rules = Rules(turn_limit=self.turn_limit)
        self._dialogue = Dialogue(
            task, collaborator, rules=rules, seed=seed, attempt=attempt, agent=agent, past=past
        )

    @property
    def turn(self) -> int:
        """The number of the agent's message that is due or waits for a reply, the first of which is 1."""
        return len(self._dialogue.turns) + 1

    @property
    def is_over(self) -> bool:
        """Whether the answer is in."""
        return self._dialogue.conclusion is not None

    @property
    def episode(self) -> Episode:
        """The record."""
        return self._dialogue.episode

    @property
    def parts(self) -> tuple[SecretPart, ...]:
        """The secret: the reference first."""
        return tuple(domain_of(self.task).parts_of(self.task))


class Game(Played):
    """One dialogue with a person as the agent."""

    def __init__(self, task: Task, collaborator: Collaborator, **about: Any) -> None:
        """`about`: what `Played` takes."""
        super().__init__(task, collaborator, HUMAN, **about)
        self._saw_tests = False

    @property
    def goal(self) -> str:
        """The player's goal in one sentence."""
        return domain_of(self.task).labels.goal

    @property
    def episode(self) -> Episode:
        """The record; it notes if the player looked at the tests."""
        episode = super().episode
        return replace(episode, extra={"play": {"saw_tests": True}}) if self._saw_tests else episode

    async def say(self, text: str, *, answer: bool = False) -> Reply | Conclusion:
        """Send a message, or hand in the answer; the reply, or how the dialogue ended.

        A `StageError` is the collaborator's: the same message can be sent again.
        """
        return await self._dialogue.say(f"{ANSWER_MARKER}\n{text}" if answer else text)

    def tests(self) -> str | None:
        """The tests of the answer, without the wanted results; None if there are none to show."""
        parts = [part.text for part in self.parts if part.title == "tests"]
        self._saw_tests = self._saw_tests or bool(parts)
        return parts[0] if parts else None

    def debrief(self, verdict: Verdict | None) -> Debrief:
        """The lessons of the dialogue, once it is over."""
        return Debrief(
            self.episode,
            verdict,
            self.parts,
            tuple(missed_facts(self.task, self.episode)),
            exact_advantages(self.task, self.episode, verdict, self.turn_limit),
        )


def choose_task(
    tasks: Mapping[str, Task], task_id: str | None, is_played: Callable[[str], bool], source: str
) -> tuple[Task, int]:
    """The task to play, and which attempt at it this is; `is_played` says whether there is an episode of an id."""
    if task_id is not None and task_id not in tasks:
        close = get_close_matches(task_id, tasks, n=1) or list(tasks)[:1]
        raise UsageError(f"{source}: no task has the id {task_id!r}; there is {close[0]!r}, for example")
    fresh = (each for each in tasks if not is_played(episode_id(each, 0)))
    task = tasks[task_id or next(fresh, next(iter(tasks)))]
    return task, next(attempt for attempt in count() if not is_played(episode_id(task.id, attempt)))


def turn_limit_of(task: Task) -> int:
    """How often the agent speaks at most: what the benchmark of the task says, or 10."""
    limits = domain_of(task).turn_limits
    return next((limit for name, limit in limits.items() if task.id.startswith(f"{name}-")), TURN_LIMIT)


async def score_game(
    task: Task, episode: Episode, pictures: Path, session: BrowserSession | None
) -> Verdict | None:
    """A verdict, where it takes no more than was there for the dialogue."""
    domain = domain_of(task)
    if domain.scoring is None or (domain.pictures is not None and session is None):
        return None
    with domain.scoring(ScorerSettings(workers=1), pictures) as backend:
        async with backend.opened() as scorer:
            verdict = await scorer.score(task, episode)
    return None if verdict.reward is None else verdict


# ---------------------------------------------------------------- what there is to learn


def missed_facts(task: Task, episode: Episode) -> list[str]:
    """Facts that mattered and were never asked about or told."""
    domain = domain_of(task)
    tracker = domain.tracker({task.id: task})
    if tracker is not None:
        asked = {tracker.asked(turn.said) for turn in episode.turns}
        return [tracker.explain(task, name) for name in sorted(tracker.facts(task) - asked)]
    facts = domain.facts(domain.secret_of(task), task.request)
    spoken = [
        sentence
        for turn in episode.turns
        if turn.reply is not None
        for sentence in sentences(turn.reply.text, turn.said)
    ]
    came_out = told(facts, spoken)
    return [f"{fact.kind} {fact.text}" for fact in facts if fact not in came_out]


def exact_advantages(
    task: Task, episode: Episode, verdict: Verdict | None, turn_limit: int
) -> tuple[float, ...] | None:
    """How much each turn changed the chance of success; None without an oracle, or under other rules than its own."""
    oracle = _oracle_of(domain_of(task), task)
    if oracle is None or verdict is None or turn_limit != turn_limit_of(task):
        return None
    outputs = [turn.output for turn in episode.turns]
    if verdict.success and episode.ending in (Ending.ANSWERED, Ending.TURN_LIMIT):
        # The oracle knows one right answer, and a person may have written another.
        outputs[-1] = f"{ANSWER_MARKER}\n{reference_text(task)}"
    return tuple(oracle(task, episode.history(turn), output) for turn, output in enumerate(outputs))


def _oracle_of(domain: Domain, task: Task) -> Opinion | None:
    return next((each for name, each in domain.oracles.items() if task.id.startswith(f"{name}-")), None)
