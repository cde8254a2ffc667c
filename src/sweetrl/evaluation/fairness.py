"""Is the collaborator fair? Measured per reply, per dialogue and per run.

An agent can succeed because it asked well, or because it made the collaborator hand over the reference. So
these figures stand beside every success rate: code of the reference in the replies, facts that came out,
replies without knowledge, cut ones, repeated ones. Details quote the reference: show them to no agent.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from sweetrl.domains.facts import Fact, sentences, told
from sweetrl.domains.leaks.detection import Leak, Said, find_leak, reference_of, secret_positions
from sweetrl.domains.registry import domain_of
from sweetrl.evaluation.intervals import clustered_mean
from sweetrl.types import Episode, Metric, Reply, Task

_NOT_KNOWING = re.compile(
    r"\b(?:(?:do|does|did)(?:n['’]?t| not) (?:really |actually )?(?:know|say|specify|mention)"
    r"|(?:not|n['’]t) (?:sure|certain|specified|aware)|unsure|no idea|can(?:no|['’])t (?:say|tell))\b",
    re.IGNORECASE,
)
NAMED = 5
"""How many leaking dialogues are named."""


class ReplyFairness(Struct, frozen=True, kw_only=True):
    """What one reply gave away, and other properties of it."""

    turn: int
    """From 0: the agent's turn that it answers."""
    carried: float
    """Share of the reference's code in this reply, without code that the request reveals."""
    fragments: tuple[str, ...]
    """The code in question, as the reply has it; empty if it does not leak."""
    facts: tuple[str, ...]
    """Facts of the reference that came out with this reply for the first time."""
    ignorant: bool
    """Says that it does not know."""
    cut: bool
    """As long as a reply may be."""
    repeated: bool
    """Says what an earlier reply of this dialogue said."""
    excused: bool = False
    """A fixed sentence: the agent's words got no reply."""

    @property
    def leaks(self) -> bool:
        """Whether it carries code of the reference."""
        return bool(self.fragments)


class DialogueFairness(Struct, frozen=True, kw_only=True):
    """What the replies of one dialogue gave away together."""

    task_id: str
    episode_id: str
    replies: tuple[ReplyFairness, ...]
    carried: float
    """Share of the reference's code that stands in any of the replies."""
    facts: int
    """How many facts the reference has beyond the request."""

    @property
    def leaks(self) -> bool:
        """Whether any reply carries code of the reference."""
        return any(reply.leaks for reply in self.replies)

    @property
    def disclosed(self) -> int:
        """How many facts came out."""
        return sum(len(reply.facts) for reply in self.replies)


class FairnessReport(Struct, frozen=True, kw_only=True):
    """The metrics of a run, each with an interval over tasks."""

    dialogues: int
    replies: int
    metrics: tuple[Metric, ...]


# ---------------------------------------------------------------- one dialogue


def assess_dialogue(task: Task, episode: Episode) -> DialogueFairness:
    """The fairness of every reply of an episode, and of all together."""
    reference = reference_of(task)
    secret = secret_positions(reference, task.request)
    domain = domain_of(task)
    unknown = dict.fromkeys(domain.facts(task.secret, task.request))
    said = Said([task.request, episode.request])
    seen: set[str] = set()
    carried: set[int] = set()
    replies: list[ReplyFairness] = []
    facts = len(unknown)
    for number, turn in enumerate(episode.turns):
        said.add(turn.said)
        if turn.reply is None:
            continue
        text = turn.reply.text
        leak = find_leak(reference, text, said)
        new = told(unknown, sentences(text, turn.said))
        replies.append(_assess_reply(number, turn.reply, domain.reply_limit, leak, secret, new, seen))
        carried |= leak.carried & secret
        seen.add(_normal(text))
        for fact in new:
            del unknown[fact]
    return DialogueFairness(
        task_id=task.id,
        episode_id=episode.id,
        replies=tuple(replies),
        carried=len(carried) / len(secret) if secret else 0.0,
        facts=facts,
    )


