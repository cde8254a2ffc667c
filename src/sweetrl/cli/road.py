"""The stages of a recipe: which command makes which file from which others."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec import UNSET

from sweetrl.errors import ConfigError
from sweetrl.learning.algorithm import Algorithm, InputName
from sweetrl.learning.algorithms import algorithm_named, algorithms
from sweetrl.settings import CriticSettings, PlayerSettings, Recipe, TrainSettings

UNTRAINED = "none"
"""In place of an algorithm: the agent is evaluated as it is."""

_CHOSEN_BY_ALGORITHM = ("beta", "nll", "imitation")
"""Settings of a recipe that not every algorithm takes."""


@dataclass(frozen=True)
class Stage:
    """One command of a recipe."""

    name: str
    arguments: tuple[str, ...]
    """Of the command `sweetrl`."""
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
    """Where the files of a road are."""

    episodes: Path
    verdicts: Path
    pairs: Path
    critic: Path
    candidates: Path
    ranked: Path
    turn_pairs: Path
    policy: Path
    evaluation: Path


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
    )


def stage_names() -> tuple[str, ...]:
    """All stages that a recipe can have."""
    trained = (f"train-{name}" for name in algorithms())
    return ("rollout", "score", "pairs", "candidates", "rank", "turn-pairs", *trained, "evaluate")


def policy_algorithm(name: str) -> Algorithm | None:
    """What a recipe trains its policy by; None if it trains none."""
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
    """What the recipe asks for, in order."""
    if needs_critic(recipe.algorithm) and (recipe.critic is None) == (recipe.candidates.critic is None):
        raise ConfigError(
            f"algorithm '{recipe.algorithm}' needs a critic: either a section [critic] or candidates.critic"
        )
    return list(_Road(recipe, places or places_in(Path(recipe.output))).stages())


def command_stage(
    command: str, options: dict[str, object], output: Path, *, reads: tuple[Path, ...] = ()
) -> Stage:
    """A command that writes one file; `reads` is what its options do not name as a path."""
    inputs = (*_inputs(options), *map(str, reads))
    return Stage(command, (command, *_options(options), "-o", str(output)), inputs, output)


def evaluation_stage(
    recipe: Recipe,
    agent: PlayerSettings,
    tasks: str,
    folder: Path,
    drafts: dict[str, object] | None = None,
    *,
    policy: Path | None = None,
) -> Stage:
    """An evaluation of an agent; `drafts` are the options for one that a critic helps.

    `policy` is what the agent is made of, whether it is opened here or served elsewhere.
    """
    options = _dialogue_options(recipe, tasks, agent, recipe.evaluation.attempts) | (drafts or {})
    options["turn-cost"] = recipe.scoring.turn_cost or None
    if recipe.evaluation.single_turn:
        nobody = player_options("collaborator", recipe.collaborator)
        options = {name: value for name, value in options.items() if name not in nobody} | {
            "single-turn": True
        }
    return command_stage("evaluate", options, folder, reads=() if policy is None else (policy,))


class _Road:
    def __init__(self, recipe: Recipe, places: Places) -> None:
        self._recipe = recipe
        self._places = places
        self._algorithm = policy_algorithm(recipe.algorithm)
        self._from_turns = needs_critic(recipe.algorithm)
        self._episodes = places.episodes if recipe.episodes is None else Path(recipe.episodes)

    def stages(self) -> Iterator[Stage]:
        if self._algorithm is not None:
            yield from self._data()
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
        given = {
            "tasks": recipe.tasks.train,
            "episodes": self._episodes,
            "turn-cost": recipe.scoring.turn_cost or None,
        }
        yield command_stage("score", given, self._places.verdicts)
        if self._needs_pairs:
            yield command_stage(
                "pairs",
                {
                    "episodes": self._episodes,
                    "verdicts": self._places.verdicts,
                    "tasks": recipe.tasks.train,
                    "rule": recipe.pairs.rule,
                    "margin": recipe.pairs.margin,
                },
                self._places.pairs,
            )

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
            learnt = {"verdicts": places.verdicts} if self._trains_value else {"pairs": places.pairs}
            given = {"tasks": recipe.tasks.train, "episodes": self._episodes, **learnt}
            yield self._train(algorithm_named("critic"), recipe.critic, given, places.critic)
        yield self._candidates()
        yield command_stage(
            "rank",
            {
                "critic": recipe.candidates.critic or places.critic,
                "critic-prompt": recipe.candidates.critic_prompt,
                "tasks": recipe.tasks.train,
                "episodes": self._episodes,
                "candidates": places.candidates,
                "judge-prompt": recipe.candidates.judge_prompt,
                "judge-rounds": recipe.candidates.judge_rounds,
                "concurrency": recipe.candidates.rank_concurrency,
            },
            places.ranked,
        )
        yield command_stage(
            "turn-pairs",
            {
                "ranked": places.ranked,
                "episodes": self._episodes,
                "tasks": recipe.tasks.train,
                "rule": recipe.turn_pairs.rule,
                "pairs": recipe.turn_pairs.pairs,
                "margin": recipe.turn_pairs.margin,
                "spreads": recipe.turn_pairs.spreads or None,
                "seed": recipe.seed,
            },
            places.turn_pairs,
        )

    def _candidates(self) -> Stage:
        recipe = self._recipe
        return command_stage(
            "candidates",
            {
                "episodes": self._episodes,
                "tasks": recipe.tasks.train,
                "kind": recipe.kind,
                "turn-limit": recipe.rollout.turn_limit,
                "n": recipe.candidates.n,
                "attempts": recipe.candidates.attempts,
                "seed": recipe.seed,
                "concurrency": recipe.candidates.concurrency,
                **player_options("agent", recipe.agent),
            },
            self._places.candidates,
        )

    def _policy(self, algorithm: Algorithm, settings: TrainSettings) -> Stage:
        recipe, places, reads = self._recipe, self._places, algorithm.reads
        files: dict[InputName, object] = {
            "turn_pairs": places.turn_pairs,
            "tasks": recipe.tasks.train,
            "episodes": self._episodes,
            "pairs": places.pairs,
            "verdicts": places.verdicts,
        }
        imitates = bool(settings.imitation) and "imitation" in algorithm.takes
        needed = [name for name in files if name in reads and (reads[name].required or name == "tasks")]
        imitated = [name for name in files if name in reads and name not in needed and imitates]
        # Journals of earlier runs compare the words of a command in this order.
        early = [name for name in needed if name in ("turn_pairs", "tasks", "episodes")]
        late = [name for name in needed if name not in early]
        given = {
            **{_option(name): files[name] for name in early},
            "kind": recipe.kind,
            **{_option(name): files[name] for name in (*late, *imitated)},
        }
        return self._train(algorithm, settings, given, places.policy)

    def _evaluation(self, tasks: str) -> Stage:
        recipe, agent, policy = self._recipe, self._recipe.agent, None
        if self._algorithm is not None:
            policy = self._places.policy if recipe.policy is not None else None
            model = recipe.evaluation.agent or f"hf:{self._places.policy}"
            agent = PlayerSettings(
                model=model, temperature=agent.temperature, max_tokens=agent.max_tokens, prompt=agent.prompt
            )
        return evaluation_stage(recipe, agent, tasks, self._places.evaluation, policy=policy)

    def _rollout(self) -> Stage:
        recipe, output = self._recipe, self._places.episodes
        options = _dialogue_options(recipe, recipe.tasks.train, recipe.agent, recipe.rollout.attempts)
        arguments = ("rollout", *_options(options), "-o", str(output.parent))
        return Stage("rollout", arguments, _inputs(options), output)

    def _train(
        self,
        algorithm: Algorithm,
        settings: TrainSettings | CriticSettings,
        given: dict[str, object],
        output: Path,
    ) -> Stage:
        unsent = {"launcher", "options", *_CHOSEN_BY_ALGORITHM}.difference(algorithm.takes)
        numbers = {
            "critic-prompt" if name == "prompt" else name.replace("_", "-"): getattr(settings, name)
            for name in settings.__struct_fields__
            if name not in unsent
        }
        options = {} if settings.options is UNSET else settings.options
        own = {name.replace("_", "-"): value for name, value in options.items()}
        recipe = self._recipe
        shared = {
            "agent-prompt": recipe.agent.prompt,
            "turn-limit": recipe.rollout.turn_limit,
            "seed": recipe.seed,
        }
        words = {**given, **numbers, **own, **shared}
        arguments = ("train", algorithm.name, *_options(words), "-o", str(output))
        return Stage(f"train-{algorithm.name}", arguments, _inputs(words), output, settings.launcher)


def _option(name: str) -> str:
    """Both kinds of pairs are given as `--pairs`."""
    return "pairs" if name == "turn_pairs" else name


def _dialogue_options(recipe: Recipe, tasks: str, agent: PlayerSettings, attempts: int) -> dict[str, object]:
    return {
        "tasks": tasks,
        **player_options("agent", agent),
        **player_options("collaborator", recipe.collaborator),
        "attempts": attempts,
        "concurrency": recipe.rollout.concurrency,
        "turn-limit": recipe.rollout.turn_limit,
        "guard": recipe.rollout.guard,
        "seed": recipe.seed,
    }


def player_options(role: str, settings: PlayerSettings) -> dict[str, object]:
    """One side of the dialogues as options."""
    return {
        role: settings.model,
        f"{role}-temperature": settings.temperature,
        f"{role}-max-tokens": settings.max_tokens,
        f"{role}-prompt": settings.prompt,
    }


def _options(options: dict[str, object]) -> Iterator[str]:
    """Command-line words; None and False are left out, True is a flag."""
    for name, value in options.items():
        if value is True:
            yield f"--{name}"
        elif value is not None and value is not False:
            yield from (f"--{name}", str(value))


def _inputs(options: dict[str, object]) -> tuple[str, ...]:
    """What a stage reads: tasks, and the files and folders that earlier stages wrote."""
    return tuple(str(value) for name, value in options.items() if name == "tasks" or isinstance(value, Path))
