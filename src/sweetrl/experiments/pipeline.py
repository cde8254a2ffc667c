"""The stages of a recipe: which command makes which file from which others."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from sweetrl.errors import ConfigError
from sweetrl.learning.algorithm import Algorithm
from sweetrl.learning.algorithms import algorithm_named, algorithms
from sweetrl.settings import (
    AgentSettings,
    CriticSettings,
    DialogueSettings,
    RankSettings,
    Recipe,
    SamplingSettings,
    Section,
    SeededTurnPairSettings,
    ServerSettings,
    TrainSettings,
)
from sweetrl.settings.training import CHOSEN_BY_ALGORITHM
from sweetrl.settings.words import option_words

UNTRAINED = "none"
"""In place of an algorithm: the agent is evaluated as it is."""
BASELINE = "evaluate-untrained"
"""The stage that evaluates the agent before it is trained, to see what training brings."""

SERVED = "served:"
"""In front of a critic's folder and the endpoints that serve it and its reference model."""
VALUES = "values:"
"""In place of a critic: a file of true values, which every turn of it is ranked by."""


@dataclass(frozen=True)
class Stage:
    """One command of a recipe."""

    name: str
    arguments: tuple[str, ...]
    """Arguments of the command `sweetrl`."""
    inputs: tuple[str, ...]
    """All that it reads and that another stage may write: those wait for each other."""
    output: Path
    launcher: tuple[str, ...] = ()
    """Words in front of `-m sweetrl`; empty for this Python."""
    also: tuple[Path, ...] = ()
    """Other files that it writes."""

    @property
    def writes(self) -> tuple[Path, ...]:
        """All that other stages can read of it."""
        return (self.output, *self.also)


@dataclass(frozen=True)
class Places:
    """Where the files of a pipeline are."""

    episodes: Path
    verdicts: Path
    pairs: Path
    critic: Path
    candidates: Path
    ranked: Path
    turn_pairs: Path
    policy: Path
    evaluation: Path
    untrained: Path | None = None
    """The evaluation of the agent as it was; None where another method is that."""


def places_in(folder: Path) -> Places:
    """One folder for everything, as recipes have it."""
    return Places(
        episodes=folder / "episodes.jsonl",
        verdicts=folder / "verdicts.jsonl",
        pairs=folder / "pairs.jsonl",
        critic=folder / "critic",
        candidates=folder / "candidates.jsonl",
        ranked=folder / "ranked.jsonl",
        turn_pairs=folder / "turn_pairs.jsonl",
        policy=folder / "policy",
        evaluation=folder / "evaluation",
        untrained=folder / "untrained",
    )


def stage_names() -> tuple[str, ...]:
    """All stages that a recipe can have."""
    trained = (f"train-{name}" for name in algorithms())
    return ("rollout", "score", "pairs", "candidates", "rank", "turn-pairs", *trained, BASELINE, "evaluate")


def policy_algorithm(name: str) -> Algorithm | None:
    """The algorithm that trains a recipe's policy; None if it trains none."""
    if name == UNTRAINED:
        return None
    algorithm = algorithm_named(name)
    if algorithm.privileged:
        raise ConfigError(f"algorithm '{name}' trains a critic; choose one that trains a policy")
    return algorithm


def needs_critic(name: str) -> bool:
    """Whether an algorithm learns from turns that a critic ranked."""
    algorithm = policy_algorithm(name)
    return algorithm is not None and "turn_pairs" in algorithm.reads


def stages(recipe: Recipe, places: Places | None = None) -> list[Stage]:
    """The stages of a recipe, in order."""
    if needs_critic(recipe.algorithm) and (recipe.critic is None) == (recipe.candidates.critic is None):
        raise ConfigError(
            f"algorithm '{recipe.algorithm}' needs a critic: either a section [critic] or candidates.critic"
        )
    if recipe.candidates.critic_at is not None and not _trains_log_ratio(recipe.critic):
        raise ConfigError('candidates.critic_at: needs a section [critic] with kind = "advantage"')
    return list(_Pipeline(recipe, places or places_in(Path(recipe.output))).stages())


def _trains_log_ratio(critic: CriticSettings | None) -> bool:
    """Whether log-probabilities are all that a critic says: those can come from servers."""
    return critic is not None and critic.kind not in ("value", "regression")


def servers_of(recipe: Recipe) -> tuple[ServerSettings, ...]:
    """The servers of a recipe; those of agent and collaborator also serve while the untrained agent is evaluated."""
    players = _endpoints(recipe.agent.model, recipe.collaborator.model)
    chosen = recipe.candidates
    asked = [*_endpoints(recipe.evaluation.agent, chosen.critic_at, chosen.reference_at), *players]
    talking = {address for address, _ in players}
    return tuple(
        msgspec.structs.replace(
            server,
            serves=server.serves
            or next((model for at, model in asked if at == address and model not in server.adapters), None),
            stages=(*server.stages, BASELINE)
            if address in talking and BASELINE not in server.stages
            else server.stages,
        )
        for server in recipe.servers
        for address in [urlsplit(server.ready).netloc]
    )


