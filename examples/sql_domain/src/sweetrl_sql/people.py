"""The scripted sides of a dialogue: an analyst who answers, and two agents as upper and lower baseline."""

import random
import re
from collections.abc import Sequence

from sweetrl import CollaboratorError, Message, Reply, Role, Task
from sweetrl_sql.tables import BOUNDS, MEASURES, THEMES, SqlSecret, write_query

QUESTIONS = {
    "measure": "Which figure do you need: a total, an average, the largest or a number?",
    "place": "Which place should the rows be from?",
    "bound": "Is there a lower bound that a row must reach?",
}
WORDS = {
    "measure": r"\b(figure|measure|total|average|aggregate)\b",
    "place": r"\b(place|city|ward|branch|where)\b",
    "bound": r"\b(bound|minimum|least|threshold|priority|urgency|renewals)\b",
}
"""How the analyst recognises what a question is about; the first that fits counts."""


class Analyst:
    """A collaborator who answers one topic at a time, and tells the truth."""

    name = "analyst"

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        """The fact that the last message asks for."""
        if not isinstance(task.secret, SqlSecret):
            raise CollaboratorError(f"the analyst knows sql tasks only, and {task.id} is about {task.domain}")
        for topic, words in WORDS.items():
            if re.search(words, history[-1].text, re.IGNORECASE):
                return Reply(task.secret.facts[topic])
        return Reply("I don't know what you mean. Ask me about the figure, the place or a bound.")


class Oracle:
    """Asks about everything, then writes the query: the best that can be done."""

    name = "sql-oracle"

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """The next question, or the query."""
        questions = list(QUESTIONS.values())
        asked = _asked(history)
        return [questions[asked] if asked < len(questions) else _answer(history, random.Random(seed))] * n


class Guesser:
    """Asks at random and guesses what it was not told."""

    name = "sql-guesser"

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """A random question, sometimes the query; after three questions always the query."""
        return [self._next(history, random.Random(f"{seed}/{sample}")) for sample in range(n)]

    def _next(self, history: Sequence[Message], rng: random.Random) -> str:
        if _asked(history) == len(QUESTIONS) or rng.random() < 0.2:
            return _answer(history, rng)
        return rng.choice(list(QUESTIONS.values()))


def _asked(history: Sequence[Message]) -> int:
    return sum(message.role is Role.ASSISTANT for message in history)


def _answer(history: Sequence[Message], rng: random.Random) -> str:
    """The query for what the analyst has said; what is not known is drawn."""
    request, *replies = (message.text for message in history if message.role is Role.USER)
    theme = next(each for each in THEMES if f" {each.table}(" in request)
    said = " ".join(replies)
    measure = _found(rf"The (\w+) of {theme.measured}", said) or rng.choice(sorted(MEASURES))
    place = _found(rf"{theme.where} = '(\w+)'", said) or rng.choice(theme.places)
    bound = _found(rf"{theme.ranked} >= (\d)", said) or rng.choice(BOUNDS)
    return f"I WANT TO ANSWER:\n{write_query(theme, measure, place, int(bound))}"


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match[1] if match else None
