"""Single files: written whole or not at all, and what to say when they cannot be read or written."""

import contextlib
import errno
import os
from pathlib import Path

from sweetrl.errors import DataError, UsageError


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`, or leave it as it was."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise unwritable(path, error) from error


def unreadable(path: Path, error: OSError) -> DataError:
    """The one-line form of a failed `open` or `read`."""
    if isinstance(error, FileNotFoundError):
        return DataError("no such file", path=path)
    if isinstance(error, IsADirectoryError):
        return DataError("is a folder, a file of JSON lines was expected", path=path)
    return DataError(f"cannot be read: {error.strerror}", path=path)


def unwritable(path: Path, error: OSError) -> UsageError:
    """The one-line form of a failed write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return UsageError(f"{path}: no space left; free some and run the same command again to go on")
    return UsageError(f"{path}: cannot be written: {error.strerror}; choose another output with -o")
