"""Folders of trained models: plain Hugging Face folders with a card about their training.

    DIR/                    the trained model, once the run is finished: what transformers and vLLM load
        README.md           the model card, for people
        sweetrl.json        the same for programs; written first without, at last with the time of the end
        log.jsonl           the log of each step
        checkpoints/checkpoint-N/   the state that an interrupted run resumes from
        references/         pictures of the reference pages, for a critic that sees

A folder gets its name when it is complete, and the configuration of the trained model, without which nothing can be
loaded, is written last. So a half-written model is never taken for a finished one.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal, Self

import msgspec
from msgspec import Struct

from sweetrl.errors import ConfigError, DataError, TrainingError, UsageError
from sweetrl.learning.algorithms import algorithm_of
from sweetrl.learning.settings import TrainingSettings
from sweetrl.records import installed_versions, read_json, unwritable, write_atomically, write_json

CARD = "sweetrl.json"
LOG = "log.jsonl"
STAGING = ".saving"
ADAPTER = "adapter"
REFERENCES = "references"
"""Pictures of pages that a critic is shown: made before the run begins."""
LAST_FILES = ("config.json", "adapter_config.json")
HARMLESS = ("tokens_per_pass", "gradient_checkpointing")
"""Settings that a resumed run may change: they decide about memory, not about the result."""


class TrainingCard(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a model was trained."""

    schema: Literal["training/1"] = "training/1"
    model: str
    """The seed model: a folder, or a name on the hub. The reference that advantages are measured against."""
    settings: TrainingSettings
    system: str | None = None
    """The agent's prompt."""
    privileged_prompt: str | None = None
    """The text around the reference in a privileged critic's prompt; None for all other models."""
    data: dict[str, str] = {}
    """SHA-256 of each file that was learned from, by what it was given as."""
    examples: int = 0
    cut_turns: int = 0
    """Old turns that did not fit into the context."""
    success_rate: float | None = None
    """Share of the examples that succeeded, where that is what was learned."""
    versions: dict[str, str] = {}
    started: str = ""
    finished: str | None = None
    metrics: dict[str, float] = {}
    """The last ones logged."""

    def same_run(self, other: "TrainingCard") -> list[str]:
        """The names of settings in which two runs differ; empty if one may resume the other."""
        own, theirs = _identity(self), _identity(other)
        return sorted(name for name in own | theirs if own.get(name) != theirs.get(name))


def _identity(card: TrainingCard) -> dict[str, object]:
    settings = msgspec.to_builtins(card.settings)
    texts = {"model": card.model, "system prompt": card.system, "privileged prompt": card.privileged_prompt}
    return {
        **{name: value for name, value in settings.items() if name not in HARMLESS},
        **{f"data {name}": value for name, value in card.data.items()},
        **texts,
    }


def read_training_card(folder: Path) -> TrainingCard:
    """The card of a trained model."""
    if not (folder / CARD).exists():
        raise DataError(f"has no {CARD}: not a model that sweetrl trained", path=folder)
    return read_json(folder / CARD, TrainingCard, "a training card")


def write_training_card(folder: Path, card: TrainingCard) -> None:
    """Put the card into a folder, for programs and for people."""
    write_atomically(folder / "README.md", model_card(card).encode())
    write_json(folder / CARD, card)


def training_versions() -> dict[str, str]:
    """Versions of the packages that a trained model may depend on."""
    return {
        **installed_versions(),
        **{name: metadata.version(name) for name in ("torch", "transformers", "accelerate", "peft")},
    }


# ---------------------------------------------------------------- the run's folder


