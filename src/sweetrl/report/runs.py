"""`Run`: the records of a scored run, as reports take them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sweetrl.prompts import TURN_LIMIT
from sweetrl.types import Episode, Metric, Task, TurnCredit, Verdict


@dataclass(frozen=True)
class Run:
    """A scored run. Its records are read several times and never all in memory: they may be in files."""

    name: str
    episodes: Iterable[Episode]
    verdicts: Iterable[Verdict]
    credit: Iterable[TurnCredit] = ()
    label: str = ""
    metrics: tuple[Metric, ...] = ()
    """Metrics that cannot be computed from the records alone."""
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """With known tasks, examples show the wanted result."""
    turn_limit: int = TURN_LIMIT
    """How often the agent could speak at most."""
    picture: Callable[[str], bytes | None] = lambda _: None
    """The PNG file of a content hash, where it was kept."""
