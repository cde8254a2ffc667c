"""Single files: written whole or not at all, and what to say when they cannot be read or written."""

import contextlib
import errno
import os
from difflib import get_close_matches
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
        return DataError(f"no such file; {_nearest(path)}", path=path)
    if isinstance(error, IsADirectoryError):
        return DataError("is a folder, a file of JSON lines was expected; name a file in it", path=path)
    return DataError(f"cannot be read: {error.strerror}", path=path)


def _nearest(path: Path) -> str:
    """What may have been meant by the path of a file that is not there."""
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    close = get_close_matches(path.name, [each.name for each in path.parent.iterdir()], n=1, cutoff=0.8)
    return f"did you mean {path.with_name(close[0])}?" if close else "give the path of one that exists"


def unwritable(path: Path, error: OSError) -> UsageError:
    """The one-line form of a failed write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return UsageError(f"{path}: no space left; free some and run the same command again to go on")
    return UsageError(f"{path}: cannot be written: {error.strerror}; choose another output with -o")
