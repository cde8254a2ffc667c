"""The stages of a study: the pipelines of its methods, with what they share done once.

    OUTPUT/seed-0/   episodes, verdicts, pairs, candidates    of that seed
                     critics/NAME  ranked/CRITIC  turn_pairs/METHOD  policies/METHOD  evaluations/METHOD
                     values/CRITIC of an oracle
                     best_of/CRITIC-N    sizes/1/...    off_policy/...    credit/CRITIC
    OUTPUT/credit/   dialogues, candidates and their true values, for all seeds

A stage is known by what it writes: the second method that needs the same file finds it planned. What matters most
comes first: a study that is interrupted has its main table for all seeds before anything else.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from sweetrl.critics import type_of
from sweetrl.errors import ConfigError, UsageError
from sweetrl.experiments.pipeline import (
    UNTRAINED,
    VALUES,
    Places,
    Stage,
    command_stage,
    evaluation_stage,
    needs_critic,
    stages,
)
from sweetrl.experiments.plan import PARTS, Evaluated, Plan, Ranked
from sweetrl.settings import (
    AgentSettings,
    CandidateSettings,
    CriticSettings,
    EvaluationSettings,
    RankSettings,
    Recipe,
    Study,
    StudyCritic,
    TaskFiles,
    TrainSettings,
    ValueSettings,
)

CRITIC_STAGES = ("rollout", "score", "pairs", "train-critic")
"""Stages of the pipeline that a critic needs."""


def plan(study: Study) -> Plan:
    """What the study asks for, in order."""
    if found := list(_faults(study)):
        raise ConfigError("; ".join(found))
    planned = Plan()
    seeds = [_Seed(study, seed, planned) for seed in study.run_seeds]
    for part in PARTS:
        for seed in seeds[: study.seeds_of(part)]:
            seed.plan(part)
    return planned


def parts_of(study: Study) -> list[str]:
    """The parts that the study has."""
    tables = {method.table for method in study.methods.values()}
    held = {
        "methods": "main" in tables,
        "ablations": "ablations" in tables,
        "credit": study.credit is not None,
        "best_of": study.best_of is not None,
        "sizes": study.sizes is not None,
        "off_policy": study.off_policy is not None,
    }
    return [part for part in PARTS if held[part]]


def _faults(study: Study) -> Iterator[str]:
    """Methods whose algorithm is unknown, lacks a critic or has no use for one."""
    for name, method in study.methods.items():
        try:
            needed = needs_critic(method.algorithm)
        except UsageError as error:
            yield f"methods.{name}.algorithm: {error}"
            continue
        if needed != (method.critic is not None):
            needs = "needs a critic" if needed else "has no use for a critic"
            yield f"methods.{name}: the algorithm '{method.algorithm}' {needs}"


@dataclass(frozen=True)
class _Branch:
    """Dialogues to learn from, and an agent that does."""

    part: str
    data: Path
    """The folder of the dialogues and their pairs."""
    folder: Path
    """The folder of everything that depends on the agent, the critics that start from its model included."""
    tasks: str
    agent: AgentSettings
    held: bool = False
    """Another branch holds the dialogues."""

    def places(self, method: str, critic: str) -> Places:
        """Where a method has its files."""
        return Places(
            episodes=self.data / "episodes.jsonl",
            verdicts=self.data / "verdicts.jsonl",
            pairs=self.data / "pairs.jsonl",
            critic=self.folder / "critics" / critic,
            candidates=self.folder / "candidates.jsonl",
            ranked=self.folder / "ranked" / f"{critic}.jsonl",
            turn_pairs=self.folder / "turn_pairs" / f"{method}.jsonl",
            policy=self.folder / "policies" / method,
            evaluation=self.folder / "evaluations" / method,
        )


class _Seed:
    """The stages of one seed."""

    def __init__(self, study: Study, seed: int, planned: Plan) -> None:
        self._study = study
        self._seed = seed
        self._planned = planned
        folder = Path(study.output) / f"seed-{seed}"
        tasks = study.tasks.train.replace("{seed}", str(seed))
        self._own = _Branch("methods", folder, folder, tasks, study.agent)
        self._parts: dict[str, Callable[[], None]] = {
            "methods": partial(self._table, "main"),
            "ablations": partial(self._table, "ablations"),
            "credit": self._credit,
            "best_of": self._best_of,
            "sizes": self._sizes,
            "off_policy": self._off_policy,
        }

    def plan(self, part: str) -> None:
        """Add the stages of a part that are not planned yet."""
        self._parts[part]()

    # -------- methods

    def _table(self, table: str) -> None:
        branch = self._own if table == "main" else replace(self._own, part=table)
        for name, method in self._study.methods.items():
            if method.table == table:
                self._method(branch, name)

    def _method(self, branch: _Branch, name: str) -> None:
        """One method from its dialogues to its evaluation."""
        recipe, places = self._learn(branch, name)
        *_, evaluation = stages(recipe, places)
        self._planned.add(evaluation, recipe)
        self._evaluated(branch.part, name, places)

    def _evaluated(self, part: str, name: str, places: Places) -> None:
        trained = self._study.methods[name].algorithm != UNTRAINED
        self._planned.evaluated.append(
            Evaluated(
                part,
                name,
                self._seed,
                places.evaluation,
                self._study.evaluation_tasks(),
                learned=places.episodes if trained else None,
            )
        )

    def _learn(self, branch: _Branch, name: str) -> tuple[Recipe, Places]:
        """Add the stages of a method up to its policy, after those of the method that it starts from."""
        method = self._study.methods[name]
        critic = method.critic or ""
        if method.init_from is not None:
            self._learn(branch, method.init_from)
        recipe, places = self._recipe(branch, name, critic), branch.places(name, critic)
        for stage in stages(recipe, places):
            if stage.name == "rank" and self._study.critics[critic].replays is not None:
                values = self._oracle(recipe, places, self._study.critics[critic])
                self._planned.add(values, recipe)
                self._planned.add(_reading(stage, values.output), recipe)
            elif stage.output == places.policy and method.init_from is not None:
                self._planned.add(_reading(stage, branch.places(method.init_from, "").policy), recipe)
            elif stage.name != "evaluate":
                self._planned.add(stage, recipe)
        return recipe, places

    def _recipe(self, branch: _Branch, method: str, critic: str) -> Recipe:
        study, settings = self._study, self._study.methods[method]
        chosen = study.critics.get(critic)
        seed_model = branch.agent.model.removeprefix("hf:")
        model = seed_model
        if settings.init_from is not None:
            model = str(branch.places(settings.init_from, "").policy)
        return Recipe(
            output=study.output,
            algorithm=settings.algorithm,
            domain=study.domain,
            seed=self._seed,
            tasks=TaskFiles(train=branch.tasks, test=study.evaluation_tasks()),
            episodes=str(branch.data / "episodes.jsonl") if branch.held else None,
            agent=branch.agent,
            collaborator=study.collaborator,
            rollout=study.rollout,
            scoring=study.scoring,
            pairs=study.pairs,
            critic=_trained(chosen, seed_model) if chosen is not None and chosen.trained else None,
            candidates=_candidates(study, chosen, _values_of(branch.places(method, critic).ranked)),
            turn_pairs=settings.turn_pairs,
            policy=TrainSettings(**msgspec.structs.asdict(settings.policy), model=model),
            evaluation=EvaluationSettings(
                attempts=study.evaluation.attempts, single_turn=settings.single_turn, untrained=False
            ),
            estimate=study.estimate,
        )

    # -------- critics on their own

    def _critic(self, name: str) -> Recipe:
        """The stages that a critic needs; the recipe of a method that would use it."""
        recipe = self._sweet(name)
        for stage in stages(recipe, self._own.places("", name)):
            if stage.name in CRITIC_STAGES and self._study.critics[name].trained:
                self._planned.add(stage, recipe)
        return recipe

    def _sweet(self, critic: str) -> Recipe:
        """A recipe of the paper's method, whether or not the study has it."""
        method = next(iter(self._study.methods))
        return msgspec.structs.replace(self._recipe(self._own, method, critic), algorithm="sweet")

    def _judge(self, name: str) -> tuple[dict[str, Any], tuple[Path, ...]]:
        """A critic as settings, and what must be there to use it."""
        critic, folder = self._study.critics[name], self._own.data / "critics" / name
        settings = {"critic": critic.use or str(folder), "critic_prompt": _told(critic)}
        return settings, () if critic.use else (folder,)

    def _best_of(self) -> None:
        settings = self._study.best_of
        if settings is None:
            return
        for name in settings.critics:
            recipe = self._critic(name)
            for count in settings.n:
                self._planned.evaluated.append(self._chosen(recipe, name, count))

    def _chosen(self, recipe: Recipe, critic: str, count: int) -> Evaluated:
        """The evaluation with so many drafts; one draft is the agent as it is."""
        study = self._study
        assert study.best_of is not None
        tasks = study.evaluation_tasks() if study.best_of.tasks is None else study.shared(study.best_of.tasks)
        untrained = [name for name, method in study.methods.items() if method.algorithm == UNTRAINED]
        if count == 1 and untrained and tasks == study.evaluation_tasks():
            folder = self._own.places(untrained[0], "").evaluation
        else:
            folder = self._own.folder / "best_of" / (f"{critic}-{count}" if count > 1 else "1")
        chosen, reads = self._judge(critic) if count > 1 else ({}, ())
        evaluated = msgspec.structs.replace(recipe, tasks=TaskFiles(train=self._own.tasks, test=tasks))
        stage = evaluation_stage(
            evaluated, study.agent, tasks, folder, {"best_of": count, **chosen}, reads=reads
        )
        self._planned.add(stage, evaluated)
        return Evaluated("best_of", critic, self._seed, folder, tasks, drafts=count)

    # -------- fewer dialogues, another agent

    def _sizes(self) -> None:
        settings = self._study.sizes
        if settings is None:
            return
        for number, source in enumerate(settings.tasks, start=1):
            folder = self._own.folder / "sizes" / str(number)
            tasks = source.replace("{seed}", str(self._seed))
            self._select(folder, tasks)
            for name in settings.methods:
                self._method(_Branch("sizes", folder, folder, tasks, self._study.agent, held=True), name)
        for name in settings.methods:
            self._evaluated("sizes", name, self._own.places(name, ""))

    def _select(self, folder: Path, tasks: str) -> None:
        whole = self._own.places("", "")
        files = [
            path
            for path in (whole.episodes, whole.verdicts, whole.pairs, whole.candidates)
            if self._planned.has(path)
        ]
        stage = Stage(
            "select",
            ("select", *map(str, files), "--tasks", tasks, "-o", str(folder)),
            (tasks, *map(str, files)),
            folder / "episodes.jsonl",
            also=tuple(folder / path.name for path in files if path != whole.episodes),
        )
        recipe = self._recipe(self._own, next(iter(self._study.methods)), "")
        self._planned.add(stage, recipe)

    def _off_policy(self) -> None:
        settings = self._study.off_policy
        if settings is None:
            return
        own = self._own
        agent = msgspec.structs.replace(self._study.agent, model=settings.model)
        branch = _Branch("off_policy", own.data, own.folder / "off_policy", own.tasks, agent, held=True)
        for name in settings.methods:
            self._method(branch, name)

    # -------- credit

    def _credit(self) -> None:
        """Dialogues with known values once, and what each critic of this seed thinks of them."""
        settings, study = self._study.credit, self._study
        if settings is None:
            return
        folder, tasks = Path(study.output) / "credit", study.shared(settings.tasks)
        recipe = msgspec.structs.replace(
            self._sweet(settings.critics[0]), seed=study.seed, tasks=TaskFiles(train=tasks)
        )
        places = _Branch("credit", folder, folder, tasks, study.agent).places("", "")
        held = [stage for stage in stages(recipe, places) if stage.name in ("rollout", "candidates")]
        counts = {"turns": settings.turns, "replays": settings.replays}
        for stage in (*held, self._values(recipe, places, folder / "values.jsonl", counts)):
            self._planned.add(stage, recipe)
        self._planned.values = folder / "values.jsonl"
        for name in settings.critics:
            self._rank(name, places, tasks)

    def _oracle(self, recipe: Recipe, places: Places, critic: StudyCritic) -> Stage:
        """The values of the candidates that a method learns from."""
        counts = {"turns": critic.turns, "replays": critic.replays}
        return self._values(recipe, places, _values_of(places.ranked), counts)

    def _values(self, recipe: Recipe, places: Places, output: Path, counts: dict[str, Any]) -> Stage:
        settings = ValueSettings(
            agent=recipe.agent,
            collaborator=recipe.collaborator,
            play=recipe.rollout,
            seed=recipe.seed,
            **counts,
        )
        return command_stage("values", _turns(recipe.tasks.train, places), settings, output=output)

    def _rank(self, name: str, places: Places, tasks: str) -> None:
        recipe, output = self._critic(name), self._own.folder / "credit" / f"{name}.jsonl"
        chosen, reads = self._judge(name)
        ranking = RankSettings(**chosen, concurrency=self._study.candidates.rank_concurrency)
        stage = command_stage("rank", _turns(tasks, places), ranking, output=output, reads=reads)
        self._planned.add(stage, msgspec.structs.replace(recipe, tasks=TaskFiles(train=tasks)))
        self._planned.ranked.append(Ranked(name, self._seed, output))


