"""What built-in benchmarks know about asking, for the figures of runs on them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweetrl.evaluation.metrics import FactTracker
    from sweetrl.types import Task


def fact_tracker(tasks: "Iterable[Task]") -> "FactTracker | None":
    """The tracker of the benchmark that all tasks are of; None where hidden facts are not known."""
    from sweetrl.evaluation.metrics import FactTracker
    from sweetrl.tasks import mini_backend

    if not all(task.id.startswith(f"{mini_backend.NAME}-") for task in tasks):
        return None
    return FactTracker(facts=mini_backend.hidden_facts, asked=mini_backend.asked_fact)
