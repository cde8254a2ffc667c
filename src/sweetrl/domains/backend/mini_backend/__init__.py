"""`mini-backend`: small programming tasks made from a seed, in which asking the right questions is the problem.

A request hints at the few facts that matter, out of many that one could ask about; the code that follows from
them is simple. Which split a task belongs to follows from its reference alone.
"""

from sweetrl.domains.backend.mini_backend.making import NAME, make_tasks
from sweetrl.domains.backend.mini_backend.speech import (
    asked_fact,
    explained_fact,
    hidden_facts,
    question_about,
    random_question,
    reply_to,
    written_from,
)
from sweetrl.domains.backend.mini_backend.worth import turn_worth

__all__ = [
    "NAME",
    "asked_fact",
    "explained_fact",
    "hidden_facts",
    "make_tasks",
    "question_about",
    "random_question",
    "reply_to",
    "turn_worth",
    "written_from",
]