class RunFolder:
    """The folder that one run writes, by one process at a time; a context manager that lets go of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    @property
    def checkpoints(self) -> Path:
        """Where the checkpoints are."""
        return self.path / "checkpoints"

    def claim(self, card: TrainingCard) -> TrainingCard:
        """Claim the folder for the run of `card`, new or resumed; returns the card that is in the folder then."""
        self.refuse_foreign()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._take_lock()
        except OSError as error:
            raise unwritable(self.path, error) from error
        if not (self.path / CARD).exists():
            write_training_card(self.path, card)
            return card
        return self._go_on(card)

    def refuse_foreign(self) -> None:
        """Refuse a folder with files of others in it."""
        if not self.path.is_dir() or (self.path / CARD).exists():
            return
        if any(entry.name not in (".lock", REFERENCES) for entry in self.path.iterdir()):
            raise UsageError(f"{self.path}: is not empty and no training run; choose another with -o")

    def join(self, card: TrainingCard) -> TrainingCard:
        """For the other processes of a run, which claim nothing: the card if all is done, or else `card`."""
        with contextlib.suppress(DataError):
            there = read_training_card(self.path)
            return there if there.finished else card
        return card

    def _take_lock(self) -> None:
        self._lock = os.open(self.path / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{self.path}: another process is training into it; wait for its end") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let others write the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _go_on(self, card: TrainingCard) -> TrainingCard:
        before = read_training_card(self.path)
        if different := card.same_run(before):
            raise ConfigError(
                f"{self.path}: was trained with other settings ({', '.join(different)}); "
                f"give the same to go on, or choose another output with -o"
            )
        shutil.rmtree(self.path / STAGING, ignore_errors=True)
        return before

    def last_checkpoint(self) -> Path | None:
        """The complete checkpoint of the most steps."""
        return max(self._saved(), key=_step, default=None)

    def prune(self, keep: int) -> None:
        """Remove all but the `keep` latest checkpoints."""
        for old in sorted(self._saved(), key=_step)[:-keep]:
            shutil.rmtree(old, ignore_errors=True)

    def make_room(self, needed: int) -> None:
        """Remove all checkpoints but the last if the disk has not `needed` bytes; raise if it still has not."""
        if shutil.disk_usage(self.path).free < needed:
            self.prune(1)
        if shutil.disk_usage(self.path).free < needed:
            raise unwritable(self.path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    def _saved(self) -> list[Path]:
        return [path for path in self.checkpoints.glob("checkpoint-*") if re.search(r"-\d+$", path.name)]

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder aside for files in the making, empty and removed afterwards; failures become one line."""
        aside = self.path / STAGING
        with readable_save_errors(self.path):
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            try:
                yield aside
            finally:
                shutil.rmtree(aside, ignore_errors=True)

    def publish(self, folder: Path, card: TrainingCard) -> None:
        """Move the files of a complete model into the run's folder, those that make it loadable last."""
        flush(folder)
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name in LAST_FILES)
        for entry in entries:
            target = self.path / entry.name
            if target.is_dir():
                shutil.rmtree(target)
            entry.replace(target)
        write_training_card(self.path, card)


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


@contextlib.contextmanager
def readable_save_errors(path: Path) -> Iterator[None]:
    """Turn what the libraries raise when a file cannot be written into one line."""
    from safetensors import SafetensorError

    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from error
    except (SafetensorError, RuntimeError) as error:
        # Both libraries write by themselves and lose the error number on the way.
        if _is_full(error):
            raise unwritable(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) from error
        raise


def _is_full(error: BaseException) -> bool:
    text = str(error)
    return any(sign in text for sign in ("No space left", "File too large", "quota", "PytorchStreamWriter"))


def flush(folder: Path) -> None:
    """Have the files of a folder on the disk before they get their names."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def check_architecture(checkpoint: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    """Refuse weights of a model with other layers than `shapes` names."""
    from safetensors import safe_open

    for file in sorted(checkpoint.glob("*.safetensors")):
        with safe_open(file, framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118  not a mapping
                found = tuple(weights.get_slice(name).get_shape())
                if name not in shapes or shapes[name] != found:
                    raise DataError(
                        f"holds another architecture: {name} is {_size(found)} there and "
                        f"{_size(shapes.get(name))} in the model; remove it or give the model it belongs to",
                        path=checkpoint,
                    )


def _size(shape: tuple[int, ...] | None) -> str:
    return "missing" if shape is None else "x".join(map(str, shape))


def diverged(folder: RunFolder, step: int, what: str) -> TrainingError:
    """An error for a run in which `what` is no finite number any more."""
    last = folder.last_checkpoint()
    kept = "no checkpoint was written yet" if last is None else f"the last good checkpoint is {last}"
    return TrainingError(f"{what} is not a number in step {step}; {kept}; try a lower learning rate")


# ---------------------------------------------------------------- the card for people


def model_card(card: TrainingCard) -> str:
    """README.md of a trained model, in the form that model hubs read."""
    settings = msgspec.to_builtins(card.settings)
    state = f"Finished {card.finished}." if card.finished else "**Not finished**: an intermediate state."
    front = ["---", f"base_model: {card.model}", "library_name: transformers", "tags: [sweetrl]", "---", ""]
    body = [
        f"# {algorithm_of(card.settings).label.format_map(settings)}",
        "",
        f"Trained by sweetrl from `{card.model}` on {card.examples} examples, started {card.started}. {state}",
        "",
        *_table("Recipe", settings),
        *_table("Data (SHA-256)", card.data),
        *_table("Metrics at the end", card.metrics),
        *_table("Versions", card.versions),
    ]
    return "\n".join([*front, *body])


def _table(title: str, rows: dict[str, object] | dict[str, str] | dict[str, float]) -> list[str]:
    if not rows:
        return []
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return [f"## {title}", "", "| | |", "|---|---|", *lines, ""]
