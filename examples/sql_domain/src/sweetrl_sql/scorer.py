"""Runs the agent's query in the sandbox and compares its rows with those of the hidden query."""

import asyncio
import re

from sweetrl import (
    Check,
    Ending,
    Episode,
    Outcome,
    Program,
    Returned,
    Sandbox,
    ScorerSettings,
    Task,
    TimedOut,
    Verdict,
    digest,
)
from sweetrl_sql.tables import SqlSecret

# Each query gets a process and a database of its own. `query_only` is a courtesy: the sandbox is what keeps it in.
RUN = """
import sqlite3
def rows(database, query):
    connection = sqlite3.connect(":memory:")
    connection.executescript(database)
    connection.execute("PRAGMA query_only = ON")
    return sorted(connection.execute(query).fetchall(), key=repr)
"""
_FENCED = re.compile(r"```(?:sql)?\s*(.*?)```", re.DOTALL | re.IGNORECASE)


def query_in(message: str) -> str:
    """The query in the agent's last message: what follows the marker, without a code fence."""
    text = message.rpartition("I WANT TO ANSWER:")[2]
    fenced = _FENCED.search(text)
    return (fenced[1] if fenced else text).strip().rstrip(";")


class SqlScorer:
    """One reward: whether the result sets are equal, rows in any order."""

    name = "sql-rows/1"

    def __init__(self, settings: ScorerSettings) -> None:
        self._sandbox = Sandbox(workers=settings.workers or 2)

    async def score(self, task: Task, episode: Episode) -> Verdict:
        """Compare the results; a dialogue that failed for reasons of ours stays unscored."""
        failed = episode.ending is Ending.FAILED
        check = None if failed else await asyncio.to_thread(self._check, task, episode.answer or "")
        right = check is not None and check.outcome is Outcome.PASSED
        return Verdict(
            task_id=task.id,
            episode_id=episode.id,
            scorer=self.name,
            answer_digest=digest(episode.answer),
            reward=None if failed else float(right),
            success=right,
            checks=() if check is None else (check,),
            failure=episode.failure if failed else None,
        )

    def _check(self, task: Task, query: str) -> Check:
        assert isinstance(task.secret, SqlSecret)
        wanted, got = self._rows(task.secret, task.secret.query), self._rows(task.secret, query)
        if isinstance(got, Returned):
            equal = isinstance(wanted, Returned) and got.encoded == wanted.encoded
            return Check("result set", Outcome.PASSED if equal else Outcome.WRONG)
        outcome = Outcome.TIMED_OUT if isinstance(got, TimedOut) else Outcome.RAISED
        return Check("result set", outcome, str(got))

    def _rows(self, secret: SqlSecret, query: str) -> object:
        call = f"rows({secret.database!r}, {query!r})"
        return self._sandbox.run(Program(sources=(RUN,), defines="rows", calls=(call,)))[0]

    def close(self) -> None:
        """End the sandbox."""
        self._sandbox.close()
