"""Files of dialogues in any JSON layout: one per line, an array of all, or one object over many lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from sweetrl.domains.chat.logs import MESSAGES, SHAPE, kind_of
from sweetrl.errors import DataError
from sweetrl.records import read_lines, unreadable

WHOLE_FILE_BYTES = 256 << 20
"""A larger file is read line by line only."""


class Entry(NamedTuple):
    """One dialogue of a file, undecoded."""

    path: Path
    number: int
    """Number of its line, or of its item in an array; from 1."""
    raw: bytes
    in_array: bool = False

    def complaint(self, message: str, kind: type[DataError] = DataError) -> DataError:
        """An error that names the place of the entry."""
        if self.in_array:
            return kind(f"item {self.number}: {message}", path=self.path)
        return kind(message, path=self.path, line=self.number)

    def wrong_shape(self, found: Any) -> DataError:
        """An error for an entry that is no dialogue at all."""
        return self.complaint(f"expected a dialogue such as {SHAPE}, found {kind_of(found)}")


def entries(path: Path) -> Iterator[Entry]:
    """The dialogues of a file, one after the other; a file without any is an error."""
    first = True
    for number, raw in read_lines(path):
        if first and (whole := _one_value(path, raw)) is not None:
            yield from whole
            return
        first = False
        yield Entry(path, number, raw)
    if first:
        raise DataError(f"has no records; expected lines such as {SHAPE}", path=path)


def _one_value(path: Path, line: bytes) -> list[Entry] | None:
    """The entries of a file that is one JSON value; None if it has a value on each line, as `line` is its first."""
    value, content = _decoded(line), line
    if value is None:
        content = _content(path)
        value = _decoded(content)
        if value is None and not line.lstrip().startswith((b"{", b"[")):
            raise DataError(f"not a file of JSON; expected lines such as {SHAPE}", path=path, line=1)
    elif not isinstance(value, list) or is_messages(value):
        return None
    if value is None:
        return None
    if not isinstance(value, list) or is_messages(value):
        return [Entry(path, 1, content)]
    if not value:
        raise DataError(f"is an empty list; expected dialogues such as {SHAPE}", path=path)
    items = msgspec.json.decode(content, type=list[Raw])
    return [Entry(path, number, bytes(item), in_array=True) for number, item in enumerate(items, start=1)]


def is_messages(value: Any) -> bool:
    """Whether a list is one of messages, and not of dialogues."""
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and bool({"role", "from"} & first.keys() - set(MESSAGES))


def _decoded(content: bytes) -> Any:
    """The JSON value; None if the content is not JSON."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _content(path: Path) -> bytes:
    """The whole file; nothing of one that is too large for that."""
    try:
        large = path.stat().st_size > WHOLE_FILE_BYTES
        return b"" if large else path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise unreadable(path, error) from error
