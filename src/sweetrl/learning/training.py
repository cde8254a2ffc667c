"""One training run from files to a folder: read the records, claim the folder, train. Resumes what was interrupted."""

import contextlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed

from sweetrl import interrupts
from sweetrl.domains.dialogues import load_episodes
from sweetrl.domains.domain import Domain
from sweetrl.domains.prompt_files import read_prompt, refuse_other_domain
from sweetrl.domains.reference_pages import make_references
from sweetrl.domains.registry import DEFAULT, find_domain, only_domain
from sweetrl.domains.sources import fingerprint_of_tasks, tasks_or_none
from sweetrl.errors import UsageError
from sweetrl.learning.algorithm import Algorithm, Records
from sweetrl.learning.algorithms import default_settings
from sweetrl.learning.checkpoints import REFERENCES, RunFolder, TrainingCard, training_versions
from sweetrl.learning.encodings import Picture, open_encoding
from sweetrl.learning.loading import default_precision, longest_context
from sweetrl.learning.run_options import NEVER, TRACKERS, Progress, RunOptions
from sweetrl.learning.settings import TRAINING_NAMES, LoraSettings, TrainingSettings
from sweetrl.learning.trainer import train as train_model
from sweetrl.models.local.network import no_progress_bars
from sweetrl.models.shipped import NAMES
from sweetrl.models.specification import trainable
from sweetrl.prompts import Prompt, agent_instructions
from sweetrl.records import fingerprint, now, read_records
from sweetrl.settings import TrainRunSettings
from sweetrl.types import EpisodePair, Task, TurnPair, Verdict

PROMPTS = ("domain", "prompt")
"""Options that choose the prompts of the model."""
OF_RUN = ("lora_rank", "save_every", "save_minutes", "shard")
"""Options that are no settings of `TrainingSettings` by themselves."""

Observe = Callable[[Progress], None]


def train(
    algorithm: Algorithm,
    run: TrainRunSettings,
    output: Path,
    values: dict[str, Any],
    *,
    note: Callable[[str], None] = lambda _: None,
    shown: AbstractContextManager[Observe] | None = None,
) -> TrainingCard:
    """Train with an algorithm into the folder `output`; `values` are the algorithm's own options.

    `note` takes lines for people. `shown` is a context for the training, which yields a function to call at each step.
    """
    given: dict[str, Any] = {name: values[name] for name in algorithm.reads if values[name] is not None}
    settings = {name: value for name, value in values.items() if name not in (*algorithm.reads, *PROMPTS)}
    algorithm.check(settings, given)
    tasks = tasks_or_none(given.get("tasks"))
    domain = _domain(None if algorithm.privileged else values.get("domain"), tasks, given.get("tasks"))
    prompt, picture = None, None
    if algorithm.privileged:
        vision = settings.get("vision", False)
        prompt = _privileged_prompt(domain, values["prompt"], given["tasks"], vision=vision)
        picture = _rendered(output, given["pairs"], tasks or {}) if vision else None
    prepared = _Run(
        algorithm,
        run,
        settings,
        given,
        tasks,
        system=_system(run, domain, given.get("episodes")),
        prompt=None if settings.get("no_reference") else prompt,
        picture=picture,
    )
    with RunFolder(output) as folder, _processes():
        return prepared.train(folder, note, shown or nullcontext(lambda _: None))


def _records(given: dict[str, Any], tasks: dict[str, Task] | None) -> Records:
    """The records in the given files."""
    episodes = given.get("episodes")
    return Records(
        episodes={} if episodes is None else load_episodes(episodes, tasks),
        tasks=tasks,
        verdicts=read_records(given["verdicts"], Verdict) if "verdicts" in given else None,
        pairs=read_records(given["pairs"], EpisodePair) if "pairs" in given else (),
        turn_pairs=read_records(given["turn_pairs"], TurnPair) if "turn_pairs" in given else (),
    )


# ---------------------------------------------------------------- prompts


def _domain(asked: str | None, tasks: dict[str, Task] | None, source: str | None) -> Domain:
    """The domain of the dialogues."""
    if asked is None and tasks is not None:
        return only_domain(tasks.values(), str(source))
    return find_domain(asked or DEFAULT)


def _system(run: TrainRunSettings, domain: Domain, episodes: Path | None) -> str:
    """The prompt that the agent has when it is sampled from."""
    if run.agent_prompt is None and episodes is not None:
        refuse_other_domain(episodes, domain.name)
    prompt = read_prompt(run.agent_prompt) or domain.prompts.agent
    return agent_instructions(prompt, turn_limit=run.turn_limit)


def _privileged_prompt(domain: Domain, prompt_file: str | None, source: str, *, vision: bool) -> Prompt:
    """The prompt that shows a critic the reference."""
    if vision and domain.pictures is None:
        raise UsageError(f"{source}: has {domain.name} tasks, and nothing to see; leave out --vision")
    pictures = domain.pictures if vision else None
    shipped = domain.prompts.privileged if pictures is None else pictures.privileged_prompt
    prompt = read_prompt(prompt_file) or shipped
    fields = [] if vision else ["hidden_information"]
    prompt.check(needed=fields, offered=fields)
    return prompt


