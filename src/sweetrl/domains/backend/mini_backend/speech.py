"""Questions and answers about the facts of `mini-backend`: understanding and wording them."""

import random
import re
from collections.abc import Iterable, Sequence

from sweetrl.domains.backend.mini_backend.facts import FAMILIES, IRRELEVANT, Fact, Family
from sweetrl.domains.backend.mini_backend.making import (
    family_of,
    function_name,
    function_source,
    read_choice,
    reference_of,
)
from sweetrl.seeds import derive_seed
from sweetrl.types import Message, Role, Task

FRAMES = ("It should {phrase}.", "Please let it {phrase}.", "I want it to {phrase}.", "Let it {phrase}.")
IGNORANCE = ("I do not know.", "That is not decided.", "Nothing is said about that.", "No idea, sorry.")


def hidden_facts(task: Task) -> frozenset[str]:
    """The names of the facts that matter for a task."""
    _, choice = read_choice(reference_of(task))
    return frozenset(fact.name for fact, _ in choice)


def asked_fact(text: str) -> str | None:
    """The name of the fact that a message asks about; None if it asks about none."""
    fact = understand(text, FAMILIES)
    return None if fact is None else fact.name


def reply_to(task: Task, question: str, seed: int) -> str:
    """The collaborator's reply: the truth in one of several wordings, or that it does not know."""
    family, choice = read_choice(reference_of(task))
    rng = random.Random(derive_seed("mini-backend reply", seed))  # noqa: S311  wording, no secrets
    asked = understand(question, [family])
    for fact, value in choice:
        if fact == asked:
            return rng.choice(FRAMES).format(phrase=rng.choice(value.phrases))
    return rng.choice(IGNORANCE)


def question_about(fact_name: str, seed: int) -> str:
    """One of the ways to ask about a fact."""
    [fact] = [fact for family in FAMILIES for fact in family.facts if fact.name == fact_name]
    return fact.questions[seed % len(fact.questions)]


def explained_fact(task: Task, fact_name: str) -> str:
    """A question about a fact that matters for a task, and the reply to it."""
    question = question_about(fact_name, 0)
    return f"{question} {reply_to(task, question, 0)}"


def random_question(rng: random.Random, history: Sequence[Message]) -> str:
    """A question about any fact not asked about yet, whether it can matter or not."""
    said = {message.text for message in history if message.role is Role.ASSISTANT}
    asked = {asked_fact(text) for text in said}
    idle = [question for question in IRRELEVANT if question not in said]
    facts = [fact for fact in family_of(history[0].text).facts if fact.name not in asked]
    return rng.choice([*idle, *(rng.choice(fact.questions) for fact in facts)])


def written_from(history: Sequence[Message]) -> str:
    """The function that follows from the replies in a dialogue, and from nothing else."""
    family = family_of(history[0].text)
    told = {
        fact.name: value.code
        for question, reply in zip(history[1::2], history[2::2], strict=True)
        if (fact := understand(question.text, [family])) is not None
        for value in fact.values
        if any(phrase in reply.text for phrase in value.phrases)
    }
    steps = [told[fact.name] for fact in family.facts if fact.name in told]
    return function_source(family, function_name(history[0].text), steps)


def understand(text: str, families: Iterable[Family]) -> Fact | None:
    """The fact that most of the words point at, the longest ones counting most."""
    lowered = " ".join(re.findall(r"[a-z]+", text.lower()))
    exact = _by_question().get(text.strip())
    candidates = [fact for family in families for fact in family.facts]
    if exact is not None:
        return exact if exact in candidates else None
    if text.strip() in IRRELEVANT:
        return None
    best = max(candidates, key=lambda fact: _evidence(fact, lowered))
    return best if _evidence(best, lowered) else None


def _evidence(fact: Fact, lowered: str) -> int:
    return sum(len(word) for word in fact.words if re.search(rf"\b{re.escape(word)}", lowered))


def _by_question() -> dict[str, Fact]:
    return {question: fact for family in FAMILIES for fact in family.facts for question in fact.questions}
