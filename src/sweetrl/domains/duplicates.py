"""Whether a task is one of those that are there already: word for word, by its normal form, or nearly.

Nearly means that the references share most of their runs of four words or signs (Jaccard similarity). An index from
runs to tasks keeps this quick among many thousands.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from sweetrl.domains.domain import Domain
from sweetrl.types import Task

NEAR = 0.7
"""The similarity from which on two references are the same task in other words."""
_RUN = 4
_WORD = re.compile(r"\w+|[^\w\s]")


class KnownTasks:
    """Tasks of one domain that a new one must not repeat."""

    def __init__(self, domain: Domain, tasks: Iterable[Task] = ()) -> None:
        self._domain = domain
        self._exact: dict[str, str] = {}
        """From a request, a reference or a normal form to the id of its task."""
        self._sizes: dict[str, int] = {}
        self._with_run: defaultdict[str, list[str]] = defaultdict(list)
        for task in tasks:
            self.add(task)

    def add(self, task: Task) -> None:
        """Remember a task."""
        for key in self._keys(task):
            self._exact.setdefault(key, task.id)
        runs = self._runs(task)
        self._sizes[task.id] = len(runs)
        for run in runs:
            self._with_run[run].append(task.id)

    def same_as(self, task: Task) -> str | None:
        """Which known task this one repeats, as `exactly ID` or `nearly ID`; None for a new one."""
        for key in self._keys(task):
            if key in self._exact:
                return f"exactly {self._exact[key]}"
        runs = self._runs(task)
        shared = Counter(known for run in runs for known in self._with_run.get(run, ()))
        for known, count in shared.most_common(1):
            if count / (len(runs) + self._sizes[known] - count) >= NEAR:
                return f"nearly {known}"
        return None

    def _keys(self, task: Task) -> list[str]:
        writer = self._domain.writer
        reference = self._domain.reference(task.secret)
        forms = [] if writer is None else [writer.normal_form(task.secret)]
        return [_folded(reference), *map(_folded, forms)]

    def _runs(self, task: Task) -> set[str]:
        words = _WORD.findall(self._domain.reference(task.secret))
        return {" ".join(words[start : start + _RUN]) for start in range(max(1, len(words) - _RUN + 1))}


def _folded(text: str) -> str:
    return " ".join(text.split())
