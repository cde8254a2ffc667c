"""The stages of a recipe: which command makes which file from which others."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sweetrl.config import PlayerSettings, Recipe, TrainSettings

NAMES = (
    "rollout",
    "score",
    "pairs",
    "train-critic",
    "candidates",
    "rank",
    "turn-pairs",
    "train-policy",
    "train-dpo",
    "train-rft",
    "evaluation-rollout",
    "evaluation-score",
)
"""All stages that a recipe can have."""

_UNSENT = {"rft": ("launcher", "beta", "nll")}
"""Numbers that a method does not take: imitation has no preferences."""


@dataclass(frozen=True)
class Stage:
    """One command of a recipe."""

    name: str
    arguments: tuple[str, ...]
    """Of the command `sweetrl`."""
    inputs: tuple[str, ...]
    output: Path
    launcher: tuple[str, ...] = ()
    """Words in front of `-m sweetrl`; empty for this Python."""


def stages(recipe: Recipe) -> list[Stage]:
    """What the recipe asks for, in order."""
    return list(_Road(recipe).stages())


class _Road:
    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._folder = Path(recipe.output)
        stored = recipe.episodes
        self._episodes = Path(stored) if stored is not None else self._folder / "episodes.jsonl"

    def stages(self) -> Iterator[Stage]:
        if self._recipe.method != "none":
            yield from self._data()
        if self._recipe.method == "sweet":
            yield from self._credit()
        if self._recipe.policy is not None and self._recipe.method != "none":
            yield self._policy(self._recipe.policy)
        if self._recipe.tasks.test is not None:
            yield from self._evaluation(self._recipe.tasks.test)

    def _data(self) -> Iterator[Stage]:
        recipe = self._recipe
        if recipe.episodes is None:
            yield self._rollout(
                "rollout", recipe.tasks.train, recipe.agent, self._folder, recipe.rollout.attempts
            )
        yield self._score("score", recipe.tasks.train, self._episodes, self._folder / "verdicts.jsonl")
        if self._needs_pairs:
            yield self._stage(
                "pairs",
                {
                    "episodes": self._episodes,
                    "verdicts": self._folder / "verdicts.jsonl",
                    "tasks": recipe.tasks.train,
                    "rule": recipe.pairs.rule,
                    "margin": recipe.pairs.margin,
                },
                self._folder / "pairs.jsonl",
            )

    @property
    def _needs_pairs(self) -> bool:
        """Imitation and value functions learn from what each dialogue earned."""
        return self._recipe.method != "rft" and not self._trains_value

    @property
    def _trains_value(self) -> bool:
        recipe = self._recipe
        return recipe.method == "sweet" and recipe.critic is not None and recipe.critic.kind == "value"

    def _credit(self) -> Iterator[Stage]:
        """From pairs of dialogues to pairs of turns."""
        recipe, folder = self._recipe, self._folder
        if recipe.critic is not None:
            learnt = "verdicts" if self._trains_value else "pairs"
            given = {
                "tasks": recipe.tasks.train,
                "episodes": self._episodes,
                learnt: folder / f"{learnt}.jsonl",
            }
            yield self._train("critic", recipe.critic, given)
        yield self._candidates()
        yield self._stage(
            "rank",
            {
                "critic": recipe.candidates.critic or folder / "critic",
                "tasks": recipe.tasks.train,
                "episodes": self._episodes,
                "candidates": folder / "candidates.jsonl",
                "judge-prompt": recipe.candidates.judge_prompt,
                "judge-rounds": recipe.candidates.judge_rounds,
                "concurrency": recipe.candidates.rank_concurrency,
            },
            folder / "ranked.jsonl",
        )
        yield self._stage(
            "turn-pairs",
            {
                "ranked": folder / "ranked.jsonl",
                "episodes": self._episodes,
                "tasks": recipe.tasks.train,
                "rule": recipe.turn_pairs.rule,
                "pairs": recipe.turn_pairs.pairs,
                "margin": recipe.turn_pairs.margin,
                "seed": recipe.seed,
            },
            folder / "turn_pairs.jsonl",
        )

    def _candidates(self) -> Stage:
        recipe = self._recipe
        return self._stage(
            "candidates",
            {
                "episodes": self._episodes,
                "tasks": recipe.tasks.train,
                "kind": recipe.kind,
                "turn-limit": recipe.rollout.turn_limit,
                "n": recipe.candidates.n,
                "seed": recipe.seed,
                "concurrency": recipe.candidates.concurrency,
                **_player("agent", recipe.agent),
            },
            self._folder / "candidates.jsonl",
        )

    def _policy(self, settings: TrainSettings) -> Stage:
        recipe, folder = self._recipe, self._folder
        if recipe.method == "sweet":
            return self._train(
                "policy", settings, {"pairs": folder / "turn_pairs.jsonl", "kind": recipe.kind}
            )
        given: dict[str, object] = {
            "tasks": recipe.tasks.train,
            "episodes": self._episodes,
            "kind": recipe.kind,
        }
        if recipe.method == "dpo":
            return self._train("dpo", settings, given | {"pairs": folder / "pairs.jsonl"})
        return self._train("rft", settings, given | {"verdicts": folder / "verdicts.jsonl"})

    def _evaluation(self, tasks: str) -> Iterator[Stage]:
        recipe, folder = self._recipe, self._folder / "evaluation"
        agent = recipe.agent
        if recipe.method != "none":
            model = recipe.evaluation.agent or f"hf:{self._folder / 'policy'}"
            agent = PlayerSettings(
                model=model, temperature=agent.temperature, max_tokens=agent.max_tokens, prompt=agent.prompt
            )
        yield self._rollout("evaluation-rollout", tasks, agent, folder, recipe.evaluation.attempts)
        yield self._score("evaluation-score", tasks, folder / "episodes.jsonl", folder / "verdicts.jsonl")

    def _rollout(self, name: str, tasks: str, agent: PlayerSettings, folder: Path, attempts: int) -> Stage:
        settings = self._recipe.rollout
        options = {
            "tasks": tasks,
            **_player("agent", agent),
            **_player("collaborator", self._recipe.collaborator),
            "attempts": attempts,
            "concurrency": settings.concurrency,
            "turn-limit": settings.turn_limit,
            "guard": settings.guard,
            "seed": self._recipe.seed,
        }
        arguments = ("rollout", *_options(options), "-o", str(folder))
        return Stage(name, arguments, _inputs(options), folder / "episodes.jsonl")

    def _score(self, name: str, tasks: str, episodes: Path, output: Path) -> Stage:
        return self._stage("score", {"tasks": tasks, "episodes": episodes}, output, name=name)

    def _train(self, method: str, settings: TrainSettings, given: dict[str, object]) -> Stage:
        output = self._folder / ("critic" if method == "critic" else "policy")
        numbers = {
            name.replace("_", "-"): getattr(settings, name)
            for name in settings.__struct_fields__
            if name not in _UNSENT.get(method, ("launcher",))
        }
        recipe = self._recipe
        shared = {
            "agent-prompt": recipe.agent.prompt,
            "turn-limit": recipe.rollout.turn_limit,
            "seed": recipe.seed,
        }
        options = {**given, **numbers, **shared}
        arguments = ("train", method, *_options(options), "-o", str(output))
        return Stage(f"train-{method}", arguments, _inputs(options), output, settings.launcher)

    def _stage(
        self, command: str, options: dict[str, object], output: Path, *, name: str | None = None
    ) -> Stage:
        arguments = (command, *_options(options), "-o", str(output))
        return Stage(name or command, arguments, _inputs(options), output)


def _player(role: str, settings: PlayerSettings) -> dict[str, object]:
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
