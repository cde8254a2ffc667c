"""Files that a command writes in one go: whole, or not at all."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from sweetrl.errors import UsageError
from sweetrl.records import unwritable


def write_lines(path: Path, lines: Iterable[bytes], *, replace: bool) -> int:
    """Write `lines` to a new file as they come; how many there were.

    `path` gets its name when the last line is in, so that a failure or Ctrl-C leaves what was there.
    """
    temporary = path.parent / f".{path.name}.tmp"
    count = 0
    try:
        refuse_existing(path, replace=replace)
        with temporary.open("wb") as file:
            for count, line in enumerate(lines, start=1):  # noqa: B007  counts
                file.write(line)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return count


def refuse_existing(path: Path, *, replace: bool) -> None:
    """Stop before any work if the output is not to be written."""
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file to write with -o")
    if path.exists() and not replace:
        raise UsageError(f"{path}: exists already; choose another output with -o, or replace it with --force")
