"""What `sweetrl train` does: reads the records, claims the folder, trains, shows how far it is."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweetrl import interrupts
from sweetrl.cli import console, inputs, live
from sweetrl.cli.candidates import refuse_other_domain
from sweetrl.dialogue.building import read_prompt
from sweetrl.domains.domain import Domain
from sweetrl.domains.registry import DEFAULT, find_domain, only_domain
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import UsageError
from sweetrl.experiments import progress
from sweetrl.prompts import Prompt, agent_instructions
from sweetrl.records import read_records
from sweetrl.types import EpisodePair, Task, TurnPair, Verdict

if TYPE_CHECKING:
    from sweetrl.cli.train import Common
    from sweetrl.learning.checkpoints import RunFolder, TrainingCard
    from sweetrl.learning.datasets import Dataset, Encoding
    from sweetrl.learning.settings import TrainingSettings
    from sweetrl.learning.trainer import Progress

Examples = Callable[["Encoding"], "Dataset"]
Picture = Callable[[Task], Path]
"""Where the picture of a task's reference is."""


def imitate(
    common: "Common",
    episodes: Path,
    verdicts: Path,
    tasks: str | None,
    kind: str | None,
    prompt_file: Path | None,
) -> None:
    """Rejection fine-tuning."""
    from sweetrl.learning.datasets import successful_dialogues

    def examples(encoding: "Encoding") -> "Dataset":
        stored = inputs.load_episodes(episodes, inputs.tasks_or_none(tasks))
        return successful_dialogues(stored, read_records(verdicts, Verdict), encoding)

    run = Run(common, "rft", {}, {"episodes": episodes, "verdicts": verdicts})
    run.train(examples, system=_system(common, kind, prompt_file, episodes, tasks))


def prefer_dialogues(
    common: "Common",
    pairs: Path,
    episodes: Path,
    verdicts: Path | None,
    tasks: str | None,
    kind: str | None,
    prompt_file: Path | None,
    settings: dict[str, Any],
) -> None:
    """Multi-turn DPO, and imitation of the answers that succeeded if it has a weight."""
    from sweetrl.learning.datasets import dialogue_pairs, successful

    _check_imitation(settings["imitation"], {"--verdicts": verdicts})

    def examples(encoding: "Encoding") -> "Dataset":
        stored = inputs.load_episodes(episodes, inputs.tasks_or_none(tasks))
        right = () if verdicts is None else successful(stored, read_records(verdicts, Verdict))
        return dialogue_pairs(read_records(pairs, EpisodePair), stored, encoding, successes=right)

    given = {"pairs": pairs, "episodes": episodes, "verdicts": verdicts}
    run = Run(common, "dpo", settings, _present(given))
    run.train(examples, system=_system(common, kind, prompt_file, episodes, tasks))


def judge(
    common: "Common",
    pairs: Path | None,
    verdicts: Path | None,
    episodes: Path,
    source: str,
    prompt_file: Path | None,
    critic_prompt: Path | None,
    settings: dict[str, Any],
) -> None:
    """A critic, from pairs or, if it is a value function, from verdicts."""
    from sweetrl.learning.datasets import dialogue_pairs, scored_dialogues

    _check_outcomes(settings["kind"], pairs, verdicts)
    tasks = load_tasks(source)
    domain = only_domain(tasks.values(), source)
    vision = _checked_vision(settings, domain, source)

    def examples(encoding: "Encoding") -> "Dataset":
        stored = inputs.load_episodes(episodes, tasks)
        if pairs is not None:
            return dialogue_pairs(read_records(pairs, EpisodePair), stored, encoding, tasks)
        assert verdicts is not None
        return scored_dialogues(stored, read_records(verdicts, Verdict), encoding, tasks)

    told = read_prompt(critic_prompt) or _privileged(domain, vision=vision)
    fields = [] if vision else ["hidden_information"]
    told.check(needed=fields, offered=fields)
    given = {"pairs": pairs, "verdicts": verdicts, "episodes": episodes}
    run = Run(common, "critic", settings, _present(given))
    run.data["tasks"] = inputs.fingerprint_of_tasks(tasks.values())
    run.train(
        examples,
        system=_system(common, domain.name, prompt_file, episodes),
        told=told if settings["privileged"] else None,
        picture=_rendered(common, pairs, tasks) if vision else None,
    )


def _privileged(domain: Domain, *, vision: bool) -> Prompt:
    pictures = domain.pictures if vision else None
    return domain.prompts.privileged if pictures is None else pictures.privileged_prompt


def _checked_vision(settings: dict[str, Any], domain: Domain, source: str) -> bool:
    """Whether the critic sees; refuses what does not go with it."""
    if not settings["vision"]:
        return False
    if settings["kind"] != "regression":
        raise UsageError("--vision is for critics with a head on all tokens; give --kind regression too")
    if not settings["privileged"]:
        raise UsageError("a critic that sees is shown the reference; leave out --vision or --blind")
    if domain.pictures is None:
        raise UsageError(f"{source}: has {domain.name} tasks, and nothing to see; leave out --vision")
    return True


