"""A stage in shards: processes that make a part of its records each, in folders of their own; then these are merged.

    OUTPUT/shards/rank/3-of-8.attempt-1/ranked.3-of-8.jsonl    a shard while it is written
    OUTPUT/shards/rank/3-of-8/ranked.3-of-8.jsonl              the same when it is complete

A shard whose process was killed is tried again in another folder, which starts with a copy of its records. A
process that only seems dead, because its machine cannot be reached, therefore never shares a file with its successor,
and no lock has to hold across machines.
"""

import re
import shutil
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from sweetrl import interrupts
from sweetrl.errors import DataError
from sweetrl.experiments.layout import EPISODES, METRICS, SCREENSHOTS, VERDICTS
from sweetrl.experiments.pipeline import VALUES, Stage
from sweetrl.experiments.processes import Child
from sweetrl.experiments.progress import Tell
from sweetrl.records import read_card, shard_path
from sweetrl.settings.schema import settings_fields
from sweetrl.settings.words import STAGES, option_value

SHARDS = "shards"
"""The folder of the shards of a run."""
FOLDERS = {"rollout": (EPISODES,), "evaluate": (EPISODES, VERDICTS)}
"""Commands that write into a folder, and what there is to merge."""
LOST = -signal.SIGKILL
"""How a process ends that somebody took away: the shard is tried again."""
MOST_ATTEMPTS = 4
"""How often a run tries one shard."""
INCOMPLETE = 3
"""The exit code of a shard that ended without all of its records."""

Launch = Callable[[Stage, int | None], Child]
"""Starts a command of the stage, in one of the places for shards or, with None, as the only one."""


def loads_model(stage: Stage) -> bool:
    """Whether a stage computes with a model in its own process."""
    words = stage.arguments
    players = [option_value(words, option) or "" for option in ("--agent", "--collaborator")]
    critic = option_value(words, "--critic")
    scripted = critic is None or critic.startswith((VALUES, "scripted:", "length")) or "openai:" in critic
    return words[0] == "train" or not scripted or any("hf:" in name or name == "mini" for name in players)


class Parts:
    """The shards of one stage: their commands, their folders, and how they become its output."""

    def __init__(self, stage: Stage, folder: Path, count: int, *, workers: int) -> None:
        """`folder` is for these shards alone. `workers`: answers that each shard scores at a time, if it scores."""
        *words, _ = stage.arguments
        assert words[-1] == "-o"
        self.count = count
        self._stage = stage
        self._folder = folder
        self._words = (*words[:-1], *_narrowing(stage, workers))
        self._home, self._names = _places(stage)

    @property
    def needed(self) -> bool:
        """Whether there is something to do for shards: an output that is there is completed by the stage itself."""
        return self._folder.exists() or not any((self._home / name).exists() for name in self._names)

    def missing(self) -> list[int]:
        """The shards that are not complete, counted from 1."""
        return [index for index in range(1, self.count + 1) if not self._published(index).exists()]

    def begin(self, index: int) -> Stage:
        """The command that makes a shard, in a folder of its own that has the records of the attempt before."""
        earlier = self._attempts.setdefault(index, {})
        number = 1 + max(earlier, default=0)
        folder = self._published(index).with_suffix(f".attempt-{number}")
        folder.mkdir(parents=True)
        if earlier:
            _copy_records(earlier[max(earlier)], folder)
        earlier[number] = folder
        output = folder if self._stage.arguments[0] in FOLDERS else folder / self._names[0]
        words = ("-o", str(output), "--shard", f"{index}/{self.count}", "--quiet")
        return replace(self._stage, arguments=(*self._words, *words))

    def publish(self, index: int) -> bool:
        """Give the folder of a shard its name, if all of its records are in; whether they are."""
        attempts, shard = self._attempts[index], f"{index}/{self.count}"
        folder = attempts[max(attempts)]
        complete = all(_is_complete(shard_path(folder / name, shard)) for name in self._names)
        if complete:
            folder.rename(self._published(index))
        return complete

    def merges(self) -> Iterator[Stage]:
        """The commands that join the shards."""
        self._home.mkdir(parents=True, exist_ok=True)
        for name in self._names:
            files = [
                str(shard_path(self._published(index) / name, f"{index}/{self.count}"))
                for index in range(1, self.count + 1)
            ]
            words = ("merge", *files, "-o", str(self._home / name), "--quiet")
            yield replace(self._stage, arguments=words)

    def clear(self) -> None:
        """Remove the folders of the shards, whose records are merged; their pictures go to those of the stage."""
        for picture in self._folder.glob(f"*/{SCREENSHOTS}/*.png"):
            pictures = self._home / SCREENSHOTS
            pictures.mkdir(exist_ok=True)
            picture.replace(pictures / picture.name)
        # An abandoned process may still write there, but nobody reads it.
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def has_more(self) -> bool:
        """Whether the stage makes more than the records that are merged."""
        return self._stage.arguments[0] == "evaluate"

    @property
    def whole(self) -> Stage:
        """The stage itself: it redoes records that failed, and evaluations write their metrics."""
        return self._stage

    def _published(self, index: int) -> Path:
        return self._folder / f"{index}-of-{self.count}"

    @cached_property
    def _attempts(self) -> dict[int, dict[int, Path]]:
        """The folders of the attempts at each shard, those of earlier runs too; the whole folder is listed once."""
        names, found = re.compile(rf"(\d+)-of-{self.count}\.attempt-(\d+)"), dict[int, dict[int, Path]]()
        for path in self._folder.iterdir() if self._folder.exists() else ():
            if matched := names.fullmatch(path.name):
                found.setdefault(int(matched[1]), {})[int(matched[2])] = path
        return found


