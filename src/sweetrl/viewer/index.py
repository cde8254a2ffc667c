"""The index: a SQLite file with a row for every dialogue, verdict and judged turn, and all words that were said.

Rows point into the record files by position. Files grow by whole lines, so extending the index reads only what is
new, and how far each file was read is committed with its rows: a killed process loses nothing. A file that was
rewritten is read again. One process at a time writes; others read what it wrote.
"""

import contextlib
import fcntl
import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Self, TypeVar

from sweetrl.errors import UsageError
from sweetrl.records import unreadable
from sweetrl.records.reading import MAX_LINE_BYTES
from sweetrl.viewer.lines import (
    REQUEST_CHARACTERS,
    EpisodeLine,
    Line,
    TurnLine,
    VerdictLine,
    decode_line,
    decode_lines,
    key_of,
    turns_by_episode,
)
from sweetrl.viewer.sources import Given, Source, find_sources

T = TypeVar("T")

VERSION = 5
"""Of the tables; an index of another version is built anew."""
CHUNK = 1 << 20
"""Bytes of a record file that are read and decoded at a time: few enough to stay in the processor's cache."""
CHUNKS = 16
"""How many of them are committed at a time."""
_HEAD = 4096
"""Bytes at the start of a file that tell whether it was rewritten."""
_SETUP = "PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA cache_size=-32768;"
_TABLES = """
CREATE TABLE state (version INTEGER);
INSERT INTO state VALUES (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
CREATE TABLE runs (id INTEGER PRIMARY KEY, title TEXT UNIQUE, folder TEXT);
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT UNIQUE, kind TEXT, run INTEGER,
    inode INTEGER DEFAULT 0, position INTEGER DEFAULT 0, head BLOB DEFAULT x'', unreadable INTEGER DEFAULT 0);
CREATE TABLE episodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER, file INTEGER, run INTEGER, name TEXT, called TEXT, task TEXT,
    turns INTEGER, ending TEXT, defects INTEGER, request TEXT, position INTEGER, length INTEGER);
CREATE TABLE verdicts (
    key INTEGER PRIMARY KEY, file INTEGER, scorer TEXT, success INTEGER, reward REAL, defects INTEGER,
    position INTEGER, length INTEGER);
CREATE TABLE turns (
    key INTEGER, file INTEGER, position INTEGER, length INTEGER, PRIMARY KEY (key, file, position)) WITHOUT ROWID;
CREATE TABLE critics (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE worst (
    critic INTEGER, key INTEGER, file INTEGER, turn INTEGER, advantage REAL, PRIMARY KEY (critic, key)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(said, content='', columnsize=0, tokenize="unicode61 remove_diacritics 2");
INSERT INTO words (words, rank) VALUES ('hashsize', 16777216);
INSERT INTO words (words, rank) VALUES ('automerge', 0);
"""
"""The version counts up from the time, so that an index that is built anew has another than the one before it.

Words are written in large parts. Sixteen of them are merged at once, which takes less than merging step by step.
"""
_ORDERS = """
CREATE INDEX IF NOT EXISTS episodes_by_key ON episodes (key);
CREATE INDEX IF NOT EXISTS episodes_by_task ON episodes (task);
"""
"""Made after the first filling, which is quicker than keeping them in order all along."""


