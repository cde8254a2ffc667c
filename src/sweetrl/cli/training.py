"""Runs `sweetrl train`: reads the records, claims the folder, trains, and shows the progress."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweetrl import interrupts
from sweetrl.cli import console, inputs
from sweetrl.cli.candidates import refuse_other_domain
from sweetrl.cli.train_progress import shown
from sweetrl.dialogue.building import read_prompt
from sweetrl.domains.domain import Domain
from sweetrl.domains.reference_pages import make_references
from sweetrl.domains.registry import DEFAULT, find_domain, only_domain
from sweetrl.errors import UsageError
from sweetrl.learning.algorithm import Algorithm, Records
from sweetrl.learning.algorithms import default_settings
from sweetrl.learning.checkpoints import REFERENCES, RunFolder, TrainingCard, timestamp, training_versions
from sweetrl.learning.encodings import Picture, open_encoding
from sweetrl.learning.loading import default_precision, longest_context
from sweetrl.learning.run_options import Housekeeping, Progress
from sweetrl.learning.settings import TRAINING_NAMES, LoraSettings, TrainingSettings
from sweetrl.learning.trainer import train as train_model
from sweetrl.models.local.network import no_progress_bars
from sweetrl.prompts import Prompt, agent_instructions
from sweetrl.records import read_records
from sweetrl.types import EpisodePair, Task, TurnPair, Verdict

if TYPE_CHECKING:
    from sweetrl.cli.train import Common

PROMPTS = ("domain", "prompt")
"""Options that choose what the model is told."""
OF_RUN = ("lora_rank", "save_every", "shard")
"""Options that are no settings of `TrainingSettings` by themselves."""


def train(algorithm: Algorithm, common: "Common", values: dict[str, Any]) -> None:
    """Train by an algorithm; `values` are those of its own options."""
    given: dict[str, Any] = {name: values[name] for name in algorithm.reads if values[name] is not None}
    settings = {name: value for name, value in values.items() if name not in (*algorithm.reads, *PROMPTS)}
    algorithm.check(settings, given)
    tasks = inputs.tasks_or_none(given.get("tasks"))
    domain = _domain(values.get("domain"), tasks, given.get("tasks"))
    run = Run(common, algorithm, settings, given, tasks)
    prompt, picture = None, None
    if algorithm.privileged:
        vision = settings.get("vision", False)
        prompt = _privileged_prompt(domain, inputs.path_of(values["prompt"]), given["tasks"], vision=vision)
        picture = _rendered(common, given["pairs"], tasks or {}) if vision else None
    run.train(
        system=_system(common, domain, common.agent_prompt, given.get("episodes")),
        prompt=None if settings.get("no_reference") else prompt,
        picture=picture,
    )


def _records(given: dict[str, Any], tasks: dict[str, Task] | None) -> Records:
    """What the given files hold."""
    episodes = given.get("episodes")
    return Records(
        episodes={} if episodes is None else inputs.load_episodes(episodes, tasks),
        tasks=tasks,
        verdicts=read_records(given["verdicts"], Verdict) if "verdicts" in given else None,
        pairs=read_records(given["pairs"], EpisodePair) if "pairs" in given else (),
        turn_pairs=read_records(given["turn_pairs"], TurnPair) if "turn_pairs" in given else (),
    )


# ---------------------------------------------------------------- prompts


def _domain(asked: str | None, tasks: dict[str, Task] | None, source: str | None) -> Domain:
    """What the dialogues are about."""
    if asked is None and tasks is not None:
        return only_domain(tasks.values(), str(source))
    return find_domain(asked or DEFAULT)


def _system(common: "Common", domain: Domain, prompt_file: Path | None, episodes: Path | None) -> str:
    """The prompt that the agent has when it is sampled from."""
    if prompt_file is None and episodes is not None:
        refuse_other_domain(episodes, domain.name)
    prompt = read_prompt(prompt_file) or domain.prompts.agent
    return agent_instructions(prompt, turn_limit=common.turn_limit)


def _privileged_prompt(domain: Domain, prompt_file: Path | None, source: str, *, vision: bool) -> Prompt:
    """What a critic is told of the reference."""
    if vision and domain.pictures is None:
        raise UsageError(f"{source}: has {domain.name} tasks, and nothing to see; leave out --vision")
    pictures = domain.pictures if vision else None
    shipped = domain.prompts.privileged if pictures is None else pictures.privileged_prompt
    prompt = read_prompt(prompt_file) or shipped
    fields = [] if vision else ["hidden_information"]
    prompt.check(needed=fields, offered=fields)
    return prompt


def _rendered(common: "Common", pairs: Path, tasks: dict[str, Task]) -> Picture:
    """Where the pictures of the references are: all that the pairs need, made if they are not there yet."""
    RunFolder(common.output).refuse_foreign()
    needed = {pair.task_id for pair in read_records(pairs, EpisodePair)} & tasks.keys()
    chosen = [tasks[each] for each in sorted(needed)]
    return interrupts.run(make_references, chosen, common.output / REFERENCES).path


# ---------------------------------------------------------------- one run


class Run:
    """One training run, in each of its processes."""

    def __init__(
        self,
        common: "Common",
        algorithm: Algorithm,
        settings: dict[str, Any],
        given: dict[str, Any],
        tasks: dict[str, Task] | None,
    ) -> None:
        self._common = common
        self._algorithm = algorithm
        self._chosen = settings
        self._given = given
        self._tasks = tasks
        self._quiet = common.quiet or not _is_main()

    def train(self, *, system: str, prompt: Prompt | None, picture: Picture | None) -> None:
        """Train and report; `picture` finds the reference pages for a critic that is shown them."""
        with RunFolder(self._common.output) as folder, _processes():
            card = self._trained(folder, system, prompt, picture)
        self._report(card)

    def _fingerprints(self) -> dict[str, str]:
        """Of what is learned from, by what it is called."""
        files = {name: path for name, path in self._given.items() if name != "tasks"}
        found = {name.replace("_", " "): inputs.fingerprint(path) for name, path in files.items()}
        if self._algorithm.privileged and self._tasks is not None:
            found["tasks"] = inputs.fingerprint_of_tasks(self._tasks.values())
        return found

    def _trained(
        self, folder: RunFolder, system: str, prompt: Prompt | None, picture: Picture | None
    ) -> TrainingCard:
        model = _absolute(self._common.model)
        settings = self._settings(model)
        fingerprints = self._fingerprints()
        reader, encoding = open_encoding(model, settings.max_tokens, system, prompt, picture)
        data = self._algorithm.examples(_records(self._given, self._tasks), encoding)
        card = TrainingCard(
            model=model,
            settings=settings,
            system=system,
            privileged_prompt=None if prompt is None else prompt.text,
            data=fingerprints,
            examples=len(data.examples),
            cut_turns=data.cut,
            success_rate=data.success_rate,
            versions=training_versions(),
            started=timestamp(),
        )
        card = folder.claim(card) if _is_main() else folder.join(card)
        if card.finished:
            self._note(f"{folder.path}: was finished {card.finished}; nothing to do")
            return card
        if data.cut:
            self._note(
                f"{data.cut} old turns did not fit into {settings.max_tokens} tokens and were left out"
            )
        if (last := folder.last_checkpoint()) is not None:
            self._note(f"going on from {last.name}")
        label = None if self._quiet else self._algorithm.name
        with shown(label, main=_is_main()) as observe, no_progress_bars(), _resumable(folder):
            return train_model(data, reader, card, folder, self._housekeeping(observe))

    def _settings(self, model: str) -> TrainingSettings:
        chosen = dict(self._chosen)
        rank, hidden = chosen["lora_rank"], chosen.pop("no_reference", None)
        fields = {
            TRAINING_NAMES.get(name, name): value for name, value in chosen.items() if name not in OF_RUN
        }
        fields |= {
            "max_tokens": longest_context(model, chosen["max_tokens"], vision=chosen.get("vision", False)),
            "lora": None if rank is None else LoraSettings(rank=rank, alpha=2 * rank),
            "precision": chosen["precision"] or default_precision(),
            "privileged": None if hidden is None else not hidden,
            "seed": self._common.seed,
        }
        return default_settings(self._algorithm.name, **fields)

    def _housekeeping(self, observe: Callable[[Progress], None]) -> Housekeeping:
        common = self._common
        reports = [name for name in ("tensorboard", "wandb") if getattr(common, name)]
        for name in reports:
            _require(name)
        os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(common.output / "tensorboard"))
        return Housekeeping(
            save_every=self._chosen["save_every"] or Housekeeping.save_every,
            keep=common.keep,
            log_every=common.log_every,
            monitor=common.monitor,
            reports=tuple(reports),
            shard=self._chosen["shard"],
            observe=observe,
        )

    def _note(self, text: str) -> None:
        if not self._quiet:
            console.note(text)

    def _report(self, card: TrainingCard) -> None:
        if not _is_main():
            return
        if self._common.json:
            console.print_json(
                {"output": str(self._common.output), "finished": card.finished, "metrics": card.metrics}
            )
        shown = ("loss", "accuracy", "margin", "nll")
        figures = ", ".join(f"{name} {card.metrics[name]:.4g}" for name in shown if name in card.metrics)
        self._note(
            f"{self._common.output}: {card.examples} examples, {card.metrics['step']:.0f} steps, {figures}"
        )


def _absolute(model: str) -> str:
    """A folder is remembered by its full path: a critic must find its seed model again."""
    from sweetrl.models.shipped import NAMES
    from sweetrl.models.specification import trainable

    model = trainable(model)
    return model if model in NAMES or not Path(model).is_dir() else str(Path(model).resolve())


def _require(name: str) -> None:
    import importlib.util

    if importlib.util.find_spec(name) is None:
        raise UsageError(f"--{name} needs the package {name}: pip install {name}")


@contextlib.contextmanager
def _resumable(folder: RunFolder) -> Iterator[None]:
    """Ctrl-C says what is there to resume from."""
    try:
        yield
    except KeyboardInterrupt:
        last = folder.last_checkpoint()
        raise KeyboardInterrupt("nothing was saved yet" if last is None else f"{last.name} is kept") from None


# ---------------------------------------------------------------- processes


def _is_main() -> bool:
    """Whether this is the process that writes and speaks; torchrun numbers them."""
    return os.environ.get("RANK", "0") == "0"


@contextlib.contextmanager
def _processes() -> Iterator[None]:
    """Whatever joins the other processes of a run within, leaves them at the end."""
    import torch.distributed

    try:
        yield
    finally:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