def _narrowing(stage: Stage, workers: int) -> Iterator[str]:
    """Words that every shard gets besides its own: they change no record."""
    command = stage.arguments[0]
    scores = any(field.name == "workers" for section in STAGES[command] for field in settings_fields(section))
    if scores and "--workers" not in stage.arguments:
        yield from ("--workers", str(workers))
    if command == "score":
        yield "--no-check"  # whether tasks are defective is shown, not stored


def is_recorded(stage: Stage) -> bool:
    """Whether all that the stage makes is there, records of failures included."""
    home, names = _places(stage)
    has_metrics = stage.arguments[0] != "evaluate" or (home / METRICS).exists()
    return has_metrics and all(_is_complete(home / name) for name in names)


def _places(stage: Stage) -> tuple[Path, tuple[str, ...]]:
    """The folder that a stage writes to, and its record files there."""
    words = stage.arguments
    output = Path(words[-1]) if words[-2:-1] == ("-o",) else stage.output
    names = FOLDERS.get(words[0])
    return (output.parent, (output.name,)) if names is None else (output, names)


def _is_complete(path: Path) -> bool:
    try:
        return read_card(path).sha256 is not None
    except DataError:
        return False


def _copy_records(source: Path, target: Path) -> None:
    """Copy the records of another attempt, which may still run: cards first, so none says more than its file has."""
    cards, files = sorted(source.glob("*.run.json")), sorted(source.glob("*.jsonl"))
    for path in (*cards, *files):
        if not path.name.startswith("."):
            with suppress(FileNotFoundError):
                shutil.copy(path, target)
    if (source / SCREENSHOTS).is_dir():
        shutil.copytree(source / SCREENSHOTS, target / SCREENSHOTS)


class ShardedStage:
    """Runs the shards of a stage, merges them, and ends as the stage does: a `Child` of the run."""

    def __init__(self, parts: Parts, launch: Launch, places: int, tell: Tell) -> None:
        """At most `places` shards run at a time; `tell` hears how many are done."""
        self._parts = parts
        self._launch = launch
        self._free = list(range(places))
        self._tell = tell
        self._running: dict[int, tuple[Child, int | None]] = {}
        """By number of the shard: its process, and its place. Number 0 is a command that runs alone."""
        self._attempts: dict[int, int] = {}
        self._ended = False
        self._code: int | None = None
        self._work = self._working()

    def poll(self) -> int | None:
        """Go on as far as possible; the exit code at the end."""
        if self._code is None:
            try:
                next(self._work)
            except StopIteration as end:
                self._code = end.value
        return self._code

    def terminate(self) -> None:
        """Ask all that runs to end; nothing starts any more."""
        self._ended = True
        for child, _ in self._running.values():
            child.terminate()

    def wait(self) -> None:
        """Wait until nothing runs."""
        for child, _ in self._running.values():
            child.wait()

    def _working(self) -> Generator[None, None, int]:
        """All that is to be done; yields while it waits."""
        parts = self._parts
        if parts.needed:
            code = yield from self._make_shards()
            if code not in (0, 1):
                return code
            for stage in parts.merges():
                merged = yield from self._run_alone(stage)
                if merged:
                    return INCOMPLETE if merged == 1 else merged
            parts.clear()
            if code == 0 and not parts.has_more:
                return 0
        return (yield from self._run_alone(parts.whole))

    def _make_shards(self) -> Generator[None, None, int]:
        """Run what is missing; 1 if records failed, another code if a shard could not be made."""
        waiting, some_failed = deque(self._parts.missing()), 0
        while waiting or self._running:
            while waiting and self._free and not self._stopping:
                self._begin(waiting.popleft())
            if not self._running:
                return -signal.SIGTERM
            yield
            for index, code in self._ends():
                if code == LOST and self._attempts[index] < MOST_ATTEMPTS and not self._stopping:
                    waiting.append(index)
                elif code not in (0, 1):
                    return (yield from self._give_up(code))
                elif not self._parts.publish(index):
                    return (yield from self._give_up(INCOMPLETE))
                some_failed |= code == 1
            self._tell(self._parts.count - len(waiting) - len(self._running), self._parts.count)
        return int(some_failed)

    def _give_up(self, code: int) -> Generator[None, None, int]:
        """End the other shards, whose records are kept; after an interrupt, they end by themselves."""
        if not self._stopping:
            self.terminate()
        while self._running:
            yield
            deque(self._ends(), maxlen=0)
        return code

    @property
    def _stopping(self) -> bool:
        return self._ended or interrupts.came()

    def _begin(self, index: int) -> None:
        place = self._free.pop()
        self._attempts[index] = self._attempts.get(index, 0) + 1
        self._running[index] = self._launch(self._parts.begin(index), place), place

    def _ends(self) -> Iterator[tuple[int, int]]:
        """The processes that have ended since the last look, with their exit codes."""
        for index, (child, place) in list(self._running.items()):
            code = child.poll()
            if code is not None:
                del self._running[index]
                if place is not None:
                    self._free.append(place)
                yield index, code

    def _run_alone(self, stage: Stage) -> Generator[None, None, int]:
        if self._stopping:
            return -signal.SIGTERM
        self._running[0] = self._launch(stage, None), None
        while True:
            for _, code in self._ends():
                return code
            yield