def _rendered(common: "Common", pairs: Path | None, tasks: dict[str, Task]) -> Callable[[Task], Path]:
    """Where the pictures of the references are: all that the pairs need, made if they are not there yet."""
    from sweetrl.cli.references import make_references
    from sweetrl.learning.checkpoints import REFERENCES, RunFolder

    assert pairs is not None  # as `_check_outcomes` has seen to
    RunFolder(common.output).refuse_foreign()
    needed = {pair.task_id for pair in read_records(pairs, EpisodePair)} & tasks.keys()
    chosen = [tasks[each] for each in sorted(needed)]
    return interrupts.run(make_references, chosen, common.output / REFERENCES).path


def _check_outcomes(kind: str, pairs: Path | None, verdicts: Path | None) -> None:
    if kind != "value" and (pairs is None or verdicts is not None):
        raise UsageError(f"a critic of kind {kind} learns from pairs of dialogues; give --pairs alone")
    if (pairs is None) == (verdicts is None):
        raise UsageError("a value function learns from the outcome of each dialogue; give --verdicts")


def prefer_turns(
    common: "Common",
    pairs: Path,
    episodes: Path | None,
    verdicts: Path | None,
    kind: str | None,
    prompt_file: Path | None,
    settings: dict[str, Any],
) -> None:
    """Turn-wise DPO, and imitation of the answers that succeeded if it has a weight."""
    from sweetrl.learning.datasets import successful, turn_pairs

    given = {"turn pairs": pairs, "episodes": episodes, "verdicts": verdicts}
    _check_imitation(settings["imitation"], {"--episodes": episodes, "--verdicts": verdicts})

    def examples(encoding: "Encoding") -> "Dataset":
        preferred = read_records(pairs, TurnPair)
        if episodes is None or verdicts is None:
            return turn_pairs(preferred, encoding)
        stored = inputs.load_episodes(episodes)
        return turn_pairs(preferred, encoding, successful(stored, read_records(verdicts, Verdict)))

    run = Run(common, "policy", settings, _present(given))
    run.train(examples, system=_system(common, kind, prompt_file))


def _check_imitation(weight: float | None, sources: dict[str, Path | None]) -> None:
    """Right answers are found in files that nothing else needs."""
    named = " and ".join(sources)
    if weight and None in sources.values():
        raise UsageError(f"--imitation needs the dialogues and what they earned; give {named} too")
    if not weight and any(sources.values()):
        raise UsageError(f"{named}: only for --imitation; give its weight too")


def _present(files: dict[str, Path | None]) -> dict[str, Path]:
    return {name: path for name, path in files.items() if path is not None}


def _system(
    common: "Common",
    kind: str | None,
    prompt_file: Path | None,
    episodes: Path | None = None,
    tasks: str | None = None,
) -> str:
    """The prompt that the agent has when it is sampled from."""
    if kind is None:
        kind = DEFAULT if tasks is None else only_domain(load_tasks(tasks).values(), tasks).name
    if prompt_file is None and episodes is not None:
        refuse_other_domain(episodes, kind)
    prompt = read_prompt(prompt_file) or find_domain(kind).prompts.agent
    return agent_instructions(prompt, turn_limit=common.turn_limit)


