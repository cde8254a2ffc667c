"""A plan: the stages of a study, each known by what it writes, and what they measure."""

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.schedule import needs_of
from sweetrl.settings import Recipe

PARTS = ("methods", "ablations", "credit", "best_of", "sizes", "off_policy")
"""The parts of a study, in the order in which they are run."""


@dataclass(frozen=True)
class Evaluated:
    """An evaluation of a study, and what it is a point of."""

    part: str
    """One of `PARTS`, but not `credit`."""
    name: str
    """The name of the method; for `best_of`, of the critic."""
    seed: int
    folder: Path
    tasks: str
    """The source of the tasks."""
    drafts: int = 1
    """Outputs drawn for each turn, of which the critic chose one; for `best_of`."""
    learned: Path | None = None
    """The dialogues that the method was trained on."""


@dataclass(frozen=True)
class Ranked:
    """The file in which a critic ranks candidates whose true values are known."""

    critic: str
    seed: int
    path: Path


@dataclass
class Plan:
    """All that a study does."""

    stages: list[Stage] = field(default_factory=list)
    recipes: list[Recipe] = field(default_factory=list)
    """For each stage, the recipe that it would be a part of."""
    evaluated: list[Evaluated] = field(default_factory=list)
    ranked: list[Ranked] = field(default_factory=list)
    values: Path | None = None
    """The true values of the candidates that critics are measured by."""
    _outputs: set[Path] = field(default_factory=set)

    def has(self, output: Path) -> bool:
        """Whether a stage writes it."""
        return output in self._outputs

    def of(self, parts: Container[str]) -> "Plan":
        """The plan of these parts alone, with all that they need."""
        evaluated = [each for each in self.evaluated if each.part in parts]
        ranked = self.ranked if "credit" in parts else []
        wanted = {each.folder for each in evaluated} | {each.path for each in ranked}
        values = self.values if ranked else None
        kept = with_needs(self.stages, wanted if values is None else wanted | {values})
        return self._only(kept, evaluated, ranked, values)

    def finished(self, is_done: Callable[[Stage], bool]) -> "Plan":
        """The plan as if there had been nothing but the stages that are done."""
        kept = [number for number, stage in enumerate(self.stages) if is_done(stage)]
        outputs = {path for number in kept for path in self.stages[number].writes}
        evaluated = [each for each in self.evaluated if each.folder in outputs]
        values = self.values if self.values in outputs else None
        ranked = [] if values is None else [each for each in self.ranked if each.path in outputs]
        return self._only(kept, evaluated, ranked, values)

    def _only(
        self, kept: list[int], evaluated: list[Evaluated], ranked: list[Ranked], values: Path | None
    ) -> "Plan":
        stages = [self.stages[number] for number in kept]
        recipes = [self.recipes[number] for number in kept]
        outputs = {path for stage in stages for path in stage.writes}
        return Plan(stages, recipes, evaluated, ranked, values, outputs)

    def add(self, stage: Stage, recipe: Recipe) -> None:
        """One more stage, unless its output is planned."""
        if stage.output in self._outputs:
            return
        self._outputs.update(stage.writes)
        name = stage.output.relative_to(recipe.output).with_suffix("")
        self.stages.append(replace(stage, name=str(name)))
        # Estimates count the tasks: the dialogues are not there yet.
        self.recipes.append(msgspec.structs.replace(recipe, episodes=None))


def with_needs(planned: list[Stage], outputs: set[Path]) -> list[int]:
    """The stages that write the outputs and, for each, all that it needs."""
    needs = needs_of(planned)
    found = [number for number, stage in enumerate(planned) if stage.output in outputs]
    kept: set[int] = set()
    while found:
        number = found.pop()
        if number not in kept:
            kept.add(number)
            found.extend(needs[number])
    return sorted(kept)
