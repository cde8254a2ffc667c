"""Verdicts of scorers, and the metrics of a run."""

from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

from sweetrl.types.dialogues import Failure
from sweetrl.types.tasks import Count, NonEmpty


class Outcome(StrEnum):
    """The result of one hidden test."""

    PASSED = "passed"
    WRONG = "wrong"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    UNUSABLE = "unusable"


class Check(Struct, frozen=True):
    """The result of one hidden test."""

    name: str
    outcome: Outcome
    detail: str = ""


class Screenshots(Struct, frozen=True):
    """The pictures that a frontend verdict rests on, by content hash: files in `screenshots` beside the verdicts."""

    reference: str
    answer: str | None = None
    """None where the answer has no page, or one that cannot be shown."""


class Verdict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scorer's judgement on one episode or answer."""

    schema: Literal["verdict/1"] = "verdict/1"
    task_id: NonEmpty
    episode_id: NonEmpty
    scorer: str
    """Name and version of the scorer, for example `backend-module/2`."""
    answer_digest: str
    """Short hash of what was judged, so that a resumed run notices a changed answer."""
    reward: float | None
    """None means unscored (see `failure`), which is not zero."""
    success: bool
    checks: tuple[Check, ...] = ()
    screenshots: Screenshots | None = None
    """None for backend tasks, and where none were kept."""
    failure: Failure | None = None


class Metric(Struct, frozen=True):
    """A number with its 95 % interval."""

    name: str
    value: float | None
    """None where it rests on nothing, as are the ends of its interval."""
    low: float | None
    high: float | None
    count: int
    """The number of scored items behind it."""
    unscored: int = 0


class RunMetrics(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The metrics of a run, and what they rest on."""

    schema: Literal["metrics/1"] = "metrics/1"
    tasks: Count
    """Tasks with a whole dialogue."""
    dialogues: Count
    """Complete dialogues: answered, at the turn limit, or broken off by the agent."""
    failed: Count
    """Dialogues that broke down through no fault of the agent."""
    unscored: Count
    """Complete dialogues without a reward."""
    broke_off: Count = 0
    """Complete dialogues that the agent could not finish, because of its own words."""
    unanswered: Count = 0
    """Messages that got a fixed sentence instead of a reply, because of what the agent wrote."""
    metrics: dict[str, Metric]
    """Metrics by name: success, success_failures_as_zero, reward, turns and, where hidden facts are known, coverage,
    repeats and premature."""
    fairness: tuple[Metric, ...] = ()
    """Leaks and other faults of the collaborator."""
    run: dict[str, Any] = {}
    """The origin of the metrics: the configurations of the run cards, and versions."""
