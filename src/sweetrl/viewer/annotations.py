"""Annotations: what people think of turns, in an `annotations.jsonl` beside the dialogues that is only appended to.

A mark is one line, written at once under a lock, so that several viewers can write to one file and a crash can at
worst tear the last line. A torn line is skipped when the file is read.
"""

import errno
import fcntl
import os
from pathlib import Path
from stat import S_ISREG

import msgspec

from sweetrl.errors import UsageError
from sweetrl.records import decode_json, read_lines, unwritable
from sweetrl.types import Annotation

ANNOTATIONS = "annotations.jsonl"
NOTE_CHARACTERS = 2000


def append_annotation(folder: Path, annotation: Annotation) -> None:
    """Write one mark, whole or not at all, and have it on the disk."""
    path = folder / ANNOTATIONS
    try:
        # A link in a stranger's run could lead to any file of ours.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise UsageError(f"{path}: cannot be written: {reason}; copy the run to annotate it") from error
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError(f"{path}: cannot be written: it is no ordinary file; remove it")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        append_line(descriptor, msgspec.json.encode(annotation) + b"\n")
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        os.close(descriptor)


def append_line(descriptor: int, line: bytes) -> None:
    """Write a line to the end of a file, whole or not at all, and have it on the disk."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line  # ends the line that a crash has torn
    written = os.write(descriptor, line)
    if written < len(line):
        os.ftruncate(descriptor, size)
        raise OSError(28, "No space left on device")
    os.fsync(descriptor)


def read_annotations(path: Path) -> list[Annotation]:
    """The marks that count: of each author the last one on a turn, in the order of the file."""
    if not path.is_file():
        return []
    decoder = msgspec.json.Decoder(Annotation)
    found: dict[tuple[str, str], Annotation] = {}
    for _, line in read_lines(path):
        try:
            annotation = decode_json(decoder, line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        found.pop((annotation.id, annotation.author), None)
        found[annotation.id, annotation.author] = annotation
    return [each for each in found.values() if each.mark != "none"]