class Run:
    """One training run, in each of its processes."""

    def __init__(
        self, common: "Common", method: str, settings: dict[str, Any], files: dict[str, Path]
    ) -> None:
        self._common = common
        self._method = method
        self._chosen = settings
        self.data = {name: inputs.fingerprint(path) for name, path in files.items()}
        self._quiet = common.quiet or not _is_main()

    def train(
        self, examples: Examples, *, system: str, told: Prompt | None = None, picture: Picture | None = None
    ) -> None:
        """Train on the examples and report; `picture` is where a critic that sees finds references."""
        from sweetrl.learning.checkpoints import RunFolder

        with RunFolder(self._common.output) as folder, _processes():
            card = self._trained(folder, examples, system, told, picture)
        self._report(card)

    def _trained(
        self,
        folder: "RunFolder",
        examples: Examples,
        system: str,
        told: Prompt | None,
        picture: Picture | None,
    ) -> "TrainingCard":
        from sweetrl.learning.checkpoints import TrainingCard, timestamp, training_versions
        from sweetrl.learning.trainer import train
        from sweetrl.models.local.network import no_progress_bars

        model = _absolute(self._common.model)
        settings = self._settings(model)
        reader, encoding = _encoding(model, settings, system, told, picture)
        data = examples(encoding)
        card = TrainingCard(
            model=model,
            settings=settings,
            system=system,
            privileged_prompt=None if told is None else told.text,
            data=self.data,
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
        with self._shown() as observe, no_progress_bars(), _resumable(folder):
            return train(data, reader, card, folder, self._housekeeping(observe))

    def _settings(self, model: str) -> "TrainingSettings":
        from sweetrl.learning.loading import default_precision, longest_context
        from sweetrl.learning.settings import LoraSettings, Method, default_settings

        common, rank = self._common, self._common.lora_rank
        return default_settings(
            Method(self._method),
            **self._chosen,
            epochs=common.epochs,
            batch_size=common.batch_size,
            learning_rate=common.learning_rate,
            max_steps=common.max_steps,
            max_tokens=longest_context(model, common.max_tokens, vision=self._chosen.get("vision", False)),
            tokens_per_pass=common.tokens_per_pass,
            warmup=common.warmup,
            floor=common.floor,
            lora=None if rank is None else LoraSettings(rank=rank, alpha=2 * rank),
            gradient_checkpointing=common.gradient_checkpointing,
            precision=common.precision or default_precision(),
            held_out=common.held_out,
            seed=common.seed,
        )

    def _housekeeping(self, observe: "Callable[[Progress], None]") -> Any:
        from sweetrl.learning.trainer import Housekeeping

        common = self._common
        reports = [name for name in ("tensorboard", "wandb") if getattr(common, name)]
        for name in reports:
            _require(name)
        os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(common.output / "tensorboard"))
        return Housekeeping(
            save_every=common.save_every,
            keep=common.keep,
            log_every=common.log_every,
            monitor=common.monitor,
            reports=tuple(reports),
            shard=common.shard,
            observe=observe,
        )

    def _note(self, text: str) -> None:
        if not self._quiet:
            console.note(text)

    @contextlib.contextmanager
    def _shown(self) -> "Iterator[Callable[[Progress], None]]":
        """Show the progress: a bar on a terminal, a line now and then elsewhere."""
        tell = progress.teller() if _is_main() else None
        if tell is not None:
            yield lambda done: tell(done.step, done.steps)
        elif self._quiet:
            yield lambda _: None
        elif sys.stderr.isatty():
            with _bar(self._method) as show:
                yield show
        else:
            yield _Heartbeat()

    def _report(self, card: "TrainingCard") -> None:
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


def _encoding(
    model: str,
    settings: "TrainingSettings",
    system: str,
    told: Prompt | None,
    picture: Picture | None,
) -> "tuple[Any, Encoding]":
    """The tokenizer, or the processor of a model that sees, and how records are encoded with it."""
    from sweetrl.learning.critics import tell_secret
    from sweetrl.learning.datasets import Encoding
    from sweetrl.learning.loading import load_config, load_tokenizer
    from sweetrl.learning.rows import can_branch
    from sweetrl.learning.tokens import DialogueEncoder

    if picture is not None and told is not None:
        return _seeing_encoding(model, settings, system, told.render(), picture)
    tokenizer = load_tokenizer(model)
    return tokenizer, Encoding(
        DialogueEncoder(tokenizer, max_tokens=settings.max_tokens),
        system=system,
        privileged=None if told is None else partial(tell_secret, told),
        branch=can_branch(load_config(model)),
    )


def _seeing_encoding(
    model: str, settings: "TrainingSettings", system: str, told: str, picture: Picture
) -> "tuple[Any, Encoding]":
    from sweetrl.learning.pictures import load_pictures
    from sweetrl.learning.vision import SeeingEncoder, SeeingEncoding

    pictures = load_pictures(model)
    encoder = SeeingEncoder(pictures, max_tokens=settings.max_tokens)
    return pictures.processor, SeeingEncoding(encoder, system, lambda _: told, picture=picture)


def _absolute(model: str) -> str:
    """A folder is remembered by its full path: a critic must find its seed model again."""
    from sweetrl.models.shipped import NAMES

    return model if model in NAMES or not Path(model).is_dir() else str(Path(model).resolve())


def _require(name: str) -> None:
    import importlib.util

    if importlib.util.find_spec(name) is None:
        raise UsageError(f"--{name} needs the package {name}: pip install {name}")


@contextlib.contextmanager
def _resumable(folder: "RunFolder") -> Iterator[None]:
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


# ---------------------------------------------------------------- progress


class _Heartbeat:
    """A line about the progress, at most once a minute."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._first: int | None = None
        self._spoken = self._started

    def __call__(self, progress: "Progress") -> None:
        now = time.monotonic()
        if self._first is None:
            self._first, self._started = progress.step, now
        if now - self._spoken >= live.HEARTBEAT_SECONDS and progress.step > self._first:
            self._spoken = now
            left = (now - self._started) / (progress.step - self._first) * (progress.steps - progress.step)
            console.note(
                f"step {progress.step}/{progress.steps} · loss {progress.loss:.4g} · {live.duration(left)} left"
            )


@contextlib.contextmanager
def _bar(label: str) -> "Iterator[Callable[[Progress], None]]":
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Display

    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    ]
    with Display(*columns, console=console.messages()) as display:
        task = display.add_task(label, total=None, loss="-")
        yield lambda progress: display.update(
            task, completed=progress.step, total=progress.steps, loss=f"{progress.loss:.4g}"
        )
