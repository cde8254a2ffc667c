"""Folders of runs as reports read them: which files are where, and how they were made.

A run is a folder with `episodes.jsonl` and `verdicts.jsonl`. The output of a recipe has its training dialogues
there and those of the trained policy in `evaluation/`, which is what a report is about. Trained models, in the
folder itself or one below, have their log.
"""

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeGuard, TypeVar

import msgspec
from msgspec import Struct

from sweetrl.domains.dialogues import distinct_episodes
from sweetrl.errors import DataError, UsageError
from sweetrl.experiments.journal import JOURNAL
from sweetrl.experiments.layout import CREDIT, EPISODES, METRICS, SCREENSHOTS, VERDICTS
from sweetrl.prompts import TURN_LIMIT
from sweetrl.records import (
    RunCard,
    card_path,
    is_merged_shard,
    read_card,
    read_json,
    read_lines,
    read_records,
)
from sweetrl.report.contents import Provenance, Training
from sweetrl.report.runs import Run
from sweetrl.types import Metric, RunMetrics, Task, TurnCredit, Verdict

T = TypeVar("T")

EVALUATION = "evaluation"
LOG, CARD = "log.jsonl", "sweetrl.json"
"""Files of a trained model; `learning` defines them, and is too heavy to import."""
LEAKS, EXCUSED = "leaking_dialogues", "excused_replies"
"""Metrics of fairness that a report shows, the second one where it is not zero."""
LARGEST_PICTURE = 32 << 20
"""Bytes of a screenshot that is read."""
_HASH = re.compile("[0-9a-f]{16,128}")
_FACTS = ("method", "kind", "learning_rate", "beta", "nll", "batch_size", "epochs", "seed")


