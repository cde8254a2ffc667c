"""Estimates of the cost of each stage of a recipe, before it runs.

Tokens follow from the recipe's assumptions about a dialogue; floating-point operations from the usual count:
2 for each parameter and token read, 6 for each token trained on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sweetrl.domains.sources import count_tasks
from sweetrl.errors import SweetError
from sweetrl.experiments.hardware import GPUS, Demand, TrainingPlan
from sweetrl.experiments.pipeline import Stage
from sweetrl.learning.algorithm import Algorithm
from sweetrl.learning.algorithms import algorithm_named, default_settings
from sweetrl.settings import Recipe
from sweetrl.settings.words import option_value

NOTHING = Demand()


@dataclass(frozen=True)
class Cost:
    """An estimate; None where there is none."""

    requests: int | None = None
    tokens: int | None = None
    """Read and written, or trained on."""
    gpu_hours: float | None = None
    demand: Demand = NOTHING

    @property
    def numbers(self) -> dict[str, float | None]:
        """All estimates by name."""
        demand = {"gpu_gib": self.demand.gpu, "host_gib": self.demand.host, "disk_gib": self.demand.disk}
        return {"requests": self.requests, "tokens": self.tokens, "gpu_hours": self.gpu_hours, **demand}


def cost(recipe: Recipe, stage: Stage) -> Cost:
    """The cost of a stage of a recipe."""
    return _Counter(recipe).cost(stage)


def dialogues_to_learn_from(recipe: Recipe) -> int | None:
    """The number of dialogues on the training tasks; None if it is unknown."""
    return _Counter(recipe).dialogues()


class _Counter:
    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._assumed = recipe.estimate
        self._by_command: dict[str, Callable[[Stage], Cost]] = {
            "rollout": self._rollout,
            "evaluate": self._evaluate,
            "candidates": self._candidates,
            "rank": self._rank,
            "train": self._train,
            "values": self._values,
        }

    def cost(self, stage: Stage) -> Cost:
        """The cost of a stage; stages that need no model cost next to nothing."""
        count = self._by_command.get(stage.arguments[0])
        return Cost(requests=0, tokens=0) if count is None else count(stage)

    def _rollout(self, _: Stage) -> Cost:
        return self._held(self.dialogues())

    def _evaluate(self, stage: Stage) -> Cost:
        held, drafts = self._held(self._test_dialogues()), _number(stage, "best-of") or 1
        if held.tokens is None or held.requests is None:
            return held
        # The other drafts are written by the agent, and all of them read by the critic.
        more = held.requests / 2 * (2 * drafts - 1) * self._assumed.output_tokens
        return Cost(requests=held.requests, tokens=held.tokens + (round(more) if drafts > 1 else 0))

    def _values(self, stage: Stage) -> Cost:
        turns, replays = _number(stage, "turns"), _number(stage, "replays")
        if turns is None or replays is None:
            return Cost()
        # A replay begins somewhere in a dialogue: half of it is left, on average.
        return self._held(round(turns * self._recipe.candidates.n * replays / 2))

    def _held(self, dialogues: int | None) -> Cost:
        if dialogues is None:
            return Cost()
        turns = self._assumed.turns
        said = self._assumed.output_tokens + self._assumed.reply_tokens
        # Both sides read the dialogue at every turn.
        tokens = dialogues * turns * (2 * self._history() + said)
        return Cost(requests=round(2 * dialogues * turns), tokens=round(tokens))

    def _candidates(self, _: Stage) -> Cost:
        turns = self._turns()
        if turns is None:
            return Cost()
        drawn = self._recipe.candidates.n * self._assumed.output_tokens
        return Cost(requests=round(turns), tokens=round(turns * (self._history() + drawn)))

    def _rank(self, _: Stage) -> Cost:
        turns = self._turns()
        if turns is None:
            return Cost()
        # The critic and its reference each read the history once and then every candidate.
        read = self._history() + self._recipe.candidates.n * self._assumed.output_tokens
        tokens = 2 * turns * read
        return Cost(requests=0, tokens=round(tokens), gpu_hours=self._hours(2 * tokens))

    def _train(self, stage: Stage) -> Cost:
        algorithm = algorithm_named(stage.arguments[1])
        settings = self._recipe.critic if algorithm.privileged else self._recipe.policy
        tokens = self._training_tokens(algorithm)
        if tokens is None or settings is None:
            return Cost()
        defaults = default_settings(algorithm.name)
        epochs: float = settings.epochs or defaults.epochs
        if settings.max_steps is not None:
            examples = settings.max_steps * (settings.batch_size or defaults.batch_size)
            epochs = min(epochs, examples / self._examples(algorithm))
        # The reference model reads everything once.
        operations = (6 + 2 * algorithm.extra_forwards) * tokens * epochs
        operations += 2 * tokens if algorithm.compares(defaults) else 0
        return Cost(
            requests=0,
            tokens=round(tokens * epochs),
            gpu_hours=self._hours(operations),
            demand=TrainingPlan(self._recipe, settings, algorithm.name).demand(),
        )

    def _examples(self, algorithm: Algorithm) -> float:
        """Examples of one epoch, at most."""
        if "turn_pairs" not in algorithm.reads:
            return self.dialogues() or 1
        return (self._turns() or 1) * self._recipe.turn_pairs.pairs * algorithm.examples_per_pair

    def _training_tokens(self, algorithm: Algorithm) -> float | None:
        """Tokens of one epoch, at most: every dialogue is in a pair, every turn has all its pairs."""
        assumed, dialogues, turns = self._assumed, self.dialogues(), self._turns()
        if dialogues is None or turns is None:
            return None
        if "turn_pairs" in algorithm.reads:
            return turns * self._recipe.turn_pairs.pairs * 2 * (self._history() + assumed.output_tokens)
        whole = assumed.prompt_tokens + assumed.turns * (assumed.output_tokens + assumed.reply_tokens)
        return dialogues * whole * (2 if "pairs" in algorithm.reads else 1)

    def _history(self) -> float:
        """Tokens that are there when the agent speaks, on average."""
        assumed = self._assumed
        return assumed.prompt_tokens + (assumed.turns - 1) / 2 * (
            assumed.output_tokens + assumed.reply_tokens
        )

    def _hours(self, operations_per_parameter: float) -> float | None:
        parameters, gpu = self._assumed.parameters, GPUS.get(self._assumed.gpu or "")
        speed = self._assumed.gpu_tflops or (None if gpu is None else gpu.tflops)
        if parameters is None or speed is None:
            return None
        return operations_per_parameter * parameters / (speed * 1e12) / 3600

    def _turns(self) -> float | None:
        """Turns that candidates are drawn for."""
        dialogues, held = self.dialogues(), self._recipe.rollout.attempts
        if dialogues is None:
            return None
        share = min(self._recipe.candidates.attempts or held, held) / held
        return dialogues * share * (self._recipe.candidates.fraction or 1) * self._assumed.turns

    def dialogues(self) -> int | None:
        """Dialogues on the training tasks."""
        if self._recipe.episodes is not None:
            return _lines(self._recipe.episodes)
        tasks = _tasks(self._recipe.tasks.train)
        return None if tasks is None else tasks * self._recipe.rollout.attempts

    def _test_dialogues(self) -> int | None:
        tasks = None if self._recipe.tasks.test is None else _tasks(self._recipe.tasks.test)
        return None if tasks is None else tasks * self._recipe.evaluation.attempts


def _number(stage: Stage, option: str) -> int | None:
    """The value of an option of the stage's command."""
    value = option_value(stage.arguments, f"--{option}")
    return None if value is None else int(value)


@cache
def _tasks(source: str) -> int | None:
    """How many tasks a source has; None if it is not there yet."""
    try:
        return count_tasks(source)
    except SweetError:
        return None


def _lines(path: str) -> int | None:
    try:
        with Path(path).open("rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return None
