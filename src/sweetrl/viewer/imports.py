"""Published ColBench files and chat logs as record files, so that the index reads them like any run.

The records are kept beside the index until the file changes. Annotations stay beside the file itself.
"""

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sweetrl.domains.exchange import ForeignDialogues
from sweetrl.errors import UsageError
from sweetrl.experiments.layout import EPISODES, VERDICTS
from sweetrl.records import record_lines, unreadable
from sweetrl.viewer.sources import TASKS, Given, kind_of

_HEAD = 4096


def with_imports(given: Sequence[Given], place: Path) -> list[Given]:
    """What was given, with the records in `place` instead of files that hold none."""
    return [_imported(each, place) if _is_foreign(each.path) else each for each in given]


def _is_foreign(path: Path) -> bool:
    """Whether a file has something, but no records of ours, not even the beginning of one."""
    if path.is_dir() or kind_of(path) is not None:
        return False
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise unreadable(path, error) from error
    return bool(head.strip()) and not head.startswith(b'{"schema":')


def _imported(given: Given, place: Path) -> Given:
    path, state = given.path, given.path.stat()
    about = f"{path}\n{state.st_size}\n{state.st_mtime_ns}"
    name = hashlib.blake2b(str(path).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    folder = place / name / hashlib.blake2b(about.encode("utf-8", "replace"), digest_size=8).hexdigest()
    if not folder.is_dir():
        shutil.rmtree(folder.parent, ignore_errors=True)  # as the file was before
        _write_records(ForeignDialogues(path), folder)
    return replace(given, label=given.label or path.stem, path=folder, home=path.parent)


def _write_records(dialogues: ForeignDialogues, folder: Path) -> None:
    """Write all records, and only then give the folder its name."""
    draft = folder.with_suffix(".draft")
    try:
        draft.mkdir(parents=True)
        _write(draft / EPISODES, dialogues.episodes())
        _write(draft / VERDICTS, dialogues.verdicts())
        _write(draft / TASKS, dialogues.tasks())
        draft.rename(folder)
    except OSError as error:
        raise UsageError(f"{draft}: cannot be written: {error.strerror}; choose another --index") from error


def _write(path: Path, records: Iterable[Any]) -> None:
    with path.open("wb") as file:
        file.writelines(record_lines(records))
