"""The fields of a study: several methods and seeds on shared data, and the tables and figures made of them.

A method or critic says only what is its own: `inherited` fills in the rest from the shared sections.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from sweetrl.errors import suggestion
from sweetrl.settings.recipes import EstimateSettings, ExecutionSettings, RankedDrawSettings
from sweetrl.settings.schema import Name, Positive, Section
from sweetrl.settings.stages import (
    AgentSettings,
    CollaboratorSettings,
    PairSettings,
    Replays,
    RolloutSettings,
    ScoringSettings,
    TurnPairSettings,
)
from sweetrl.settings.training import CriticNumbers, TrainNumbers

SEED = "{seed}"
"""In a source of tasks: the seed of the run, or of the study where all runs share the tasks."""
FOLDER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
"""Methods and critics are folders."""

Seed = Annotated[int, Meta(ge=0, lt=10**15)]


class StudyTasks(Section, frozen=True, kw_only=True):
    """Sources of tasks; `{seed}` in a source stands for a seed."""

    train: Name
    """Training tasks; with a `{seed}`, each seed has its own."""
    validation: Name | None = None
    """To choose settings on: `evaluation.on` is then `validation`."""
    test: Name
    """Test tasks, the same for all seeds."""


class StudyEvaluation(Section, frozen=True, kw_only=True):
    """How every method is evaluated."""

    on: Literal["test", "validation"] = "test"
    attempts: Positive = 1


class StudyCritic(CriticNumbers, frozen=True, kw_only=True):
    """A critic: what differs from the section `critic`."""

    label: str = ""
    """In tables; the name if empty."""
    use: Name | None = None
    """A critic as `sweetrl rank` takes it, which is not trained; all numbers are ignored then."""
    replays: Replays | None = None
    """Makes it an oracle instead of a critic: the values of candidates, estimated by this many replays of each."""
    turns: Positive | None = None
    """For an oracle: how many turns of the dialogues get values and are learned from."""

    @property
    def trained(self) -> bool:
        """Whether there is something to train."""
        return self.use is None and self.replays is None


class StudyMethod(Section, frozen=True, kw_only=True):
    """A way to make a policy: what differs from the sections `policy` and `turn_pairs`."""

    label: str = ""
    """In tables; the name if empty."""
    algorithm: Name
    """As `sweetrl train` calls it; `none` evaluates the agent as it is."""
    critic: Name | None = None
    """The critic that ranks turns, if the algorithm learns from ranked turns: the name of one of `critics`."""
    init_from: Name | None = None
    """The method whose policy the training starts from, and is compared with; the agent itself if not given."""
    policy: TrainNumbers = TrainNumbers()
    turn_pairs: TurnPairSettings = TurnPairSettings()
    single_turn: bool = False
    """Evaluate it without a dialogue: the first message is the answer."""
    table: Literal["main", "ablations"] = "main"
    """Which table of the results it is in."""
    against: Name | None = None
    """For an ablation: the method that it differs from; the last of the main table if not given."""


class PartSettings(Section, frozen=True, kw_only=True):
    """A part of a study beside its methods."""

    seeds: Positive | None = None
    """Only the first seeds of the study, this many; all if not given."""


class BestOfSettings(PartSettings, frozen=True, kw_only=True):
    """Success of the untrained agent when a critic chooses each turn out of N drafts."""

    n: tuple[Positive, ...]
    critics: tuple[Name, ...]
    tasks: Name | None = None
    """In place of the tasks that methods are evaluated on."""


class SizeSettings(PartSettings, frozen=True, kw_only=True):
    """Success against the number of dialogues to learn from."""

    tasks: tuple[Name, ...]
    """Sources of parts of the training tasks, from few to many; all of them are the last point."""
    methods: tuple[Name, ...]


class OffPolicySettings(PartSettings, frozen=True, kw_only=True):
    """Another model that learns from the dialogues of the agent, with critics that start from itself."""

    model: Name
    """As `agent.model`."""
    methods: tuple[Name, ...]


class CreditSettings(PartSettings, frozen=True, kw_only=True):
    """Settings for measuring how well critics agree with the true values of candidates."""

    tasks: Name
    """Tasks of dialogues that no critic was trained on."""
    turns: Positive
    """Drawn from those dialogues."""
    replays: Replays = 16
    """Dialogues played on from each candidate."""
    critics: tuple[Name, ...]


class Study(ExecutionSettings, frozen=True, kw_only=True):
    """Several methods and seeds on shared data."""

    output: Name
    """The folder that everything is written in."""
    title: str = "Study"
    caution: str = ""
    """A warning about how its results must not be read: shown first, on the screen and in the report."""
    page: Name | None = None
    """The file for the page with the results; `results.md` of the output if not given."""
    domain: Name = "backend"
    """The domain of the tasks."""
    seed: Seed = 0
    """Seed of the first run; the others count up from it."""
    seeds: Positive = 1
    """Number of runs."""
    tasks: StudyTasks
    agent: AgentSettings
    collaborator: CollaboratorSettings
    rollout: RolloutSettings = RolloutSettings()
    scoring: ScoringSettings = ScoringSettings()
    pairs: PairSettings = PairSettings()
    critic: CriticNumbers = CriticNumbers()
    """Settings that all critics share."""
    candidates: RankedDrawSettings = RankedDrawSettings()
    turn_pairs: TurnPairSettings = TurnPairSettings()
    """Settings that all methods share."""
    policy: TrainNumbers = TrainNumbers()
    """Settings that all methods share."""
    evaluation: StudyEvaluation = StudyEvaluation()
    critics: dict[str, StudyCritic] = msgspec.field(default_factory=dict)
    methods: dict[str, StudyMethod]
    shares: tuple[tuple[Name, Name, Name], ...] = ()
    """Methods a, b, c: which share of the gain from a to c does b get?"""
    best_of: BestOfSettings | None = None
    sizes: SizeSettings | None = None
    off_policy: OffPolicySettings | None = None
    credit: CreditSettings | None = None
    estimate: EstimateSettings = EstimateSettings()

    def __post_init__(self) -> None:
        found = list(self._faults())
        if found:
            raise ValueError("; ".join(found))

    @property
    def run_seeds(self) -> range:
        """The seed of each run."""
        return range(self.seed, self.seed + self.seeds)

    def seeds_of(self, part: str) -> int:
        """The number of runs of a part, such as `best_of`."""
        settings = getattr(self, part, None)
        most = settings.seeds if isinstance(settings, PartSettings) else None
        return self.seeds if most is None else min(most, self.seeds)

    def evaluation_tasks(self) -> str:
        """The source of the tasks that all methods are evaluated on."""
        source = self.tasks.test if self.evaluation.on == "test" else self.tasks.validation
        assert source is not None
        return self.shared(source)

    def shared(self, source: str) -> str:
        """A source of tasks that all runs share."""
        return source.replace(SEED, str(self.seed))

    def _faults(self) -> Iterator[str]:
        if not self.methods:
            yield "methods: there are none"
        for names, where in ((self.methods, "methods"), (self.critics, "critics")):
            for name in names:
                if not FOLDER_NAME.fullmatch(name):
                    yield f"{where}.{name}: a name is a folder: lower-case letters, digits, _ and -"
        for name, method in self.methods.items():
            yield from self._faults_of(name, method)
        if self.evaluation.on == "validation" and self.tasks.validation is None:
            yield "evaluation.on: there are no tasks.validation"
        if not self.agent.model.startswith("hf:") and ":" in self.agent.model:
            yield f"agent.model: a study trains it, so it is hf:PATH or one that ships, not {self.agent.model}"
        yield from self._faults_of_parts()

    def _faults_of(self, name: str, method: StudyMethod) -> Iterator[str]:
        if method.critic is not None:
            yield from _unknown(f"methods.{name}.critic", [method.critic], self.critics)
        if method.against is not None:
            others = {other: each for other, each in self.methods.items() if other != name}
            yield from _unknown(f"methods.{name}.against", [method.against], others)
        if method.init_from is not None:
            yield from self._faults_of_start(name, method.init_from)

    def _faults_of_start(self, name: str, start: str) -> Iterator[str]:
        names = list(self.methods)
        earlier = {other: self.methods[other] for other in names[: names.index(name)]}
        trained = {other: method for other, method in earlier.items() if method.algorithm != "none"}
        if start in self.methods and start not in trained:
            yield f"methods.{name}.init_from: '{start}' is not a method before it that trains a policy"
        else:
            yield from _unknown(f"methods.{name}.init_from", [start], trained)
        if self.methods[name].algorithm == "none":
            yield f"methods.{name}: the algorithm 'none' has no use for init_from"

    def _faults_of_parts(self) -> Iterator[str]:
        yield from _unknown("shares", [name for names in self.shares for name in names], self.methods)
        # An oracle knows the candidates of the training dialogues alone.
        critics = {name: critic for name, critic in self.critics.items() if critic.replays is None}
        if self.best_of is not None:
            yield from _unknown("best_of.critics", self.best_of.critics, critics)
        if self.sizes is not None:
            trained = {name: method for name, method in self.methods.items() if method.algorithm != "none"}
            yield from _unknown("sizes.methods", self.sizes.methods, trained)
        if self.off_policy is not None:
            yield from _unknown("off_policy.methods", self.off_policy.methods, self.methods)
        if self.credit is not None:
            yield from _unknown("credit.critics", self.credit.critics, critics)


def _unknown(where: str, names: Iterable[str], known: Mapping[str, Any]) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{where}: there is no '{name}' to take; {suggestion(name, known)}"


def is_study(content: Mapping[str, Any]) -> bool:
    """Whether a TOML file is meant as a study; `method` is a common mistake for `methods`."""
    return any(isinstance(content.get(key), dict) for key in ("methods", "method"))


def inherited(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a study with every method and critic complete."""
    critics, methods = content.get("critics", {}), content["methods"]
    return {
        **content,
        "critics": {name: {**content.get("critic", {}), **own} for name, own in critics.items()},
        "methods": {name: _whole_method(content, own) for name, own in methods.items()},
    }


def _whole_method(content: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    shared = {key: {**content.get(key, {}), **own.get(key, {})} for key in ("policy", "turn_pairs")}
    return {**own, **shared}