def _endpoints(*names: str | None) -> list[tuple[str, str]]:
    """Host and port of each model behind an endpoint, and how it is called there."""
    split = (name.removeprefix("openai:").rpartition("@") for name in names if name and "@http" in name)
    return [(urlsplit(url).netloc, model) for model, _, url in split]


def command_stage(
    command: str, files: dict[str, object], *settings: Section, output: Path, reads: tuple[Path, ...] = ()
) -> Stage:
    """A command that writes one file; `reads` are inputs besides its `files`."""
    inputs = (*_inputs(files), *map(str, reads))
    words = (command, *_options(files), *option_words(*settings), "-o", str(output))
    return Stage(command, words, inputs, output)


def evaluation_stage(
    recipe: Recipe,
    agent: AgentSettings,
    tasks: str,
    folder: Path,
    drafts: Mapping[str, Any] | None = None,
    *,
    reads: tuple[Path, ...] = (),
) -> Stage:
    """An evaluation of an agent; `drafts` are the settings for one that a critic helps.

    `reads` are the models that it needs, whether they are opened here or served elsewhere.
    """
    settings = _dialogue_settings(recipe, agent, recipe.evaluation.attempts)
    if recipe.evaluation.single_turn:
        alone = msgspec.structs.replace(settings.rollout, guard=False)
        settings = msgspec.structs.replace(settings, collaborator=None, rollout=alone, single_turn=True)
    settings = msgspec.structs.replace(settings, **(drafts or {}))
    return command_stage("evaluate", {"tasks": tasks}, settings, recipe.scoring, output=folder, reads=reads)


