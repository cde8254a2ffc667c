"""Find defective tasks, by running or rendering every reference."""

from collections.abc import Callable, Iterator

from sweetrl import interrupts
from sweetrl.domains.registry import find_domain
from sweetrl.domains.scoring import Defect
from sweetrl.settings import SandboxSettings, ScorerSettings
from sweetrl.types import Task


def find_defects(
    known: dict[str, Task], settings: SandboxSettings, advance: Callable[[int], None]
) -> Iterator[tuple[str, list[Defect]]]:
    """The defects of each task, one domain after the other."""
    options = ScorerSettings(workers=settings.workers, mode=settings.mode, isolation=settings.isolation)
    for name in sorted({task.domain for task in known.values()}):
        scoring = find_domain(name).scoring
        if scoring is not None:
            tasks = [task for task in known.values() if task.domain == name]
            with scoring(options, None) as bench:
                yield from interrupts.run(bench.find_defects, tasks, advance).items()
