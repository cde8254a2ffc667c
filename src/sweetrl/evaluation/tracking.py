"""Which hidden facts there are to ask about, for benchmarks that know it."""

from collections.abc import Iterable

from sweetrl.evaluation.metrics import FactTracker
from sweetrl.tasks import mini_backend


def fact_tracker(tasks: Iterable[str]) -> FactTracker | None:
    """What there is to ask in the tasks with these ids, where their benchmark knows it."""
    if all(task.startswith(f"{mini_backend.NAME}-") for task in tasks):
        return FactTracker(mini_backend.hidden_facts, mini_backend.asked_fact)
    return None
