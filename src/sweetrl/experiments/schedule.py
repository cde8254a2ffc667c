"""Which stages of a plan can run side by side: a stage waits for those that write what it reads."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path

from sweetrl.experiments.pipeline import Stage


def needs_of(planned: Sequence[Stage]) -> list[frozenset[int]]:
    """For each stage, the numbers of the stages that write its inputs, or a folder that an input is in."""
    writers = {path.resolve(): number for number, stage in enumerate(planned) for path in stage.writes}
    return [
        frozenset(
            writers[place]
            for path in (Path(each).resolve() for each in stage.inputs)
            for place in (path, *path.parents)
            if place in writers and writers[place] != number
        )
        for number, stage in enumerate(planned)
    ]


class Schedule:
    """The stages that wait, run and are done, by number."""

    def __init__(
        self, needs: Sequence[frozenset[int]], *, jobs: int = 1, alone: frozenset[int] = frozenset()
    ) -> None:
        self._needs = needs
        self._jobs = jobs
        self._alone = alone
        """Stages that need the machine to themselves."""
        self.waiting = list(range(len(needs)))
        self.running: set[int] = set()
        self.done: set[int] = set()

    def starting(self) -> Iterator[int]:
        """The stages that start now, in the order of the plan."""
        for number in tuple(self.waiting):
            if len(self.running) >= self._jobs or self.running & self._alone:
                return
            if self._needs[number] <= self.done:
                if number in self._alone and self.running:
                    return
                self.waiting.remove(number)
                self.running.add(number)
                yield number

    def end(self, number: int) -> None:
        """Mark a stage as done, even one that never had to start."""
        if number in self.running:
            self.running.remove(number)
        else:
            self.waiting.remove(number)
        self.done.add(number)

    def stop(self) -> None:
        """Nothing starts any more."""
        self.waiting.clear()

    def length(self, seconds: Mapping[int, float]) -> float:
        """How long it takes from now until all is done, if each stage still takes these seconds."""
        ahead = self._copy()
        now, ends = 0.0, [(seconds[number], number) for number in ahead.running]
        heapq.heapify(ends)
        while True:
            for number in ahead.starting():
                heapq.heappush(ends, (now + seconds[number], number))
            if not ends:
                return now
            now, ended = heapq.heappop(ends)
            ahead.end(ended)

    def _copy(self) -> "Schedule":
        ahead = copy(self)
        ahead.waiting, ahead.running, ahead.done = list(self.waiting), set(self.running), set(self.done)
        return ahead
