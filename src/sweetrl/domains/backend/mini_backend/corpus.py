"""Dialogues of a mediocre programmer on `mini-backend` tasks: training data of the tiny model.

Every turn is good or bad by chance alone, independent of the others: the programmer may follow a hint of the
request, ask about something else, or answer too early. It understands only one of the ways in which a request
hints at a fact: the others have to be learned from success and failure. Its code follows what it was told.
"""

import random

from msgspec import Struct

from sweetrl.domains.backend.mini_backend.facts import IRRELEVANT, Fact, Family
from sweetrl.domains.backend.mini_backend.making import (
    function_name,
    function_source,
    read_choice,
    reference_of,
)
from sweetrl.domains.backend.mini_backend.speech import FRAMES, IGNORANCE
from sweetrl.seeds import derive_seed
from sweetrl.types import Message, Role, Task


class Habits(Struct, frozen=True, kw_only=True):
    """Behaviour of the programmer of the corpus: probabilities of its actions at a turn."""

    understands: int = 1
    """How many cues of a fact it recognises; a count, unlike the others."""
    reads_reference: bool = False
    """Whether it takes hints from the reference instead of the request."""
    follow: float = 0.7
    """That a question follows a hint that it understands and did not ask about yet."""
    wander: float = 0.9
    """That another question is about a fact, and not about something that never matters."""
    repeat: float = 0.01
    """That a question was asked before."""
    hurry: float = 0.06
    """That a turn answers although a hint is left."""
    finish: float = 0.06
    """That a turn answers when none is."""
    phrasings: int = 2
    """How many phrasings of a question about a fact it has; also a count."""
    opener: float = 0.0
    """That a question begins with one of the `OPENERS`."""


HABITS = Habits()
KNOWING = Habits(reads_reference=True, follow=1.0, repeat=0.0, hurry=0.0, finish=1.0)
"""Habits of a programmer who has read the reference: asks about exactly the facts in it."""
ABLE = Habits(understands=2)
"""Habits of a programmer who understands twice as many hints; the larger model, `mini-large`, imitates it."""
VARIED = Habits(phrasings=3, opener=0.5)
"""Habits of a programmer whose questions vary in words and length, and in nothing else."""
OPENERS = ("Also:", "Tell me:", "I wonder:", "One more thing:", "Just to be sure:", "Before I write it:")
"""Openers contain no word that tells facts apart: questions mean the same with and without them."""
TURN_LIMIT = 8
ANSWER = "I WANT TO ANSWER:\n"


def hold_dialogue(task: Task, seed: int, habits: Habits = HABITS) -> list[Message]:
    """One dialogue, request and answer included."""
    rng = random.Random(derive_seed("corpus", task.id, seed))  # noqa: S311  not a secret
    return _Programmer(task, rng, habits).talk()


class _Programmer:
    def __init__(self, task: Task, rng: random.Random, habits: Habits) -> None:
        self._task = task
        self._rng = rng
        self._habits = habits
        self._family, choice = read_choice(reference_of(task))
        self._choice = dict(choice)
        understood = cued_facts(task.request, self._family, understood=habits.understands)
        self._hints = list(self._choice) if habits.reads_reference else understood
        self._asked: list[Fact] = []
        self._irrelevant = rng.sample(IRRELEVANT, len(IRRELEVANT))

    def talk(self) -> list[Message]:
        said = [Message(Role.USER, self._task.request)]
        for turn in range(TURN_LIMIT):
            if turn == TURN_LIMIT - 1 or self._answers():
                return [*said, Message(Role.ASSISTANT, self._answer())]
            said += self._exchange()
        raise AssertionError("the last turn answers")

    def _answers(self) -> bool:
        done = all(fact in self._asked for fact in self._hints)
        return self._rng.random() < (self._habits.finish if done else self._habits.hurry)

    def _exchange(self) -> list[Message]:
        fact = self._next_fact()
        if fact is None:
            question, reply = self._irrelevant.pop(), self._rng.choice(IGNORANCE)
        else:
            question, reply = self._rng.choice(fact.questions[: self._habits.phrasings]), self._reply(fact)
            self._asked.append(fact)
        return [Message(Role.ASSISTANT, self._opened(question)), Message(Role.USER, reply)]

    def _opened(self, question: str) -> str:
        if not self._habits.opener or self._rng.random() >= self._habits.opener:
            return question
        return f"{self._rng.choice(OPENERS)} {question}"

    def _next_fact(self) -> Fact | None:
        chance = self._rng.random
        if self._asked and chance() < self._habits.repeat:
            return self._rng.choice(self._asked)
        hints = [fact for fact in self._hints if fact not in self._asked]
        if hints and chance() < self._habits.follow:
            return self._rng.choice(hints)
        others = [fact for fact in self._family.facts if fact not in self._asked and fact not in hints]
        return self._rng.choice(others) if others and chance() < self._habits.wander else None

    def _reply(self, fact: Fact) -> str:
        value = self._choice.get(fact)
        if value is None:
            return self._rng.choice(IGNORANCE)
        return self._rng.choice(FRAMES).format(phrase=self._rng.choice(value.phrases))

    def _answer(self) -> str:
        told = [fact for fact in self._family.facts if fact in self._asked and fact in self._choice]
        steps = [self._choice[fact].code for fact in told]
        return ANSWER + function_source(self._family, function_name(self._task.request), steps)


def cued_facts(request: str, family: Family, *, understood: int | None = None) -> list[Fact]:
    """The facts that a request hints at, to somebody who understands the first few cues of each, or all."""
    return [fact for fact in family.facts if any(cue in request for cue in fact.cues[:understood])]
