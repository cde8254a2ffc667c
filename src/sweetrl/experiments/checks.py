"""Checks of an experiment before its first stage, so that a wrong name does not cost hours.

Tasks, files, models, prompts, packages, endpoints, disk space and learning rates. Files that
stages of the plan write are not checked.
"""

import importlib.util
import os
import shutil
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from sweetrl.browser.session import BrowserSession
from sweetrl.critics import FOLDER, type_of
from sweetrl.critics.served import read_spec
from sweetrl.dialogue.background import run_in_background
from sweetrl.dialogue.building import REPLAY, model_settings, refuse_misspelt, scripted_collaborator
from sweetrl.domains.dialogues import distinct_episodes
from sweetrl.domains.prompt_files import read_prompt
from sweetrl.domains.registry import all_domains, find_domain
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import SweetError, installing
from sweetrl.experiments.hardware import GIB, GPUS, USABLE, TrainingPlan
from sweetrl.experiments.model_size import is_hub_name, is_on_this_machine, parameters_of, path_of
from sweetrl.experiments.pipeline import VALUES, Stage
from sweetrl.learning.algorithms import default_settings
from sweetrl.models.scripted import script_named
from sweetrl.models.specification import EndpointUrl, parse_spec, trainable
from sweetrl.records import is_on_hub
from sweetrl.settings import CriticSettings, Recipe, ServerSettings, TrainSettings
from sweetrl.types import Task

ENDPOINT_SECONDS = 5.0
"""How long an endpoint has to answer."""
LEAST_FREE = GIB
"""Bytes of free disk that a run needs at least."""
PACKAGES = {"train": "torch", "serve": "aiohttp", "browser": "playwright", "ray": "ray"}
"""A package of each extra that stages may need."""
FAR = 30.0
"""A learning rate that differs by this factor from what is usual is worth a look; for adapters by ten times that."""

HIGHEST = 2e-3
"""No model is so small that a higher learning rate would be usual."""


@dataclass(frozen=True)
class Problem:
    """Something that would stop a stage, or make it worthless."""

    text: str
    fatal: bool = True
    """Otherwise it is a warning."""


def check(
    planned: Sequence[Stage],
    recipes: Sequence[Recipe],
    servers: Sequence[ServerSettings] = (),
    *,
    endpoints: bool = True,
) -> list[Problem]:
    """All problems of a plan, each once. Without `endpoints` no server is asked."""
    written = {str(path) for stage in planned for path in stage.writes}
    served = {urlsplit(server.ready).netloc for server in servers}
    distinct = {msgspec.json.encode(recipe): recipe for recipe in recipes}
    known = _Known(written, served, cache(load_tasks), cache(_no_answer) if endpoints else lambda _: "")
    found = [problem for recipe in distinct.values() for problem in _Checker(recipe, known).problems()]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class _Known:
    """Data that the checks of all recipes share."""

    written: set[str]
    """Paths that stages of the plan write."""
    served: set[str]
    """Hosts of servers that the run starts itself."""
    load: Callable[[str], dict[str, Task]]
    ask: Callable[[EndpointUrl], str]
    """Why an endpoint gives no answer; empty if it does."""


