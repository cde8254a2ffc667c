"""Writing record files: append, resume, lock, and refuse to mix runs."""

import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import msgspec
from msgspec import UNSET, Struct

from sweetrl.errors import ConfigError, DataError, UsageError
from sweetrl.records.cards import RunCard, card_path, installed_versions, now, read_card, unfinish, write_card
from sweetrl.records.files import unwritable
from sweetrl.records.ids import IdSet
from sweetrl.records.reading import LineDecoder, read_lines
from sweetrl.records.shards import ALL, Part, Shard
from sweetrl.records.surrogates import without_surrogates

Record = TypeVar("Record", bound=Struct)


class RecordLog(Generic[Record]):
    """The one writer of a record file. Open it with `open_log`, use it as a context manager."""

    def __init__(
        self,
        path: Path,
        descriptor: int,
        card: RunCard,
        ids: IdSet,
        marks: IdSet,
        part: Part,
        line_id: Callable[[bytes], str],
    ) -> None:
        self.path = path
        self.part = part
        self._descriptor = descriptor
        self._card = card
        self._ids = ids
        self._marks = marks
        self._line_id = line_id
        self._size = os.fstat(descriptor).st_size
        self._encoder = msgspec.json.Encoder()
        self.repaired: str | None = None
        """A message for the user about repairs when the file was opened."""

    def has(self, identity: str, mark: str = "") -> bool:
        """Whether the record is in the file already.

        `mark` is a digest of what the record was made from, if `open_log` got a function for it: a record
        made from something else is a conflict, not a hit.
        """
        if identity not in self._ids:
            return False
        if mark and _marked(identity, mark) not in self._marks:
            raise DataError(
                f"{identity} is there already, made from another input; choose another output with -o",
                path=self.path,
            )
        return True

    def skips(self, identity: str, mark: str = "") -> bool:
        """Whether there is nothing to do for the record: it is there already, or belongs to another shard."""
        return not self.part.has(identity) or self.has(identity, mark)

    def __len__(self) -> int:
        return len(self._ids)

    def append(self, identity: str, record: Record) -> None:
        """Write one record, whole or not at all."""
        if identity in self._ids:
            raise DataError(f"a second record for {identity}", path=self.path)
        line = self._encode(record) + b"\n"
        unfinish(self.path, self._card)
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except BaseException as error:
            # If even this fails, the next run removes the torn line.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            if isinstance(error, OSError):
                raise unwritable(self.path, error) from error
            raise
        self._size += len(line)
        self._ids.add(identity)

    def _encode(self, record: Record) -> bytes:
        try:
            return self._encoder.encode(record)
        except UnicodeEncodeError:
            # A model can emit half of a surrogate pair, which UTF-8 cannot hold. It must not end a run.
            return self._encoder.encode(without_surrogates(msgspec.to_builtins(record)))

    def arrange(self) -> None:
        """Once all records are in, failed ones too, seal them by a hash; a shard's get the order of the input."""
        if len(self) < self.part.total or self._card.sha256 is not None:
            return
        if self.part.shard is not None:
            arranged = _arranged(self.path, self.part.ids, self._line_id)
            self._descriptor = _rewrite(self.path, self._descriptor, arranged)
        self._card.records, self._card.sha256 = len(self), self._digest()
        write_card(self.path, self._card)

    def finish(self) -> RunCard:
        """Complete the run card: every record is in."""
        if self.part.shard is not None:
            self.arrange()
        digest = self._digest()
        if self._card.finished is None or self._card.sha256 != digest:
            self._card.finished, self._card.records, self._card.sha256 = now(), len(self), digest
            write_card(self.path, self._card)
        return self._card

    def _digest(self) -> str:
        try:
            os.fsync(self._descriptor)
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise unwritable(self.path, error) from error

    def close(self) -> None:
        """Release the file; what was appended stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_log(
    path: Path,
    record_type: type[Record],
    *,
    command: str,
    config: Mapping[str, Any],
    source: str | None = None,
    identity: Callable[[Record], str],
    settled: Callable[[Record], bool] = lambda _: True,
    mark: Callable[[Record], str] = lambda _: "",
    part: Part = ALL,
) -> RecordLog[Record]:
    """Open a record file to write it, or to resume an earlier run.

    With the `part` of a shard, that is the file of the shard, beside `path`. Takes the file's lock, checks that it
    belongs to the same configuration, removes a torn last line and the records that are not `settled` (failures of
    ours, to be done again), and knows the ids of the rest.
    """
    path = part.file(path)
    _refuse_odd_paths(path)
    is_new = not path.exists()
    descriptor = open_locked(path)
    try:
        card = _claim(path, descriptor, _fresh_card(command, config, source, part.shard))
        # Nothing is changed before everything has been read and found in order.
        ids, marks, redo = _take_stock(path, record_type, identity, settled, mark)
        torn = _torn_bytes(descriptor)
        if torn or redo:
            unfinish(path, card)
        if torn:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - torn)
        if redo:
            descriptor = _rewrite(path, descriptor, _settled(path, record_type, settled))
        decode = LineDecoder(record_type, path)
        log: RecordLog[Record] = RecordLog(
            path, descriptor, card, ids, marks, part, lambda line: identity(decode(0, line))
        )
    except BaseException:
        if is_new and not os.fstat(descriptor).st_size:
            path.unlink()
        os.close(descriptor)
        raise
    notes = [f"removed a torn last line ({torn} bytes)"] if torn else []
    notes += [f"doing {redo} failed {'record' if redo == 1 else 'records'} again"] if redo else []
    log.repaired = "; ".join(notes) or None
    return log


def _refuse_odd_paths(path: Path) -> None:
    try:
        if path.exists() and not path.is_file():
            what = "is a folder" if path.is_dir() else "is not a regular file"
            raise UsageError(f"{path}: {what}; name a file to write with -o")
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}; make it first")
    except OSError as error:
        raise unwritable(path, error) from error
    if path.name.endswith(".run.json"):
        raise UsageError(f"{path}: names ending in .run.json are taken by run cards; choose another with -o")


def open_locked(path: Path) -> int:
    """Open for appending with an exclusive lock that the kernel drops when the process ends."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another writer may have replaced the file between our open and our lock.
        if not os.path.samestat(os.fstat(descriptor), path.stat()):
            raise BlockingIOError
    except (BlockingIOError, FileNotFoundError):
        os.close(descriptor)
        raise UsageError(f"{path}: another process is writing it; wait for it or choose another -o") from None
    except OSError as error:
        os.close(descriptor)
        raise unwritable(path, error) from error
    return descriptor