class Index:
    """The index of the files and folders that were given. `extend` brings it up to date."""

    def __init__(self, path: Path, given: Sequence[Given]) -> None:
        self.path = path
        self._given = tuple(given)
        self._lock: int | None = None
        self._db: sqlite3.Connection | None = None
        self.stopping = threading.Event()
        """Ends `extend` after the lines that it is at; the next time goes on from there."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process write."""
        if self._db is not None:
            self._db.close()
        if self._lock is not None:
            os.close(self._lock)
        self._db = self._lock = None

    # -------- writing

    def prepare(self) -> None:
        """Make the file, so that it can be read while it is filled."""
        if self._may_write():
            self._guarded(self._connection)

    def extend(self) -> bool:
        """Index what the files have gained; whether anything changed. Does nothing while another process writes."""
        return self._may_write() and self._guarded(self._extend)

    def _guarded(self, write: Callable[[], T]) -> T:
        try:
            return write()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise UsageError(
                    f"{self.path}: the index cannot be written: {error}; free some space"
                ) from error
            self._start_over()
            return write()

    def _extend(self) -> bool:
        db = self._connection()
        before = db.total_changes
        sources = find_sources(self._given)
        self._forget_lost({str(source.path) for source in sources})
        for source in sources:
            file, run = self._registered(source)
            self._read_on(source, file, run)
            if self.stopping.is_set():
                break
        db.executescript(_ORDERS)
        return db.total_changes > before

    def _may_write(self) -> bool:
        """Take the lock, which the kernel drops when the process ends."""
        if self._lock is not None:
            return True
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(
                f"{self.path}: cannot be written: {error.strerror}; choose another --index"
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    def _connection(self) -> sqlite3.Connection:
        if self._db is None or not self.path.exists():
            self._db = self._open()
        return self._db

    def _open(self) -> sqlite3.Connection:
        # The lock keeps other writers away; only the thread that extends uses this connection.
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        db.executescript(_SETUP)
        if db.execute("PRAGMA user_version").fetchone()[0] == VERSION:
            return db
        if db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            db.close()
            self._delete()
            return self._open()
        db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version={VERSION}; COMMIT;")
        return db

    def _start_over(self) -> None:
        """A damaged index is deleted: everything in it can be read again."""
        if self._db is not None:
            self._db.close()
        self._db = None
        self._delete()

    def _delete(self) -> None:
        for ending in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)

    # -------- files

    def _registered(self, source: Source) -> tuple[int, int]:
        db = self._connection()
        known = db.execute(
            "SELECT files.id, run, title FROM files JOIN runs ON runs.id = run WHERE path = ?",
            (str(source.path),),
        ).fetchone()
        if known is not None and known[2] == source.run:
            return known[0], known[1]
        if known is not None:  # it belongs to another run than before
            self._forget(known[0])
        with _transaction(db):
            db.execute(
                "INSERT OR IGNORE INTO runs (title, folder) VALUES (?, ?)", (source.run, str(source.folder))
            )
            [run] = db.execute("SELECT id FROM runs WHERE title = ?", (source.run,)).fetchone()
            row = (str(source.path), source.kind, run)
            [file] = db.execute(
                "INSERT INTO files (path, kind, run) VALUES (?, ?, ?) RETURNING id", row
            ).fetchone()
        return file, run

    def _forget_lost(self, paths: set[str]) -> None:
        for file, path in self._connection().execute("SELECT id, path FROM files").fetchall():
            if path not in paths:
                self._forget(file)

    def _forget(self, file: int) -> None:
        """Drop a file and its rows. Its words stay, and lead to rows that are not there."""
        db = self._connection()
        with _transaction(db):
            for table in ("episodes", "verdicts", "turns", "worst"):
                db.execute(f"DELETE FROM {table} WHERE file = ?", (file,))  # noqa: S608
            db.execute("DELETE FROM files WHERE id = ?", (file,))

    def _read_on(self, source: Source, file: int, run: int) -> None:
        """Index the lines that were added to one file."""
        try:
            with source.path.open("rb") as content:
                if self._was_rewritten(content.fileno(), file):
                    self._forget(file)
                    file, run = self._registered(source)
                chunks = _chunks(content.fileno(), self._position(file), source.kind)
                while batch := list(islice(chunks, CHUNKS)):
                    with _transaction(self._connection()):
                        for whole, start in batch:
                            self._store(source.kind, whole, start, file, run)
                        self._remember(file, start + len(whole), content.fileno())
                    if self.stopping.is_set():
                        return
        except FileNotFoundError:
            return  # it is being replaced; the next round reads the new one
        except OSError as error:
            raise unreadable(source.path, error) from error

    def _position(self, file: int) -> int:
        row = self._connection().execute("SELECT position FROM files WHERE id = ?", (file,)).fetchone()
        return int(row[0])

    def _was_rewritten(self, descriptor: int, file: int) -> bool:
        select = "SELECT inode, position, head FROM files WHERE id = ?"
        inode, position, head = self._connection().execute(select, (file,)).fetchone()
        if not position:
            return False
        state = os.fstat(descriptor)
        if state.st_ino != inode or state.st_size < position:
            return True
        return bool(head != _fingerprint(descriptor, position))

    # -------- rows

    def _store(self, kind: str, whole: bytes, start: int, file: int, run: int) -> None:
        db = self._connection()
        found, lost = decode_lines(kind, whole, start)
        if lost:
            db.execute("UPDATE files SET unreadable = unreadable + ? WHERE id = ?", (lost, file))
        if kind == "episode":
            self._store_episodes(found, file, run)
        elif kind == "verdict":
            db.executemany(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                # Of several about a dialogue the last one counts, as it stays the last.
                sorted((_verdict(line, file, run) for line in found), key=itemgetter(0)),
            )
        else:
            self._store_turns(found, file, run)

    def _store_episodes(self, found: Sequence[Line[EpisodeLine]], file: int, run: int) -> None:
        db = self._connection()
        [last] = db.execute(
            "SELECT IFNULL(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'episodes'"
        ).fetchone()
        db.executemany(
            "INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (_episode(line, number, file, run) for number, line in enumerate(found, last + 1)),
        )
        db.executemany(
            "INSERT INTO words (rowid, said) VALUES (?, ?)",
            ((number, row.text) for number, (row, _, _) in enumerate(found, last + 1)),
        )

    def _store_turns(self, found: Sequence[Line[TurnLine]], file: int, run: int) -> None:
        """One row for all lines about a dialogue that follow each other, and its worst turn by each critic."""
        db = self._connection()
        blocks, worst = [], []
        critics: dict[str, int] = {}
        for block in turns_by_episode(found):
            key = key_of(run, block.episode_id)
            blocks.append((key, file, block.position, block.length))
            for critic, (advantage, turn) in block.worst.items():
                if critic not in critics:
                    critics[critic] = self._critic(critic)
                worst.append((critics[critic], key, file, turn, advantage))
        # In the order of the keys, so that neighbours in the table are written together.
        db.executemany("INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?)", sorted(blocks))
        db.executemany(
            "INSERT INTO worst VALUES (?, ?, ?, ?, ?) ON CONFLICT (critic, key) DO UPDATE SET "
            "turn = excluded.turn, advantage = excluded.advantage, file = excluded.file "
            "WHERE excluded.advantage < advantage",
            sorted(worst),
        )

    def _critic(self, name: str) -> int:
        db = self._connection()
        db.execute("INSERT OR IGNORE INTO critics (name) VALUES (?)", (name,))
        return int(db.execute("SELECT id FROM critics WHERE name = ?", (name,)).fetchone()[0])

    def _remember(self, file: int, position: int, descriptor: int) -> None:
        """How far the file was read, and what tells it from another of its name."""
        inode, head = os.fstat(descriptor).st_ino, _fingerprint(descriptor, position)
        self._connection().execute(
            "UPDATE files SET position = ?, inode = ?, head = ? WHERE id = ?", (position, inode, head, file)
        )


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN")
    try:
        yield
        db.execute("UPDATE state SET version = version + 1")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _episode(line: Line[EpisodeLine], number: int, file: int, run: int) -> tuple[object, ...]:
    row, position, length = line
    name, request = row.name, row.request[:REQUEST_CHARACTERS]
    about = (name, row.called, row.task_id, len(row.turns), row.ending, row.defects, request)
    return (number, key_of(run, name), file, run, *about, position, length)