class _Anew(Generic[T]):
    """The records of a file, read again each time they are iterated over."""

    def __init__(self, read: Callable[[], Iterator[T]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[T]:
        return self._read()


def open_runs(words: Sequence[str]) -> "list[RunFolder]":
    """The folders of `FOLDER` or `LABEL=FOLDER` words, each under a name of its own."""
    named = [_parse(word) for word in words]
    folders = [folder for _, folder in named]
    if len(set(folders)) < len(folders):
        raise UsageError("a run is given twice; give each once")
    titles = [label or _shortest(folder, folders) for label, folder in named]
    if len(set(titles)) < len(titles):
        raise UsageError(
            f"two runs have the same label ({', '.join(titles)}); choose others with LABEL=FOLDER"
        )
    return [RunFolder(folder, title) for title, folder in zip(titles, folders, strict=True)]


def _parse(word: str) -> tuple[str, Path]:
    label, equals, path = word.partition("=")
    named = bool(equals and label and path) and not Path(word).exists()
    folder = Path(path if named else word)
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; give folders of runs, or LABEL=FOLDER")
    return (label if named else ""), folder.resolve()


def _shortest(folder: Path, folders: Sequence[Path]) -> str:
    """The fewest last parts of a path that distinguish it from the others."""
    for length in range(1, len(folder.parts) + 1):
        tail = folder.parts[-length:]
        if sum(other.parts[-length:] == tail for other in folders) == 1:
            return "/".join(tail)
    return str(folder)


@dataclass(frozen=True)
class RunFolder:
    """One folder that was given."""

    path: Path
    title: str

    def __post_init__(self) -> None:
        if not self._scored and not self._models:
            missing = VERDICTS if (self.path / EPISODES).exists() else EPISODES
            hint = "score it with `sweetrl score`" if missing == VERDICTS else "is it the folder of a run?"
            raise DataError(f"has no {missing}; {hint}", path=self.path)

    @property
    def _scored(self) -> Path | None:
        """The folder with the dialogues and verdicts that count."""
        for folder in (self.path / EVALUATION, self.path):
            if (folder / EPISODES).is_file() and (folder / VERDICTS).is_file():
                return folder
        return None

    @property
    def _models(self) -> list[Path]:
        """The folders of trained models."""
        places = [self.path, *sorted(each for each in self.path.iterdir() if each.is_dir())]
        return [place for place in places if (place / LOG).is_file() and (place / CARD).is_file()]

    # -------- results

    def run(self, tasks: Mapping[str, Task]) -> Run | None:
        """The scored run, if there is one."""
        folder = self._scored
        if folder is None:
            return None
        credit = folder / CREDIT
        return Run(
            name=self.title,
            episodes=_Anew(partial(distinct_episodes, folder / EPISODES)),
            verdicts=_Anew(partial(read_records, folder / VERDICTS, Verdict)),
            metrics=read_metrics(folder / METRICS),
            credit=_Anew(partial(read_records, credit, TurnCredit)) if credit.is_file() else (),
            tasks=tasks,
            turn_limit=_turn_limit(folder / EPISODES),
            picture=lambda name: read_picture(folder / SCREENSHOTS, name),
        )

    # -------- training

    def trainings(self) -> Iterator[Training]:
        """The logs of the models that were trained here."""
        for folder in self._models:
            name = self.title if folder == self.path else f"{self.title}/{folder.name}"
            card = read_json(folder / CARD, _ModelCard, "a training card")
            scored = None if card.settings.get("method") == "critic" else self._scored
            metrics = () if scored is None else read_metrics(scored / METRICS)
            yield Training(name, read_log(folder / LOG), (*card.facts(), *turns_used(metrics)))

    # -------- how it came about

    def provenance(self) -> Iterator[Provenance]:
        """One entry for each file with a card, and the commands of a recipe."""
        yield from self._journal()
        for folder in dict.fromkeys(each for each in (self._scored, self.path) if each is not None):
            for path in sorted(folder.glob("*.jsonl")):
                if card_path(path).is_file() and not is_merged_shard(path):
                    yield _of_records(self._shown(path), read_card(path))
        for folder in self._models:
            yield _of_model(self._shown(folder), read_json(folder / CARD, _ModelCard, "a training card"))

    def _shown(self, path: Path) -> str:
        return f"{self.title}/{path.relative_to(self.path)}" if path != self.path else self.title

    def _journal(self) -> Iterator[Provenance]:
        path = self.path / JOURNAL
        if path.is_file():
            yield from commands_of(path, self._shown(path))


def commands_of(journal: Path, title: str) -> Iterator[Provenance]:
    """The commands of a recipe or study, as its journal has them."""
    if stages := read_json(journal, list[_Stage], "the journal of a run"):
        commands = [f"sweetrl {shlex.join(stage.arguments)}  # {stage.seconds:.1f} s" for stage in stages]
        seconds = sum(stage.seconds for stage in stages)
        facts = (("stages", str(len(stages))), ("wall clock", duration(seconds)))
        yield Provenance(title, facts, "\n".join(commands))


def turns_used(metrics: Iterable[Metric]) -> Iterator[tuple[str, str]]:
    """How many turns the dialogues of the evaluation have, to be shown beside the curves of a policy."""
    for metric in metrics:
        if metric.name == "turns" and metric.value is not None:
            yield "turns per dialogue in the evaluation", f"{metric.value:.1f}"


def _turn_limit(episodes: Path) -> int:
    """How often the agent could speak, where the run card knows."""
    rules = read_card(episodes).config.get("rules") if card_path(episodes).is_file() else None
    limit = rules.get("turn_limit") if isinstance(rules, dict) else None
    return limit if isinstance(limit, int) and limit > 0 else TURN_LIMIT


class _Stage(Struct):
    """A line of a recipe's journal."""

    arguments: list[str]
    seconds: float


def read_metrics(path: Path) -> tuple[Metric, ...]:
    """The metrics of a `metrics.json` that a report shows; none if there is no such file."""
    if not path.is_file():
        return ()
    found = read_json(path, RunMetrics, "the metrics of a run")
    fairness = (
        each for each in found.fairness if each.name == LEAKS or (each.name == EXCUSED and each.value)
    )
    return (*found.metrics.values(), *fairness)


def read_picture(folder: Path, name: str) -> bytes | None:
    """A kept picture, if it has a sensible size; names that are no hashes could lead out of the folder."""
    path = folder / f"{name}.png"
    if not _HASH.fullmatch(name) or not path.is_file() or path.stat().st_size > LARGEST_PICTURE:
        return None
    return path.read_bytes()


def read_log(path: Path) -> dict[str, tuple[tuple[float, float], ...]]:
    """The logged values of each metric, as (step, value)."""
    curves: dict[str, list[tuple[float, float]]] = {}
    decode = msgspec.json.Decoder(dict[str, Any])
    for number, line in read_lines(path):
        try:
            entry = decode.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"not a line of a training log: {error}", path=path, line=number) from None
        # The last line of a log sums up the run.
        step = entry.get("step")
        if _is_plotted(step) and "train_runtime" not in entry:
            for name, value in entry.items():
                if name not in ("step", "epoch") and _is_plotted(value):
                    curves.setdefault(name, []).append((step, float(value)))
    return {name: tuple(points) for name, points in curves.items()}


def _is_plotted(value: object) -> TypeGuard[float]:
    """Whether a metric is a number that a curve can have."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


# ---------------------------------------------------------------- cards


class _ModelCard(Struct):
    """The fields of a training card that a report needs, whatever the algorithm."""

    model: str
    settings: dict[str, Any]
    examples: int = 0
    data: dict[str, str] = {}
    versions: dict[str, str] = {}
    started: str = ""
    finished: str | None = None

    def facts(self) -> Iterator[tuple[str, str]]:
        """The few settings that a reader of curves wants to know."""
        yield "from", self.model
        yield "examples", f"{self.examples:,}"
        for name in _FACTS:
            # Only critics are of different kinds.
            if name in self.settings and (name != "kind" or self.settings.get("method") == "critic"):
                yield name.replace("_", " "), str(self.settings[name])


def _of_records(title: str, card: RunCard) -> Provenance:
    facts = (
        ("command", f"sweetrl {card.command}"),
        ("records", "" if card.records is None else f"{card.records:,}"),
        ("seed", str(card.config.get("seed", ""))),
        ("started", card.started),
        ("wall clock", wall_clock(card.started, card.finished)),
        ("SHA-256", card.sha256 or ""),
        ("versions", _versions(card.versions)),
    )
    return Provenance(title, facts, indented(card.config))


def _of_model(title: str, card: _ModelCard) -> Provenance:
    facts = (
        ("command", f"sweetrl train {card.settings.get('method', '')}"),
        ("from", card.model),
        ("seed", str(card.settings.get("seed", ""))),
        ("started", card.started),
        ("wall clock", wall_clock(card.started, card.finished)),
        *((f"SHA-256 of {name}", value) for name, value in card.data.items()),
        ("versions", _versions(card.versions)),
    )
    return Provenance(title, facts, indented(card.settings))


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def indented(value: Any) -> str:
    """A value as JSON that people can read."""
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def wall_clock(started: str, finished: str | None) -> str:
    """The time between two timestamps, pauses between resumptions included."""
    if finished is None:
        return "not finished"
    try:
        return duration((datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds())
    except ValueError:
        return ""


def duration(seconds: float) -> str:
    """`1 h 4 min 10 s`."""
    hours, rest = divmod(round(seconds), 3600)
    parts = [(hours, "h"), (rest // 60, "min"), (rest % 60, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "under 1 s"
