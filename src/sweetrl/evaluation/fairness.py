"""Is the collaborator fair? Measured per reply, per dialogue and per run.

An agent can succeed because it asked well, or because it made the collaborator hand over the reference. So
these figures stand beside every success rate: code of the reference in the replies, facts that came out,
replies without knowledge, cut ones, repeated ones. Details quote the reference: show them to no agent.
"""

import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from sweetrl.evaluation.facts import Fact, facts_of, sentences, told
from sweetrl.evaluation.intervals import clustered_mean
from sweetrl.evaluation.leaks import Leak, Said, find_leak, reference_of, secret_positions
from sweetrl.types import BackendSecret, Episode, Kind, Metric, Task

REPLY_LIMIT = {Kind.BACKEND: 400, Kind.FRONTEND: 1000}
"""Characters after which a reply is cut (paper, section 4)."""

_NOT_KNOWING = re.compile(
    r"\b(?:(?:do|does|did)(?:n['’]?t| not) (?:really |actually )?(?:know|say|specify|mention)"
    r"|(?:not|n['’]t) (?:sure|certain|specified|aware)|unsure|no idea|can(?:no|['’])t (?:say|tell))\b",
    re.IGNORECASE,
)


class ReplyFairness(Struct, frozen=True, kw_only=True):
    """What one reply gave away, and how it looks."""

    turn: int
    """From 0: the agent's turn that it answers."""
    carried: float
    """Share of the reference's code, without what the request tells, that stands in this reply."""
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
    """The figures of a run, each with an interval over tasks."""

    dialogues: int
    replies: int
    metrics: tuple[Metric, ...]


# ---------------------------------------------------------------- one dialogue


def assess_dialogue(task: Task, episode: Episode) -> DialogueFairness:
    """The fairness of every reply of an episode, and of all together."""
    reference = reference_of(task)
    secret = secret_positions(reference, task.request)
    unknown = dict.fromkeys(_facts(task))
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
        replies.append(_assess_reply(number, text, task.kind, leak, secret, new, seen))
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
    text: str,
    kind: Kind,
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
        ignorant=_NOT_KNOWING.search(text) is not None,
        cut=len(text) >= REPLY_LIMIT[kind],
        repeated=_normal(text) in seen,
    )


def _facts(task: Task) -> tuple[Fact, ...]:
    secret = task.secret
    return facts_of(secret.reference, task.request) if isinstance(secret, BackendSecret) else ()


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


# ---------------------------------------------------------------- a run


class FairnessTally:
    """Adds up dialogues; holds a few numbers per task, no texts."""

    def __init__(self) -> None:
        self.dialogues = 0
        self.replies = 0
        self._sums: dict[str, dict[str, list[float]]] = {name: {} for name in _METRICS}

    def add(self, dialogue: DialogueFairness) -> None:
        """One more dialogue."""
        self.dialogues += 1
        self.replies += len(dialogue.replies)
        for name, count in _METRICS.items():
            amount, of = count(dialogue)
            sums = self._sums[name].setdefault(dialogue.task_id, [0.0, 0.0])
            sums[0] += amount
            sums[1] += of

    def report(self) -> FairnessReport:
        """The figures so far."""
        metrics = (
            clustered_mean(name, [s[0] for s in by_task.values()], [int(s[1]) for s in by_task.values()])
            for name, by_task in self._sums.items()
        )
        return FairnessReport(dialogues=self.dialogues, replies=self.replies, metrics=tuple(metrics))


def _of_replies(quality: str) -> Callable[[DialogueFairness], tuple[float, int]]:
    def count(dialogue: DialogueFairness) -> tuple[float, int]:
        return sum(getattr(reply, quality) for reply in dialogue.replies), len(dialogue.replies)

    return count


_METRICS: dict[str, Callable[[DialogueFairness], tuple[float, int]]] = {
    "leaking_dialogues": lambda dialogue: (dialogue.leaks, 1),
    "leaking_replies": _of_replies("leaks"),
    "code_carried": lambda dialogue: (dialogue.carried, 1),
    "facts_disclosed": lambda dialogue: (dialogue.disclosed, dialogue.facts),
    "ignorant_replies": _of_replies("ignorant"),
    "cut_replies": _of_replies("cut"),
    "repeated_replies": _of_replies("repeated"),
}
"""What is reported: an amount and what it is a share of, for one dialogue."""
