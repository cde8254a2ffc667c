"""Which hidden facts there are to ask about, for domains that know it."""

from collections.abc import Mapping

from sweetrl.domains.domain import FactTracker
from sweetrl.domains.registry import find_domain
from sweetrl.types import Task


def fact_tracker(tasks: Mapping[str, Task]) -> FactTracker | None:
    """The tracker of hidden facts for these tasks, if their domain has one."""
    domains = {task.domain for task in tasks.values()}
    return find_domain(domains.pop()).tracker(tasks) if len(domains) == 1 else None