def _assess_reply(
    turn: int,
    reply: Reply,
    limit: int,
    leak: Leak,
    secret: frozenset[int],
    new: Iterable[Fact],
    seen: set[str],
) -> ReplyFairness:
    return ReplyFairness(
        turn=turn,
        carried=len(leak.carried & secret) / len(secret) if secret else 0.0,
        fragments=leak.fragments,
        facts=tuple(f"{fact.kind} {fact.text}" for fact in new),
        ignorant=_NOT_KNOWING.search(reply.text) is not None,
        cut=len(reply.text) >= limit,
        repeated=_normal(reply.text) in seen,
        excused=bool(reply.excuse),
    )


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


# ---------------------------------------------------------------- a run


class FairnessTally:
    """Adds up dialogues; holds a few numbers per task, no texts."""

    def __init__(self) -> None:
        self.dialogues = 0
        self.replies = 0
        self._sums: dict[str, dict[str, tuple[float, int]]] = {}

    def add(self, dialogue: DialogueFairness, *, success: bool | None = None) -> None:
        """One more dialogue; `success` is the scorer's, where there is a verdict."""
        self.dialogues += 1
        self.replies += len(dialogue.replies)
        for name, (amount, of) in _shares(dialogue, success=success).items():
            by_task = self._sums.setdefault(name, {})
            before = by_task.get(dialogue.task_id, (0.0, 0))
            by_task[dialogue.task_id] = (before[0] + amount, before[1] + of)

    def report(self) -> FairnessReport:
        """The metrics so far. `success` is there only if verdicts were."""
        metrics = (_metric(name, by_task) for name, by_task in self._sums.items())
        return FairnessReport(dialogues=self.dialogues, replies=self.replies, metrics=tuple(metrics))


def _metric(name: str, by_task: dict[str, tuple[float, int]]) -> Metric:
    """A share over all dialogues, with an interval over tasks."""
    return clustered_mean(name, [sums for sums, _ in by_task.values()], [of for _, of in by_task.values()])


def _shares(dialogue: DialogueFairness, *, success: bool | None) -> dict[str, tuple[float, int]]:
    """What a dialogue adds to each metric: an amount, and the number of items it is a share of."""
    replies, count = dialogue.replies, len(dialogue.replies)
    shares: dict[str, tuple[float, int]] = {
        "leaking_dialogues": (dialogue.leaks, 1),
        "leaking_replies": (sum(reply.leaks for reply in replies), count),
        "code_carried": (dialogue.carried, 1),
        "facts_disclosed": (dialogue.disclosed, dialogue.facts),
        "ignorant_replies": (sum(reply.ignorant for reply in replies), count),
        "cut_replies": (sum(reply.cut for reply in replies), count),
        "repeated_replies": (sum(reply.repeated for reply in replies), count),
        "excused_replies": (sum(reply.excused for reply in replies), count),
    }
    if success is not None:
        kind = "with" if dialogue.leaks else "without"
        shares |= {"success": (success, 1), f"success_{kind}_leaks": (success, 1)}
    return shares


class WorstLeaks:
    """The dialogues in which most of the reference came out."""

    def __init__(self) -> None:
        self._kept: list[DialogueFairness] = []

    def add(self, dialogue: DialogueFairness) -> DialogueFairness:
        """Take note of a dialogue, and give it back."""
        if dialogue.leaks:
            self._kept.append(dialogue)
            self._kept.sort(key=lambda each: -each.carried)
            del self._kept[NAMED:]
        return dialogue

    def lines(self) -> Iterator[str]:
        """A line for each, with the first words that came out."""
        for dialogue in self._kept:
            first = next(reply for reply in dialogue.replies if reply.leaks)
            quote = " ".join(first.fragments[0].split())[:60]
            share = f"{dialogue.carried:.0%} of the code came out"
            yield f"{dialogue.episode_id}: {share}, first in turn {first.turn + 1}: {quote}"