def _rendered(output: Path, pairs: Path, tasks: dict[str, Task]) -> Picture:
    """The folder with the pictures of all references that the pairs need; missing ones are made."""
    RunFolder(output).refuse_foreign()
    needed = {pair.task_id for pair in read_records(pairs, EpisodePair)} & tasks.keys()
    chosen = [tasks[each] for each in sorted(needed)]
    return interrupts.run(make_references, chosen, output / REFERENCES).path


# ---------------------------------------------------------------- one run


@dataclass(frozen=True)
class _Run:
    """One training run, in each of its processes."""

    algorithm: Algorithm
    run: TrainRunSettings
    chosen: dict[str, Any]
    """The settings of the algorithm."""
    given: dict[str, Any]
    """The files to learn from."""
    tasks: dict[str, Task] | None
    system: str
    prompt: Prompt | None
    picture: Picture | None
    """Finds the reference pages for a critic that is shown them."""

    def train(
        self, folder: RunFolder, note: Callable[[str], None], shown: AbstractContextManager[Observe]
    ) -> TrainingCard:
        reports = self._trackers()  # before anything is written
        model = _absolute(self.run.model)
        settings = self._settings(model)
        fingerprints = self._fingerprints()
        reader, encoding = open_encoding(model, settings.max_tokens, self.system, self.prompt, self.picture)
        data = self.algorithm.examples(_records(self.given, self.tasks), encoding)
        card = TrainingCard(
            model=model,
            settings=settings,
            system=self.system,
            privileged_prompt=None if self.prompt is None else self.prompt.text,
            data=fingerprints,
            examples=len(data.examples),
            cut_turns=data.cut,
            success_rate=data.success_rate,
            versions=training_versions(),
            started=now(),
        )
        card = folder.claim(card) if is_main() else folder.join(card)
        if card.finished:
            note(f"{folder.path}: was finished {card.finished}; nothing to do")
            return card
        if data.cut:
            note(f"{data.cut} old turns did not fit into {settings.max_tokens} tokens and were left out")
        if (last := folder.last_checkpoint()) is not None:
            note(f"resuming from {last.name}")
        with shown as observe, no_progress_bars(), _resumable(folder):
            return train_model(data, reader, card, folder, self._run_options(folder.path, observe, reports))

    def _fingerprints(self) -> dict[str, str]:
        """Fingerprints of the files that are learned from, by name."""
        files = {name: path for name, path in self.given.items() if name != "tasks"}
        found = {name.replace("_", " "): fingerprint(path) for name, path in files.items()}
        if self.algorithm.privileged and self.tasks is not None:
            found["tasks"] = fingerprint_of_tasks(self.tasks.values())
        return found

    def _settings(self, model: str) -> TrainingSettings:
        chosen = dict(self.chosen)
        rank, hidden = chosen["lora_rank"], chosen.pop("no_reference", None)
        fields = {
            TRAINING_NAMES.get(name, name): value for name, value in chosen.items() if name not in OF_RUN
        }
        fields |= {
            "max_tokens": longest_context(model, chosen["max_tokens"], vision=chosen.get("vision", False)),
            "lora": None if rank is None else LoraSettings(rank=rank, alpha=2 * rank),
            "precision": chosen["precision"] or default_precision(),
            "privileged": None if hidden is None else not hidden,
            "seed": self.run.seed,
        }
        return default_settings(self.algorithm.name, **fields)

    def _trackers(self) -> list[str]:
        """Where the run is logged too; `UsageError` if a package for it is missing."""
        reports = [name for name in TRACKERS if getattr(self.run, name)]
        for name in reports:
            if importlib.util.find_spec(name) is None:
                raise UsageError(f"--{name} needs the package {name}: pip install {name}")
        return reports

    def _run_options(self, output: Path, observe: Observe, reports: list[str]) -> RunOptions:
        run, minutes = self.run, self.chosen["save_minutes"]
        os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(output / "tensorboard"))
        return RunOptions(
            save_every=self.chosen["save_every"] or (NEVER if minutes else RunOptions.save_every),
            save_minutes=minutes,
            keep=run.keep,
            log_every=run.log_every,
            monitor=run.monitor,
            reports=tuple(reports),
            shard=self.chosen["shard"],
            observe=observe,
        )


def _absolute(model: str) -> str:
    """A folder is remembered by its full path: a critic must find its seed model again."""
    model = trainable(model)
    return model if model in NAMES or not Path(model).is_dir() else str(Path(model).resolve())


@contextlib.contextmanager
def _resumable(folder: RunFolder) -> Iterator[None]:
    """On Ctrl-C, names the checkpoint to resume from."""
    try:
        yield
    except KeyboardInterrupt:
        last = folder.last_checkpoint()
        raise KeyboardInterrupt("nothing was saved yet" if last is None else f"{last.name} is kept") from None


# ---------------------------------------------------------------- processes


def is_main() -> bool:
    """Whether this is the main process, which writes files and messages; torchrun numbers them."""
    return os.environ.get("RANK", "0") == "0"


@contextlib.contextmanager
def _processes() -> Iterator[None]:
    """Leaves the process group at the end, if the block joined one."""
    try:
        yield
    finally:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