def _fresh_card(command: str, config: Mapping[str, Any], source: str | None, shard: Shard | None) -> RunCard:
    return RunCard(
        command=command,
        # Through JSON once, so that what is compared later is what was stored (tuples are lists there).
        config=msgspec.json.decode(msgspec.json.encode(config)),
        source=source or UNSET,
        versions=installed_versions(),
        started=now(),
        shard=shard or UNSET,
    )


def _claim(path: Path, descriptor: int, card: RunCard) -> RunCard:
    """The run card of this file: the old one if it says the same, the fresh one for a file without records."""
    old = read_card(path) if card_path(path).exists() else None
    if os.fstat(descriptor).st_size:
        if old is None:
            raise UsageError(
                f"{path}: exists and was not written by `sweetrl {card.command}`; choose another output with -o"
            )
        _refuse_mixing(path, old, card.command, card.config)
        if old.shard != card.shard:
            raise ConfigError(
                f"{path}: holds another part of a run than asked for; choose another output with -o"
            )
        return old
    write_card(path, card)
    return card


def _refuse_mixing(path: Path, card: RunCard, command: str, config: dict[str, Any]) -> None:
    if card.command != command:
        raise ConfigError(
            f"{path}: belongs to a run of `sweetrl {card.command}`; choose another output with -o"
        )
    differing = [key for key in {**card.config, **config} if card.config.get(key) != config.get(key)]
    if differing:
        key = differing[0]
        more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
        raise ConfigError(
            f"{path}: belongs to another run: {key} was {card.config.get(key)!r}, "
            f"now {config.get(key)!r}{more}; choose another output with -o"
        )


def _torn_bytes(descriptor: int) -> int:
    """How many bytes follow the last newline."""
    end = size = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - (1 << 16))
        at = os.pread(descriptor, end - start, start).rfind(b"\n")
        if at >= 0:
            return size - (start + at + 1)
        end = start
    return size


def _take_stock(
    path: Path,
    record_type: type[Record],
    identity: Callable[[Record], str],
    settled: Callable[[Record], bool],
    mark: Callable[[Record], str],
) -> tuple[IdSet, IdSet, int]:
    ids, marks, redo = IdSet(), IdSet(), 0
    decode = LineDecoder(record_type, path)
    for number, line in read_lines(path):
        if not line.endswith(b"\n"):
            break  # torn; only the last line can be
        record = decode(number, line)
        if not settled(record):
            redo += 1
            continue
        if not ids.add(identity(record)):
            raise DataError(f"a second record for {identity(record)}", path=path, line=number)
        if mark(record):
            marks.add(_marked(identity(record), mark(record)))
    return ids, marks, redo


def _marked(identity: str, mark: str) -> str:
    return f"{identity}\x1f{mark}"


def _rewrite(path: Path, old: int, lines: Iterable[bytes]) -> int:
    """Replace the file by one that holds `lines`, which may be read from it; the new, locked descriptor."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        new = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        # Locked before it gets its name, so that no other writer can slip in.
        fcntl.flock(new, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.fchmod(new, stat.S_IMODE(os.fstat(old).st_mode))
        with open(new, "wb", closefd=False) as file:
            file.writelines(lines)
        os.fsync(new)
        temporary.replace(path)
    except BaseException as error:
        os.close(new)
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise unwritable(path, error) from error
        raise
    os.close(old)
    return new


def _settled(path: Path, record_type: type[Record], settled: Callable[[Record], bool]) -> Iterator[bytes]:
    decode = LineDecoder(record_type, path)
    return (line for number, line in read_lines(path) if settled(decode(number, line)))


def _arranged(path: Path, ids: Iterable[str], line_id: Callable[[bytes], str]) -> Iterator[bytes]:
    """The lines of a file in the order of `ids`."""
    places: dict[str, tuple[int, int]] = {}
    with path.open("rb") as file:
        while line := file.readline():
            if not line.isspace():
                places[line_id(line)] = (file.tell() - len(line), len(line))
        for identity in ids:
            start, length = places[identity]
            file.seek(start)
            yield file.read(length)
