"""Which record files belong together: the dialogues of a run, their verdicts, credit, candidates and replay values.

A folder is searched for record files, which are told apart by the schema of their first line. A file about
dialogues belongs to the dialogues in its own folder or the nearest one above; a file that is named by itself and has
no such folder, to the dialogues that were named before it.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from stat import S_ISREG

import msgspec
from msgspec import Struct

from sweetrl.errors import UsageError
from sweetrl.experiments.layout import EPISODES, VERDICTS
from sweetrl.records import is_merged_shard
from sweetrl.records.reading import MAX_LINE_BYTES

logger = logging.getLogger(__name__)

TASKS = "tasks.jsonl"
KINDS = ("episode", "verdict", "credit", "candidates", "values")
"""Records that are indexed, as their schemas are called."""
_SKIPPED = {"checkpoints", "reference", "logs", "turn_pairs", "node_modules"}
"""Folders inside a run that hold none of them."""
_UNSAID = {"evaluations"}
"""Folders whose name says nothing in the title of a run."""


@dataclass(frozen=True)
class Source:
    """One record file."""

    path: Path
    kind: str
    run: str
    """Title of the run that it belongs to."""
    folder: Path
    """Of that run: its screenshots and annotations are there."""


@dataclass(frozen=True)
class Given:
    """A folder or file that was asked for."""

    label: str
    path: Path
    home: Path | None = None
    """Where annotations are kept, if not beside the dialogues."""
    place: int = 0
    """On the command line."""

    @property
    def root(self) -> Path:
        """The folder that titles are relative to."""
        return self.path if self.path.is_dir() else self.path.parent


def parse_words(words: Sequence[str]) -> list[Given]:
    """The folders and files of `PATH` or `LABEL=PATH` words."""
    given = [replace(_parse(word), place=place) for place, word in enumerate(words)]
    if len({each.path for each in given}) < len(given):
        raise UsageError("a run is given twice; give each once")
    return given


def _parse(word: str) -> Given:
    label, equals, path = word.partition("=")
    named = bool(equals and label and path) and not Path(word).exists()
    found = Path(path if named else word)
    if not (found.is_dir() or found.is_file()):
        raise UsageError(f"{found}: no such folder or file; give folders of runs, or LABEL=FOLDER")
    if not _is_utf8(path := str(found.resolve())):
        raise UsageError(f"{path!r}: the name is not UTF-8; rename it")
    return Given(label if named else "", Path(path))


# ---------------------------------------------------------------- finding files


class _Schema(Struct):
    schema: str = ""


_decoder = msgspec.json.Decoder(_Schema)


def kind_of(path: Path) -> str | None:
    """What records a file has; None if none that are indexed, or if its first line is not complete yet."""
    try:
        state = path.stat()
        if not S_ISREG(state.st_mode):
            return None  # whoever opens a pipe may wait for ever
        inode = state.st_ino
        if (path, inode) not in _kinds:
            with path.open("rb") as file:
                line = file.readline(MAX_LINE_BYTES)
            if not line.endswith(b"\n"):
                return _kind_of_line(line)
            _kinds[path, inode] = _kind_of_line(line)
    except OSError:
        return None
    return _kinds[path, inode]


_kinds: dict[tuple[Path, int], str | None] = {}
"""By file: folders are searched again and again, and a first line does not change."""


def _kind_of_line(line: bytes) -> str | None:
    try:
        name = _decoder.decode(line).schema.partition("/")[0]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return name if name in KINDS else None


def _record_files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        # Sorted in place, and without those that are not entered.
        folders[:] = sorted(
            each for each in folders if each not in _SKIPPED and not each.startswith(".") and _is_utf8(each)
        )
        for name in sorted(names):
            if name.endswith(".jsonl") and _is_utf8(name) and not is_merged_shard(Path(place, name)):
                yield Path(place, name)


@cache  # complains once
def _is_utf8(name: str) -> bool:
    """Whether a name can be shown, be part of an address, and be found again by it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        logger.warning("%r: left out, because its name is not UTF-8", name)
        return False
    return True


def find_sources(given: Sequence[Given]) -> list[Source]:
    """The record files that there are now. New ones may appear later: a run may be going on."""
    files = {
        path: (kind, each)
        for each in given
        for path in (_record_files(each.path) if each.path.is_dir() else [each.path])
        if (kind := kind_of(path)) is not None
    }
    dialogues = [(path, each) for path, (kind, each) in files.items() if kind == "episode"]
    titles = _titles(dialogues, alone=len(given) == 1)
    main = _main_files([path for path, _ in dialogues])
    found = []
    for path, (kind, each) in files.items():
        owner = path if kind == "episode" else _owner(path, each, main, dialogues)
        if owner is not None and not (kind == "verdict" and _is_second_verdict(path, files)):
            folder = files[owner][1].home or owner.parent
            found.append(Source(path, kind, titles[owner], folder))
    return found


def _main_files(paths: Sequence[Path]) -> dict[Path, Path]:
    """The file of dialogues that other files of a folder are about."""
    found: dict[Path, Path] = {}
    for path in paths:
        if path.parent not in found or path.name == EPISODES:
            found[path.parent] = path
    return found


def _owner(
    path: Path, given: Given, main: dict[Path, Path], dialogues: Sequence[tuple[Path, Given]]
) -> Path | None:
    for folder in path.parents:
        if folder in main:
            return main[folder]
        if folder == given.root:
            break
    if len(main) == 1:
        return next(iter(main.values()))
    if given.path.is_dir():
        return None
    place = max((other.place for _, other in dialogues if other.place < given.place), default=None)
    before = [each for each, other in dialogues if other.place == place]
    if len(before) != 1:
        _warn_of_stray(path)
        return None
    return before[0]


@cache  # warns once
def _warn_of_stray(path: Path) -> None:
    logger.warning("%s: left out; name it after the dialogues that it is about", path)


def _is_second_verdict(path: Path, files: dict[Path, tuple[str, Given]]) -> bool:
    """Whether another file of the folder has the verdicts that count."""
    rivals = [each for each, (kind, _) in files.items() if kind == "verdict" and each.parent == path.parent]
    return min(rivals, key=lambda each: (each.name != VERDICTS, each.name)) != path


# ---------------------------------------------------------------- titles


def _titles(dialogues: Sequence[tuple[Path, Given]], *, alone: bool) -> dict[Path, str]:
    """A title for each file of dialogues, short and unique."""
    titles: dict[Path, str] = {}
    for path, given in dialogues:
        title = _title(path, given, alone=alone)
        while title in titles.values():
            title += "′"
        titles[path] = title
    return titles


def _title(path: Path, given: Given, *, alone: bool) -> str:
    inner = [part for part in path.parent.relative_to(given.root).parts if part not in _UNSAID]
    stem = path.stem if path.name != EPISODES else ""
    base = given.label or ("" if alone and inner else given.root.name)
    return "/".join(part for part in (base, *inner, stem) if part)
