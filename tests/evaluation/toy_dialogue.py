"""A dialogue so small that the value of everything one might say can be enumerated.

A task hides four facts, each worth something. The agent asks for one of them or answers, at random; an answer
earns what the facts are worth that came out. At the turn limit the last message is the answer, and a question
earns nothing.
"""

import random
from collections.abc import Sequence
from statistics import fmean

from sweetrl.dialogue.agents import ScriptedAgent
from sweetrl.dialogue.collaborators import ScriptedCollaborator
from sweetrl.dialogue.rules import ANSWER_MARKER, Rules
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.types import CandidateSet, Ending, Episode, Message, Reply, Role, Task, Turn, Verdict, digest

RULES = Rules(turn_limit=4)
FACTS = "abcd"
OPTIONS = (*(f"{fact}?" for fact in FACTS), ANSWER_MARKER)


def task(number: int) -> Task:
    draw = random.Random(number)
    weights = [draw.random() for _ in FACTS]
    worth = {fact: weight / sum(weights) for fact, weight in zip(FACTS, weights, strict=True)}
    secret = BackendSecret(reference="def f(): ...", tests={"t": "f()"})
    return Task(id=f"t{number}", domain="backend", request="Go.", secret=secret, extra={"worth": worth})


def speak(history: Sequence[Message], seed: int) -> str:
    option = random.Random(seed).choice(OPTIONS)
    return said(option, [message.text for message in history if message.role is Role.ASSISTANT])


def said(option: str, before: Sequence[str]) -> str:
    """An answer tells what is known."""
    return f"{ANSWER_MARKER} {known(before)}" if option == ANSWER_MARKER else option


def known(texts: Sequence[str]) -> str:
    return "".join(sorted({text[0] for text in texts if text.endswith("?")}))


def agent() -> ScriptedAgent:
    return ScriptedAgent(speak, name="toy agent")


def collaborator() -> ScriptedCollaborator:
    return ScriptedCollaborator(lambda task, history, seed: "So be it.", name="toy person")


class ToyScorer:
    """Judges answers, and counts how many it was given."""

    name = "toy/1"

    def __init__(self) -> None:
        self.judged = 0

    async def score(self, task: Task, episode: Episode) -> Verdict:
        self.judged += 1
        reward = worth(task, episode.answer or "")
        return Verdict(
            task_id=task.id,
            episode_id=episode.id,
            scorer=self.name,
            answer_digest=digest(episode.answer),
            reward=reward,
            success=reward > 0.5,
        )


def worth(task: Task, answer: str) -> float:
    return 0.0 if answer.endswith("?") else sum(task.extra["worth"][fact] for fact in answer)


def true_value(task: Task, before: Sequence[str], output: str) -> float:
    """Of saying `output` after the messages `before`: all that may follow, weighed by how likely it is."""
    if output.startswith(ANSWER_MARKER):
        return worth(task, output.removeprefix(ANSWER_MARKER).strip())
    if len(before) + 1 == RULES.turn_limit:
        return 0.0
    now = [*before, output]
    return fmean(true_value(task, now, said(option, now)) for option in OPTIONS)


def episode(number: int, questions: str) -> Episode:
    """Asks about each letter, then answers."""
    asked = tuple(Turn(f"{fact}?", f"{fact}?", Reply("So be it.")) for fact in questions)
    answer = said(ANSWER_MARKER, [turn.said for turn in asked])
    return Episode(
        task_id=f"t{number}",
        attempt=0,
        seed=0,
        agent="toy agent",
        collaborator="toy person",
        request="Go.",
        turns=(*asked, Turn(answer, answer)),
        ending=Ending.ANSWERED,
        answer=known([turn.said for turn in asked]),
    )


def candidates(of: Episode, turn: int, count: int = 16) -> CandidateSet:
    """So many that the agent might have said at a turn, some of them twice or more."""
    draw = random.Random(f"{of.id}@{turn}")
    before = [past.said for past in of.turns[:turn]]
    outputs = tuple(said(draw.choice(OPTIONS), before) for _ in range(count))
    return CandidateSet(episode_id=of.id, task_id=of.task_id, turn=turn, outputs=outputs)
