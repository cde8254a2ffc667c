"""Questions to the index: which dialogues there are, filtered, sorted and page by page."""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from sweetrl.errors import UsageError
from sweetrl.viewer.lines import Defect, key_of

PAGE = 50
"""Dialogues on one page of the list."""
REMEMBERED = 200
"""Answers that are kept until the index changes."""
OUTCOMES = {
    "success": "v.success = 1",
    "failure": "v.success = 0 AND v.reward IS NOT NULL",
    "unscored": "v.reward IS NULL",
}
SORTS = {
    "file": ("in order", "e.id"),
    "hurt": ("most hurt by one turn", "w.advantage IS NULL, w.advantage, e.id"),
    "reward": ("lowest reward", "v.reward IS NULL, v.reward, e.id"),
    "best": ("highest reward", "v.reward IS NULL, v.reward DESC, e.id"),
    "turns": ("most turns", "e.turns DESC, e.id"),
}
CRITICS = 30
"""By which a list can be sorted."""
DEFECTS = {each.label: each for each in Defect}

_FROM = "FROM episodes e JOIN runs r ON r.id = e.run LEFT JOIN verdicts v ON v.key = e.key"
_COLUMNS = (
    "r.title, e.name, e.called, e.task, e.request, e.turns, e.ending, e.defects | IFNULL(v.defects, 0), "
    "v.scorer, v.success, v.reward, w.turn, w.advantage"
)
_PHRASE = re.compile(r'"([^"]*)"|(\S+)')


class Row(Struct, frozen=True):
    """A dialogue as lists show it."""

    run: str
    id: str
    called: str
    """The id that a chat log gives it; empty for other dialogues."""
    task: str
    request: str
    """Its beginning."""
    turns: int
    ending: str
    defects: tuple[str, ...]
    scorer: str | None
    success: bool | None
    """None if it was not scored."""
    reward: float | None
    worst_turn: int | None
    """The turn with the lowest advantage by the critic of the list, counted from 0."""
    worst_advantage: float | None

    @property
    def title(self) -> str:
        """What people call it."""
        return self.called or self.id


class RunRow(Struct, frozen=True):
    """A run as the index knows it."""

    title: str
    dialogues: int
    scored: int
    succeeded: int
    folder: str


@dataclass(frozen=True)
class Query:
    """What a list shows."""

    runs: tuple[str, ...] = ()
    """Titles; all if empty."""
    outcome: str = ""
    ending: str = ""
    defect: str = ""
    task: str = ""
    text: str = ""
    least_turns: int | None = None
    most_turns: int | None = None
    sort: str = "file"
    critic: str = ""
    """Whose advantages are shown and sorted by: the first one if it is not among them, as scales differ."""
    page: int = 0

    def __post_init__(self) -> None:
        for value, known, what in (
            (self.outcome, OUTCOMES, "outcome"),
            (self.defect, DEFECTS, "defect"),
            (self.sort, SORTS, "sort"),
        ):
            if value and value not in known:
                raise UsageError(f"unknown {what} {value[:40]!r}; there are {', '.join(known)}")

    def conditions(self) -> tuple[str, list[Any]]:
        """As SQL with its parameters. The dialogues with the words are in a table `found`."""
        found: list[tuple[str, Sequence[Any]]] = []
        if self.runs:
            found.append((f"r.title IN ({', '.join('?' * len(self.runs))})", self.runs))
        if self.outcome:
            found.append((f"({OUTCOMES[self.outcome]})", ()))
        if self.ending:
            found.append(("e.ending = ?", (self.ending,)))
        if self.defect:
            found.append(("(e.defects | IFNULL(v.defects, 0)) & ?", (int(DEFECTS[self.defect]),)))
        if self.task:
            found.append(("e.task = ?", (self.task,)))
        if self.least_turns is not None:
            found.append(("e.turns >= ?", (self.least_turns,)))
        if self.most_turns is not None:
            found.append(("e.turns <= ?", (self.most_turns,)))
        if words_query(self.text):
            found.append(("e.id IN (SELECT id FROM found)", ()))
        clause = " AND ".join(condition for condition, _ in found) or "1"
        return clause, [value for _, values in found for value in values]


def words_query(text: str) -> str:
    """A search as FTS5 reads it: all words and "whole phrases" must occur; the last word may go on."""
    parts = []
    for phrase, word in _PHRASE.findall(text[:500].replace("\0", " ")):
        quoted = (phrase or word).replace('"', '""')
        if any(each.isalnum() for each in quoted):
            parts.append((f'"{quoted}"', not phrase))
    if parts and parts[-1][1]:
        parts[-1] = (f"{parts[-1][0]}*", True)
    return " AND ".join(part for part, _ in parts)


