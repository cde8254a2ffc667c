"""How far a command is, reported to the run that started it: one line in a file, replaced several times a second."""

import os
import time
from collections.abc import Callable
from pathlib import Path

VARIABLE = "SWEETRL_PROGRESS"
"""The environment variable that names the file."""
SECONDS = 0.25
"""Between two lines, at least."""

Tell = Callable[[int, int], None]
"""(done, of how many)"""


def teller() -> Tell | None:
    """Who to tell how far this command is; None if nobody asked."""
    path = os.environ.get(VARIABLE)
    return None if not path else _Teller(Path(path))


class _Teller:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._spoken = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._spoken >= SECONDS or done >= total:
            self._spoken = now
            self._path.write_text(f"{done} {total}\n", encoding="ascii")


def told(path: Path) -> float:
    """The share that is done, by the last line; 0 if there is none."""
    try:
        done, total = map(int, path.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return 0.0
    return min(1.0, done / total) if total > 0 else 0.0