def _verdict(line: Line[VerdictLine], file: int, run: int) -> tuple[Any, ...]:
    row, *place = line
    return (key_of(run, row.episode_id), file, row.scorer, row.success, row.reward, row.defects, *place)


def _chunks(descriptor: int, position: int, kind: str) -> Iterator[tuple[bytes, int]]:
    """The whole lines of a file from `position` on, many at a time, and where each lot starts."""
    rest = b""
    while chunk := os.pread(descriptor, CHUNK, position + len(rest)):
        end = chunk.rfind(b"\n") + 1
        if end:
            whole = rest + chunk[:end]
            yield whole, position
            position, rest = position + len(whole), chunk[end:]
        else:
            rest += chunk
        if len(rest) > MAX_LINE_BYTES:  # no record is this long: its pieces count as unreadable lines
            yield rest, position
            position, rest = position + len(rest), b""
    # A record that is still being written is no whole JSON object, and is left for the next time.
    if rest and decode_line(kind, rest) is not None:
        yield rest, position


def _fingerprint(descriptor: int, position: int) -> bytes:
    """Of the start of the part that was read, and of its end: appending changes neither."""
    start = os.pread(descriptor, min(_HEAD, position), 0)
    end = os.pread(descriptor, min(_HEAD, position), max(0, position - _HEAD))
    return hashlib.blake2b(start + end, digest_size=16).digest()
