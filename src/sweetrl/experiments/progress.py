"""How far a command is, reported to the run that started it: a small file, replaced several times a second.

Its first line is what is done and of how many, the second what the command waits for, if it does.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

VARIABLE = "SWEETRL_PROGRESS"
"""The environment variable that names the file."""
SECONDS = 0.25
"""Between two lines, at least."""

Tell = Callable[..., None]
"""(done, of how many, what it waits for)"""


def teller() -> Tell | None:
    """Reports how far this command is; None if no run asked for it."""
    path = os.environ.get(VARIABLE)
    return None if not path else Teller(Path(path))


class Teller:
    """Writes how far a command is to a file, a few times a second."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._spoken = 0.0

    def __call__(self, done: int, total: int, trouble: str = "") -> None:
        """Report that `done` of `total` items are done, and what the command waits for."""
        now = time.monotonic()
        if now - self._spoken >= SECONDS or done >= total:
            self._spoken = now
            # On another machine than the run's there may be no such folder; no stage fails for that.
            with contextlib.suppress(OSError):
                self._path.write_text(f"{done} {total}\n{trouble}", encoding="utf-8", errors="replace")


def told(path: Path) -> float:
    """The share that is done; 0 if none was reported."""
    try:
        done, total = map(int, _lines(path)[0].split())
    except ValueError:
        return 0.0
    return min(1.0, done / total) if total > 0 else 0.0


def trouble(path: Path) -> str:
    """What the command waits for; empty if it does not."""
    return _lines(path)[1]


def _lines(path: Path) -> tuple[str, str]:
    try:
        counts, _, waits = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, ValueError):
        return "", ""
    return counts, waits.strip()