class _Pipeline:
    def __init__(self, recipe: Recipe, places: Places) -> None:
        self._recipe = recipe
        self._places = places
        self._algorithm = policy_algorithm(recipe.algorithm)
        self._from_turns = needs_critic(recipe.algorithm)
        self._episodes = places.episodes if recipe.episodes is None else Path(recipe.episodes)

    def stages(self) -> Iterator[Stage]:
        if self._algorithm is not None:
            yield from self._data()
            yield from self._baseline()
        if self._from_turns:
            yield from self._credit()
        if self._recipe.policy is not None and self._algorithm is not None:
            yield self._policy(self._algorithm, self._recipe.policy)
        if self._recipe.tasks.test is not None:
            yield self._evaluation(self._recipe.tasks.test)

    def _data(self) -> Iterator[Stage]:
        recipe = self._recipe
        if recipe.episodes is None:
            yield self._rollout()
        given: dict[str, object] = {"tasks": recipe.tasks.train, "episodes": self._episodes}
        yield command_stage("score", given, recipe.scoring, output=self._places.verdicts)
        if self._needs_pairs:
            earned = {"verdicts": self._places.verdicts}
            yield command_stage("pairs", given | earned, recipe.pairs, output=self._places.pairs)

    def _baseline(self) -> Iterator[Stage]:
        recipe, folder = self._recipe, self._places.untrained
        if folder is not None and recipe.tasks.test is not None and recipe.evaluation.untrained:
            stage = evaluation_stage(recipe, recipe.agent, recipe.tasks.test, folder)
            yield replace(stage, name=BASELINE)

    @property
    def _needs_pairs(self) -> bool:
        """Imitation and value functions learn from what each dialogue earned."""
        reads = {} if self._algorithm is None else self._algorithm.reads
        return ("pairs" in reads or self._from_turns) and not self._trains_value

    @property
    def _trains_value(self) -> bool:
        critic = self._recipe.critic
        return self._from_turns and critic is not None and critic.kind == "value"

    def _credit(self) -> Iterator[Stage]:
        """From pairs of dialogues to pairs of turns."""
        recipe, places = self._recipe, self._places
        if recipe.critic is not None:
            learned = {"verdicts": places.verdicts} if self._trains_value else {"pairs": places.pairs}
            given = {"tasks": recipe.tasks.train, "episodes": self._episodes, **learned}
            yield self._train(algorithm_named("critic"), recipe.critic, given, places.critic)
        yield self._candidates()
        yield self._rank()
        pairing = SeededTurnPairSettings(**msgspec.structs.asdict(recipe.turn_pairs), seed=recipe.seed)
        ranked = {"ranked": places.ranked, "episodes": self._episodes, "tasks": recipe.tasks.train}
        yield command_stage("turn-pairs", ranked, pairing, output=places.turn_pairs)

    def _candidates(self) -> Stage:
        recipe = self._recipe
        sampling = SamplingSettings(
            agent=recipe.agent,
            draw=recipe.candidates,
            turn_limit=recipe.rollout.turn_limit,
            seed=recipe.seed,
        )
        given = {"episodes": self._episodes, "tasks": recipe.tasks.train, "domain": recipe.domain}
        return command_stage("candidates", given, sampling, output=self._places.candidates)

    def _rank(self) -> Stage:
        chosen, places = self._recipe.candidates, self._places
        trained = str(places.critic)
        if chosen.critic_at is not None:
            trained = f"{SERVED}{trained},{chosen.critic_at},{chosen.reference_at}"
        ranking = RankSettings(
            critic=chosen.critic or trained,
            critic_prompt=chosen.critic_prompt,
            judge_prompt=chosen.judge_prompt,
            judge_rounds=chosen.judge_rounds,
            precision=chosen.precision,
            concurrency=chosen.rank_concurrency,
        )
        given: dict[str, object] = {
            "tasks": self._recipe.tasks.train,
            "episodes": self._episodes,
            "candidates": places.candidates,
        }
        reads = () if chosen.critic else (places.critic,)
        return command_stage("rank", given, ranking, output=places.ranked, reads=reads)

    def _policy(self, algorithm: Algorithm, settings: TrainSettings) -> Stage:
        recipe, places = self._recipe, self._places
        files: dict[str, object] = {
            "pairs": places.pairs,
            "turn_pairs": places.turn_pairs,
            "episodes": self._episodes,
            "verdicts": places.verdicts,
            "tasks": recipe.tasks.train,
        }
        imitates = bool(settings.sft_weight) and "sft_weight" in algorithm.takes
        # `--pairs` takes both kinds of pairs.
        given: dict[str, object] = {
            "pairs" if name == "turn_pairs" else name: files[name]
            for name, read in algorithm.reads.items()
            if read.required or name == "tasks" or imitates
        }
        return self._train(algorithm, settings, {**given, "domain": recipe.domain}, places.policy)

    def _evaluation(self, tasks: str) -> Stage:
        recipe, agent = self._recipe, self._recipe.agent
        reads: tuple[Path, ...] = ()
        if self._algorithm is not None:
            reads = (self._places.policy,) if recipe.policy is not None else ()
            model = recipe.evaluation.agent or f"hf:{self._places.policy}"
            agent = msgspec.structs.replace(agent, model=model)
        return evaluation_stage(recipe, agent, tasks, self._places.evaluation, reads=reads)

    def _rollout(self) -> Stage:
        recipe, output = self._recipe, self._places.episodes
        settings = _dialogue_settings(recipe, recipe.agent, recipe.rollout.attempts)
        tasks: dict[str, object] = {"tasks": recipe.tasks.train}
        return replace(command_stage("rollout", tasks, settings, output=output.parent), output=output)

    def _train(
        self,
        algorithm: Algorithm,
        settings: TrainSettings | CriticSettings,
        given: dict[str, object],
        output: Path,
    ) -> Stage:
        recipe = self._recipe
        unsent = {"launcher", "options", *CHOSEN_BY_ALGORITHM}.difference(algorithm.takes)
        numbers = {
            "critic_prompt" if name == "prompt" else name: getattr(settings, name)
            for name in settings.__struct_fields__
            if name not in unsent
        }
        own = {} if settings.options is UNSET else settings.options
        shared = {
            "agent_prompt": recipe.agent.prompt,
            "turn_limit": recipe.rollout.turn_limit,
            "seed": recipe.seed,
        }
        options = {
            name.replace("_", "-"): each for name, each in {**given, **numbers, **own, **shared}.items()
        }
        arguments = ("train", algorithm.name, *_options(options), "-o", str(output))
        return Stage(f"train-{algorithm.name}", arguments, _inputs(options), output, settings.launcher)


def _dialogue_settings(recipe: Recipe, agent: AgentSettings, attempts: int) -> DialogueSettings:
    return DialogueSettings(
        agent=agent,
        collaborator=recipe.collaborator,
        rollout=msgspec.structs.replace(recipe.rollout, attempts=attempts),
        seed=recipe.seed,
    )


def _options(options: dict[str, object]) -> Iterator[str]:
    """Command-line words; None and False are left out, True is a flag."""
    for name, value in options.items():
        if value is True:
            yield f"--{name}"
        elif value is not None and value is not False:
            yield from (f"--{name}", str(value))


def _inputs(options: dict[str, object]) -> tuple[str, ...]:
    """The inputs of a stage: tasks, and the files and folders that earlier stages wrote."""
    return tuple(str(value) for name, value in options.items() if name == "tasks" or isinstance(value, Path))
