"""Text-to-SQL with clarifying questions: a vague request, a hidden database, and an analyst who knows what is meant.

`tables.py` makes tasks, `people.py` has the scripted sides of a dialogue, `scorer.py` runs queries. This file puts them
together into the one object that sweetrl asks.
"""

from sweetrl import Domain, Labels, Prompt, Prompts, plain_scoring
from sweetrl_sql.people import Analyst, Guesser, Oracle
from sweetrl_sql.scorer import SqlScorer, query_in
from sweetrl_sql.tables import SqlSecret, make_tasks

__all__ = ["SQL"]

AGENT = """
You write SQL for a colleague whose request leaves out what matters. Ask one short question at a time. You have
{turn_limit} messages in all; the last one must be I WANT TO ANSWER: followed by one SQLite SELECT.
"""
SINGLE_TURN = "Write one SQLite SELECT for the request. Begin with I WANT TO ANSWER: and do not ask anything."
COLLABORATOR = """
You need this query, but cannot write it yourself:
{hidden_information}

Your request was: {problem_description}
The conversation so far:
{dialogue_history}

Answer the last question in one sentence, from the query alone. Never quote the query.
"""
PRIVILEGED = "The query that is wanted:\n{hidden_information}"

SQL = Domain(
    name="sql",
    secret=SqlSecret,
    reference=lambda secret: secret.query,
    prompts=Prompts(
        agent=Prompt(AGENT, source="agent-sql"),
        single_turn=Prompt(SINGLE_TURN, source="agent-sql-single-turn"),
        collaborator=Prompt(COLLABORATOR, source="collaborator-sql"),
        privileged=Prompt(PRIVILEGED, source="privileged-sql"),
    ),
    labels=Labels(agent="Engineer", reference="query", language="sql", checks="result sets right"),
    answer=lambda said: query_in(said[-1]),
    scoring=plain_scoring(SqlScorer),
    collaborators={"analyst": lambda _browser: Analyst()},
    agents={
        "sql-oracle": lambda _tasks, _turn_limit: Oracle(),
        "sql-guesser": lambda _tasks, _turn_limit: Guesser(),
    },
    generators={"mini-sql": make_tasks},
)