def _turns(tasks: str, places: Places) -> dict[str, object]:
    """The candidates of turns, and what they belong to."""
    return {"tasks": tasks, "episodes": places.episodes, "candidates": places.candidates}


def _reading(stage: Stage, path: Path) -> Stage:
    """The stage, which also waits for the path."""
    return replace(stage, inputs=(*stage.inputs, str(path)))


def _trained(critic: StudyCritic, model: str) -> CriticSettings:
    numbers = msgspec.structs.asdict(critic)
    return CriticSettings(
        **{name: value for name, value in numbers.items() if name in CriticSettings.__struct_fields__},
        model=model,
    )


def _candidates(study: Study, critic: StudyCritic | None, values: Path) -> CandidateSettings:
    drawn = msgspec.structs.asdict(study.candidates)
    if critic is None or critic.trained:
        return CandidateSettings(**drawn)
    return CandidateSettings(**drawn, critic=critic.use or f"{VALUES}{values}", critic_prompt=_told(critic))


def _values_of(ranked: Path) -> Path:
    """Where the values are that an oracle ranks by."""
    return ranked.parent.parent / "values" / ranked.name


def _told(critic: StudyCritic) -> str | None:
    """The prompt of a critic without training; the folder of a trained one has it."""
    return critic.prompt if critic.use is not None and "prompt" in type_of(critic.use).takes else None