class _Checker:
    """The checks of one recipe."""

    def __init__(self, recipe: Recipe, known: _Known) -> None:
        self._recipe = recipe
        self._known = known

    def problems(self) -> Iterator[Problem]:
        """Problems of the data first, then of prompts, models, training and the machine."""
        yield from self._of_data()
        yield from self._of_prompts()
        yield from self._of_players()
        yield from self._of_training()
        yield from self._of_extras()
        yield from self._of_gpus()
        yield from self._of_disk()

    # -------- tasks and dialogues

    def _of_data(self) -> Iterator[Problem]:
        recipe = self._recipe
        sources = {"tasks.train": recipe.tasks.train, "tasks.test": recipe.tasks.test}
        known: dict[str, dict[str, Task]] = {}
        for key, source in sources.items():
            try:
                known[key] = {} if source is None else self._known.load(source)
            except SweetError as error:
                yield Problem(f"{key}: {error}")
        for key, tasks in known.items():
            others = {task.domain for task in tasks.values()} - {recipe.domain}
            if others:
                yield Problem(f'{key}: has {", ".join(sorted(others))} tasks, but domain = "{recipe.domain}"')
        both = known.get("tasks.train", {}).keys() & known.get("tasks.test", {}).keys()
        if both:
            yield Problem(
                f"tasks.test: {len(both)} tasks are in tasks.train too; the result will not be about unseen tasks",
                fatal=False,
            )
        yield from self._of_episodes(known.get("tasks.train", {}))
        yield from self._of_script(
            list({**known.get("tasks.train", {}), **known.get("tasks.test", {})}.values())
        )

    def _of_episodes(self, tasks: dict[str, Task]) -> Iterator[Problem]:
        """Whether the stored dialogues can be read and are about the tasks to train on."""
        stored = self._recipe.episodes
        if stored is None or stored in self._known.written:
            return
        if not Path(stored).exists():
            yield Problem(f"episodes: {stored}: no such file; leave out episodes to have some rolled out")
        elif tasks:
            found = _raised("episodes", lambda: deque(distinct_episodes(Path(stored), tasks), maxlen=0))
            yield from (Problem(f"{each.text}, or leave out episodes (--set episodes=)") for each in found)

    def _is_there(self, path: str) -> bool:
        return path in self._known.written or is_on_hub(path) or Path(path).exists()

    def _of_script(self, tasks: list[Task]) -> Iterator[Problem]:
        """Whether a scripted collaborator can play these tasks."""
        player = model_settings(self._recipe.collaborator)

        def refuse() -> None:
            session = BrowserSession()
            try:
                scripted_collaborator(player, find_domain(self._recipe.domain), tasks, session)
            finally:
                run_in_background(session.close())

        known = any(player.spec in each.collaborators for each in all_domains())
        if known and not any(task.domain != self._recipe.domain for task in tasks):
            yield from _raised("collaborator.model", refuse)

    def _of_prompts(self) -> Iterator[Problem]:
        recipe = self._recipe
        prompts = {
            "agent.prompt": recipe.agent.prompt,
            "collaborator.prompt": recipe.collaborator.prompt,
            "critic.prompt": None if recipe.critic is None else recipe.critic.prompt,
            "candidates.critic_prompt": recipe.candidates.critic_prompt,
            "candidates.judge_prompt": recipe.candidates.judge_prompt,
        }
        for key, prompt in prompts.items():
            if prompt is not None:
                yield from _raised(key, partial(read_prompt, Path(prompt)))

    # -------- models

    def _of_players(self) -> Iterator[Problem]:
        recipe, domain = self._recipe, find_domain(self._recipe.domain)
        if recipe.agent.model not in domain.agents:
            yield from self._of_player("agent", recipe.agent.model)
        name = recipe.collaborator.model
        if name.startswith(REPLAY):
            if not self._is_there(name.removeprefix(REPLAY)):
                yield Problem(f"collaborator.model: {name.removeprefix(REPLAY)}: no such file")
        elif not any(name in each.collaborators for each in all_domains()):
            yield from self._of_player("collaborator", name)
        others = {
            "evaluation.agent": recipe.evaluation.agent,
            "candidates.critic_at": recipe.candidates.critic_at,
            "candidates.reference_at": recipe.candidates.reference_at,
        }
        for key, other in others.items():
            if other is not None:
                yield from self._of_model(key, other)
        if recipe.candidates.critic is not None:
            yield from self._of_critic(recipe.candidates.critic)

    def _of_critic(self, name: str) -> Iterator[Problem]:
        key, kind, rest = "candidates.critic", type_of(name), name.partition(":")[2]
        if name.startswith(VALUES):
            return
        if kind.argument == "model":
            yield from self._of_model(key, rest)
        elif kind.argument == "served folder":
            yield from self._of_served_critic(key, rest)
        elif kind.argument == "folder":
            folder = name.removeprefix("hf:") if kind is FOLDER else rest
            if not self._is_there(folder):
                yield Problem(f"{key}: {folder}: no such folder of a critic")

    def _of_served_critic(self, key: str, spec: str) -> Iterator[Problem]:
        try:
            folder, endpoints = read_spec(spec)
        except SweetError as error:
            yield Problem(f"{key}: {error}")
            return
        yield from self._of_critic(folder)
        for each in endpoints:
            yield from self._of_model(key, each)

    def _of_player(self, role: str, name: str) -> Iterator[Problem]:
        domain = find_domain(self._recipe.domain)
        misspelt = list(_raised(f"{role}.model", partial(refuse_misspelt, name, domain, role)))
        yield from misspelt or self._of_model(f"{role}.model", name)

    def _of_model(self, key: str, name: str) -> Iterator[Problem]:
        try:
            spec = parse_spec(name)
        except SweetError as error:
            yield Problem(f"{key}: {error}")
            return
        if spec.url is not None:
            yield from self._of_endpoint(key, spec.url)
        elif spec.kind == "scripted":
            yield from _raised(key, partial(script_named, spec.model))
        else:
            yield from self._of_folder(key, spec.model)

    def _of_endpoint(self, key: str, url: EndpointUrl) -> Iterator[Problem]:
        yield from _raised(key, url.key)
        ours = urlsplit(url.base).netloc in self._known.served
        if not ours and not url.official and (reason := self._known.ask(url)):
            yield Problem(f"{key}: no connection to {url.shown}: {reason}; start the server first")

    def _of_folder(self, key: str, name: str) -> Iterator[Problem]:
        folder = path_of(name)
        if name in self._known.written:
            return
        if folder.is_dir():
            if not (folder / "config.json").is_file():
                yield Problem(
                    f"{key}: {name}: has no config.json, so it is no folder of a Hugging Face model"
                )
        elif not is_hub_name(name):
            yield Problem(f"{key}: {name}: no such folder")
        elif not is_on_this_machine(name):
            offline = bool(os.environ.get("HF_HUB_OFFLINE"))
            why = "and HF_HUB_OFFLINE forbids fetching it" if offline else "and will be fetched from the hub"
            yield Problem(f"{key}: {name}: is not on this machine, {why}", fatal=offline)

    # -------- training

    @cached_property
    def _trained(self) -> dict[str, tuple[TrainSettings | CriticSettings, str]]:
        """The trainings of the recipe by section: the settings and the algorithm."""
        recipe = self._recipe
        sections: dict[str, tuple[TrainSettings | CriticSettings | None, str]] = {
            "critic": (recipe.critic, "critic"),
            "policy": (None if recipe.algorithm == "none" else recipe.policy, recipe.algorithm),
        }
        return {key: (settings, name) for key, (settings, name) in sections.items() if settings is not None}

    def _of_training(self) -> Iterator[Problem]:
        for section, (settings, algorithm) in self._trained.items():
            try:
                model = trainable(settings.model)
            except SweetError as error:
                yield Problem(f"{section}.model: {error}")
                continue
            yield from self._of_folder(f"{section}.model", model)
            yield from self._of_rate(section, settings, algorithm)

    def _of_rate(
        self, section: str, settings: TrainSettings | CriticSettings, algorithm: str
    ) -> Iterator[Problem]:
        size = parameters_of(trainable(settings.model)) or self._recipe.estimate.parameters
        rate = settings.learning_rate or default_settings(algorithm).learning_rate
        if size is None:
            return
        usual, far = usual_rate(size, adapters=settings.lora_rank is not None)
        if not usual / far <= rate <= usual * far:
            given = "" if settings.learning_rate else " (the default)"
            much = "low" if rate < usual else "high"
            yield Problem(
                f"{section}.learning_rate: {rate:g}{given} is very {much} for a model of {_count(size)} parameters; "
                f"about {usual:.0e} is usual",
                fatal=False,
            )

    # -------- the machine

    def _of_extras(self) -> Iterator[Problem]:
        recipe = self._recipe
        chosen = recipe.candidates
        names = [recipe.agent.model, recipe.collaborator.model, chosen.critic or "", chosen.critic_at or ""]
        remote = [name for name in names if "openai:" in name]
        needed = {"train": bool(self._trained) or any("hf:" in name or name == "mini" for name in names)}
        needed["serve"] = bool(remote)
        needed["ray"] = recipe.executor == "ray"
        needed["browser"] = find_domain(recipe.domain).pictures is not None
        for extra, wanted in needed.items():
            if wanted and importlib.util.find_spec(PACKAGES[extra]) is None:
                yield Problem(f"the package {PACKAGES[extra]} is missing: {installing(extra)}")

    def _of_gpus(self) -> Iterator[Problem]:
        name = self._recipe.estimate.gpu
        if name is None:
            return
        if name not in GPUS:
            yield Problem(f"estimate.gpu: there is no '{name}'; there are {', '.join(GPUS)}")
            return
        for section, plan in self._plans.items():
            try:
                peak = plan.gpu_bytes()
            except SweetError as error:
                yield Problem(f"{section}: {error}", fatal=False)
                continue
            if peak is not None and peak > USABLE * GPUS[name].gib * GIB:
                yield Problem(
                    f"{section}: a training step takes {peak / GIB:.0f} GiB on each GPU, but a {name} has "
                    f"{USABLE * GPUS[name].gib:.0f} for it; use gradient_checkpointing, shard over more GPUs, or lower "
                    f"max_tokens"
                )

    @property
    def _plans(self) -> dict[str, TrainingPlan]:
        trained = self._trained.items()
        return {key: TrainingPlan(self._recipe, settings, name) for key, (settings, name) in trained}

    def _of_disk(self) -> Iterator[Problem]:
        folder = _existing(Path(self._recipe.output))
        free = shutil.disk_usage(folder).free
        needed = LEAST_FREE + sum(plan.disk_bytes for plan in self._plans.values())
        if free < needed:
            yield Problem(
                f"{folder}: {free / GIB:.1f} GiB are free, and the run needs about {needed / GIB:.1f}"
            )


def usual_rate(parameters: float, *, adapters: bool = False) -> tuple[float, float]:
    """A usual learning rate for a model of this size, and by which factor others may well differ from it.

    Through what works for the tiny model that ships (1e-3 at a million parameters) and the paper's for 8 billion.
    """
    rate = 2e-7 * (8e9 / parameters) ** 0.95
    return (min(50 * rate, HIGHEST), 10 * FAR) if adapters else (min(rate, HIGHEST), FAR)


def _count(parameters: float) -> str:
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if parameters >= size:
            return f"{parameters / size:.3g} {unit}"
    return f"{parameters:.0f}"


def _raised(key: str, action: Callable[[], object]) -> Iterator[Problem]:
    try:
        action()
    except SweetError as error:
        yield Problem(f"{key}: {error}")


def _no_answer(url: EndpointUrl) -> str:
    """Why a server gives no answer; empty if it gives any."""
    try:
        urllib.request.urlopen(url.at("/models"), timeout=ENDPOINT_SECONDS).close()  # noqa: S310  http or https
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error)) or type(error).__name__
    return ""


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    path = path.absolute()
    return next(each for each in (path, *path.parents) if each.exists())