@dataclass
class Reader:
    """Reads the index, whichever process writes it."""

    path: Path
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """A connection for one question."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=10)) as db:
            yield db

    def version(self) -> int:
        """Changes whenever the index does."""
        with self.connected() as db:
            return int(db.execute("SELECT version FROM state").fetchone()[0])

    def runs(self) -> list[RunRow]:
        """All runs with dialogues, in the order of their titles."""
        rows = self._remembered(
            "SELECT r.title, e.dialogues, IFNULL(v.scored, 0), IFNULL(v.succeeded, 0), r.folder FROM runs r "
            "JOIN (SELECT run, COUNT(*) dialogues FROM episodes GROUP BY run) e ON e.run = r.id "
            "LEFT JOIN (SELECT f.run, SUM(n) scored, SUM(s) succeeded FROM files f JOIN "
            "(SELECT file, COUNT(reward) n, SUM(success) s FROM verdicts GROUP BY file) ON file = f.id "
            "GROUP BY f.run) v ON v.run = r.id ORDER BY r.title"
        )
        return [RunRow(*row) for row in rows]

    def folders(self) -> list[Path]:
        """Where the dialogues of the runs are."""
        return [Path(run.folder) for run in self.runs()]

    def endings(self) -> list[str]:
        """Those that occur."""
        return [ending for (ending,) in self._remembered("SELECT DISTINCT ending FROM episodes ORDER BY 1")]

    def critics(self) -> dict[str, int]:
        """Those that gave advantages, in the order in which they were first read, with their numbers.

        Names that are too long for an address are left out.
        """
        return dict(
            self._remembered(
                "SELECT name, id FROM critics c WHERE LENGTH(CAST(name AS BLOB)) <= 4000 "
                "AND EXISTS (SELECT 1 FROM worst WHERE critic = c.id) ORDER BY id LIMIT ?",
                CRITICS,
            )
        )

    def critic_of(self, query: Query) -> str:
        """By whom a list has its advantages; empty if nobody gave any."""
        known = self.critics()
        return query.critic if query.critic in known else next(iter(known), "")

    def rows(self, query: Query, *, start: int | None = None, count: int = PAGE) -> list[Row]:
        """One page of a list, or `count` rows from `start` on."""
        with self._searched(query) as db:
            return self._rows(db, query, query.page * PAGE if start is None else start, count)

    def page(self, query: Query) -> tuple[list[Row], int]:
        """One page of a list, and how many dialogues the list has; words are searched for once."""
        with self._searched(query) as db:
            return self._rows(db, query, query.page * PAGE, PAGE), self._count(db, query)

    def _rows(self, db: sqlite3.Connection, query: Query, start: int, count: int) -> list[Row]:
        where, values = query.conditions()
        tables = f"{_FROM} LEFT JOIN worst w ON w.critic = ? AND w.key = e.key"
        order = f"ORDER BY {SORTS[query.sort][1]} LIMIT ? OFFSET ?"
        critic = self.critics().get(self.critic_of(query), 0)
        select = f"SELECT {_COLUMNS} {tables} WHERE {where} {order}"
        return [_row(row) for row in db.execute(select, [critic, *values, count, start])]

    def _count(self, db: sqlite3.Connection, query: Query) -> int:
        where, values = query.conditions()
        # A join that no condition asks for would find the same rows, slowly.
        tables = _FROM if "v." in where else "FROM episodes e JOIN runs r ON r.id = e.run"
        select = f"SELECT COUNT(*) {tables} WHERE {where}"
        [(count,)] = self._remembered(select, *values, db=db, about=words_query(query.text))
        return int(count)

    @contextmanager
    def _searched(self, query: Query) -> Iterator[sqlite3.Connection]:
        """A connection that has the dialogues with the words of a query in a table `found`."""
        with self.connected() as db:
            if matched := words_query(query.text):
                db.executescript(
                    "PRAGMA temp_store=MEMORY; CREATE TEMP TABLE found (id INTEGER PRIMARY KEY);"
                )
                db.execute("INSERT INTO found SELECT rowid FROM words WHERE words MATCH ?", (matched,))
            yield db

    def _remembered(
        self, select: str, *values: Any, db: sqlite3.Connection | None = None, about: str = ""
    ) -> list[tuple[Any, ...]]:
        """The answer to a question that reads many rows; asked once until the index changes."""
        asked = (self.version(), select, about, *values)
        if asked not in self._known:
            if len(self._known) > REMEMBERED:
                self._known.clear()
            with nullcontext(db) if db is not None else self.connected() as open_db:
                self._known[asked] = open_db.execute(select, values).fetchall()
        found: list[tuple[Any, ...]] = self._known[asked]
        return found

    def unreadable_lines(self) -> Mapping[str, int]:
        """Lines that are no records, by file."""
        with self.connected() as db:
            return dict(db.execute("SELECT path, unreadable FROM files WHERE unreadable"))

    def run_id(self, title: str) -> tuple[int, Path] | None:
        """Number and folder of a run."""
        with self.connected() as db:
            row = db.execute("SELECT id, folder FROM runs WHERE title = ?", (title,)).fetchone()
        return None if row is None else (row[0], Path(row[1]))

    def places(self, run: int, name: str) -> Iterator[tuple[str, Path, int, int]]:
        """Where the records about a dialogue are: kind, file, position, length."""
        key = key_of(run, name)
        with self.connected() as db:
            for table in ("episodes", "verdicts", "turns"):
                rows = db.execute(
                    f"SELECT kind, path, t.position, length FROM {table} t JOIN files ON files.id = file "  # noqa: S608
                    "WHERE key = ? ORDER BY path",
                    (key,),
                )
                yield from ((kind, Path(path), at, length) for kind, path, at, length in rows)


def _row(row: tuple[Any, ...]) -> Row:
    run, name, called, task, request, turns, ending, defects, *scored, turn, advantage = row
    scorer, success, reward = scored
    found = tuple(each.label for each in Defect if defects & each)
    success = None if reward is None else bool(success)
    return Row(
        run, name, called, task, request, turns, ending, found, scorer, success, reward, turn, advantage
    )
