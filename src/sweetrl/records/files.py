"""Single files: written whole or not at all, and error messages for those that cannot be read or written."""

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from sweetrl.errors import DataError, UsageError
from sweetrl.records.hub import on_disk


def write_lines(path: Path, lines: Iterable[bytes], *, replace: bool) -> int:
    """Write `lines` to a new file as they come; how many there were.

    `path` gets its name when the last line is in, so that a failure or Ctrl-C leaves what was there.
    """
    temporary = path.parent / f".{path.name}.tmp"
    count = 0
    with getting_its_name(temporary, path):
        refuse_existing(path, replace=replace)
        with temporary.open("wb") as file:
            for count, line in enumerate(lines, start=1):  # noqa: B007  counts
                file.write(line)
            file.flush()
            os.fsync(file.fileno())
    return count


def record_lines(records: Iterable[Any]) -> Iterator[bytes]:
    """Each record as a line of JSON, for `write_lines`."""
    encode = msgspec.json.Encoder().encode
    return (encode(each) + b"\n" for each in records)


@contextlib.contextmanager
def getting_its_name(temporary: Path, path: Path) -> Iterator[None]:
    """Rename `temporary` to `path` at the end of the block; if the block fails, the old file stays."""
    try:
        yield
        temporary.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`, or leave it as it was."""
    write_lines(path, [content], replace=True)


def write_json(path: Path, value: Any) -> None:
    """Replace `path` by a value as JSON that people can read; records are welcome inside it."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(value)) + b"\n")


def refuse_existing(path: Path, *, replace: bool) -> None:
    """Stop before any work if the output is not to be written."""
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file to write with -o")
    if path.exists() and not replace:
        raise UsageError(f"{path}: exists already; choose another output with -o, or replace it with --force")


def make_folder(path: Path) -> None:
    """Make the folder of an output, if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def fingerprint(path: Path) -> str:
    """A hash of a file's content: a resumed run must read the same."""
    try:
        with on_disk(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise unreadable(path, error) from error


def read_text(path: Path) -> str:
    """The text of a file that somebody wrote; `DataError` if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text; save it as UTF-8", path=path) from None


def unreadable(path: Path, error: OSError) -> DataError:
    """The one-line form of a failed `open` or `read`."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"no such file; {_nearest(path)}", path=path)
    if isinstance(error, IsADirectoryError):
        return DataError("is a folder where a file was expected; name a file in it", path=path)
    return DataError(f"cannot be read: {error.strerror}", path=path)


def _nearest(path: Path) -> str:
    """A suggestion for the path of a file that is not there."""
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    close = get_close_matches(path.name, [each.name for each in path.parent.iterdir()], n=1, cutoff=0.8)
    return f"did you mean {path.with_name(close[0])}?" if close else "give the path of one that exists"


def unwritable(path: Path, error: OSError) -> UsageError:
    """The one-line form of a failed write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return UsageError(f"{path}: no space left; free some and rerun the same command to resume")
    if isinstance(error, FileExistsError | NotADirectoryError):
        return UsageError(
            f"{path}: cannot be written: a file is where a folder must be; choose another output with -o"
        )
    return UsageError(f"{path}: cannot be written: {error.strerror}; choose another output with -o")
